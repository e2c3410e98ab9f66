/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits by control groups: which workers are in the group of their VM, and what its
 * limit of memory has room for
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/group-limit.h"
#include "broker/state.h"
#include "broker/worker.h"
#include "test.h"
#include "vgpud/link.h"

#define MIB (UINT64_C(1) << 20)

static struct broker broker;
static struct account accounts[3];
static struct worker workers[2];
static char root[64];
static int keeper;

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	check(file && fputs(text, file) >= 0 && !fclose(file));
}

/* What was written to a file, up to the end of the line. */
static unsigned long long number_in(const char *name)
{
	unsigned long long number = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "r");
	check(file);
	if (fscanf(file, "%llu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* Three VMs, of which the first has a limit of CPU time and the last is a socket, and a
 * folder that looks like a control group. */
static void begin_with(bool is_divided, const char *enabled)
{
	static struct config *config;
	int pair[2];
	char *error, path[128];

	check_eq(config_new_from_text(&config, "f",
			 "[vgpud]\ndriver = null\n"
			 "[vm one]\nsocket = /one\ncpu = 50\nsize = 1G\n"
			 "max-processes = 4\nhost-memory = 1000M\nimage-store = 100M\n"
			 "[vm two]\nsocket = /two\n"
			 "[vm many]\ntransport = socket\nsocket = /many\nsize = 1G\n"
			 "max-processes = 4\nhost-memory = 1000M\nimage-store = 100M\n",
			 &error),
		0);
	strcpy(root, "/tmp/vgpu-group-limit-XXXXXX");
	check(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/vm-one", root);
	check_eq(mkdir(path, 0755), 0);
	put("cgroup.controllers", "cpu memory\n");
	put("cgroup.subtree_control", enabled);
	put("vm-one/cgroup.type", is_divided ? "domain\n" : "threaded\n");
	put("vm-one/cgroup.procs", "");
	put("vm-one/cpu.max", "max 100000\n");
	put("vm-one/memory.max", "max\n");
	put("vm-one/memory.current", "0\n");
	check_eq(socketpair(
			 AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		0);
	keeper = pair[1];
	broker = (struct broker){
		.config = config, .accounts = accounts, .link = pair[0]
	};
	snprintf(path, sizeof(path), "%s/%s", root, is_divided ? CGROUP_MAIN : "");
	vm_groups_init_at(&broker.groups, path);
	for (unsigned int i = 0; i < 3; i++)
		accounts[i] = (struct account){ .config = config_vm_at(config, i) };
	for (unsigned int i = 0; i < 2; i++)
		workers[i] = (struct worker){
			.broker = &broker,
			.id = 7 + i,
			.pid = 100 + (int)i,
		};
	accounts[0].has_group = true;
}

static void begin(void)
{
	begin_with(false, "");
}

static void end(void)
{
	char command[96];

	vm_groups_deinit(&broker.groups);
	close(keeper);
	close(broker.link);
	snprintf(command, sizeof(command), "rm -r %s", root);
	check_eq(system(command), 0);
	config_free((struct config *)broker.config);
}

/* What the keeper does with a request. Return: the worker's number; 0: there is none. */
static uint64_t handle_request(const char *text)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	if (link_receive(keeper, &message, fds, &n_fds))
		return 0;
	check_eq(message.type, LINK_JOIN);
	check_eq(n_fds, 1);
	check(dprintf(fds[0], "%s", text) > 0);
	close(fds[0]);
	return message.id;
}

TEST(workers_with_a_session_are_moved_to_the_group_of_their_vm)
{
	begin();
	group_limit_join(&accounts[0], &workers[0]);
	check_eq(handle_request("100\n"), 7);
	check_eq(number_in("vm-one/cgroup.procs"), 100);
	check_eq(number_in("vm-one/cpu.max"), 50000);
	/* As after each state that the session reaches. */
	group_limit_join(&accounts[0], &workers[0]);
	check_eq(accounts[0].n_in_group, 1);
	check_eq(handle_request(""), 0);
	group_limit_join(&accounts[0], &workers[1]);
	check_eq(accounts[0].n_in_group, 2);
	group_limit_leave(&workers[0]);
	group_limit_leave(&workers[0]);
	check_eq(accounts[0].n_in_group, 1);
	group_limit_leave(&workers[1]);
	check_eq(accounts[0].n_in_group, 0);
	end();
}

TEST(a_vm_without_a_limit_has_no_group)
{
	begin();
	group_limit_join(&accounts[1], &workers[1]);
	check(!workers[1].group_account);
	group_limit_leave(&workers[1]);
	check_eq(handle_request(""), 0);
	check(!group_limit_cpu_way(&broker, &accounts[1]));
	check_eq(group_limit_of_kernels(&broker, &accounts[1]), 0);
	check_str(group_limit_memory_way(&broker, &accounts[1]), "measured");
	end();
}

TEST(a_worker_that_cannot_be_moved_is_not_counted)
{
	char path[128];

	begin();
	snprintf(path, sizeof(path), "%s/vm-one/cgroup.procs", root);
	check_eq(unlink(path), 0);
	group_limit_join(&accounts[0], &workers[0]);
	check(!workers[0].group_account);
	check_eq(accounts[0].n_in_group, 0);
	end();
}

TEST(what_keeps_a_limit_is_said)
{
	begin();
	check_str(group_limit_cpu_way(&broker, &accounts[0]), "cgroup");
	check_eq(group_limit_of_kernels(&broker, &accounts[0]), 0);
	check_str(group_limit_memory_way(&broker, &accounts[0]), "measured");
	accounts[0].has_group = false;
	check_str(group_limit_cpu_way(&broker, &accounts[0]), "none");
	check_eq(group_limit_of_kernels(&broker, &accounts[0]), 50);
	/* A worker has said that its devices are softgpu's. */
	broker.n_units = broker.n_shared_units = 2;
	check_str(group_limit_cpu_way(&broker, &accounts[0]), "kernels");
	end();
	begin_with(true, "memory\n");
	check_str(group_limit_memory_way(&broker, &accounts[0]), "cgroup");
	check_str(group_limit_cpu_way(&broker, &accounts[0]), "none");
	check_eq(group_limit_of_kernels(&broker, &accounts[0]), 50);
	end();
}

/* All that is charged to the group although host-memory does not count it. */
TEST(the_limit_of_memory_has_room_for_what_is_not_host_memory)
{
	uint64_t one, many;

	begin();
	one = group_limit_memory(&accounts[0]);
	many = group_limit_memory(&accounts[2]);
	/* The shared memory, images, and 1536 threads for each of four processes. */
	check(one >= (1000 + 1024 + 100 + UINT64_C(4) * 36) * MIB);
	check(one <= (1000 + 1024 + 100 + UINT64_C(4) * 64) * MIB);
	/* With transport socket each process has its own. */
	check_eq(many - one, 3 * 1024 * MIB);
	end();
}

TEST(a_limit_beyond_all_numbers_is_the_greatest_one)
{
	struct config_vm config;

	begin();
	config = *accounts[0].config;
	accounts[0].config = &config;
	config.host_memory = UINT64_MAX - 5;
	check(group_limit_memory(&accounts[0]) == UINT64_MAX);
	config.host_memory = 1;
	config.size = UINT64_MAX / 2;
	config.transport = CONFIG_SOCKET;
	check(group_limit_memory(&accounts[0]) == UINT64_MAX);
	end();
}

TEST(a_limit_that_was_below_the_use_is_set_when_it_is_not)
{
	begin_with(true, "memory cpu\n");
	put("vm-one/memory.current", "99999999999\n");
	group_limit_join(&accounts[0], &workers[0]);
	check_eq(accounts[0].n_in_group, 1);
	check(accounts[0].is_group_over);
	group_limits_renew(&broker);
	check_eq(number_in("vm-one/memory.max"), 0);
	put("vm-one/memory.current", "5\n");
	group_limits_renew(&broker);
	check(!accounts[0].is_group_over);
	check_eq(number_in("vm-one/memory.max"), group_limit_memory(&accounts[0]));
	end();
}
