/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that the kernel has ended, by the count of a folder in the place of their group
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/channel.h"
#include "broker/oom.h"
#include "broker/state.h"
#include "broker/totals.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/quota.h"
#include "test.h"
#include "vgpud/link.h"

static struct broker broker;
static struct config_vm config = { .name = "one", .log_lines = 100, .process_rate = 1 };
static struct account account;
static struct worker workers[2];
static struct channel channels[2];
static struct ledger_channel records[2];
static struct vm vm;
static char root[64];

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	check(file && fputs(text, file) >= 0 && !fclose(file));
}

/* A VM with two workers in its group. */
static void begin(void)
{
	char path[128];

	strcpy(root, "/tmp/vgpu-oom-XXXXXX");
	check(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/vm-one", root);
	check_eq(mkdir(path, 0755), 0);
	put("cgroup.subtree_control", "memory\n");
	snprintf(path, sizeof(path), "%s/" CGROUP_MAIN, root);
	broker = (struct broker){ .accounts = &account };
	vm_groups_init_at(&broker.groups, path);
	account_init(&account, &config, 0);
	account.quota_fd = memfd_create("quota", MFD_CLOEXEC);
	check_eq(ftruncate(account.quota_fd, QUOTA_FILE_SIZE), 0);
	account.n_in_group = 2;
	vm = (struct vm){ .account = &account, .config = &config };
	for (unsigned int i = 0; i < 2; i++) {
		records[i] = (struct ledger_channel){ .phase = CHANNEL_OPEN };
		channels[i] = (struct channel){ .vm = &vm, .record = &records[i] };
		workers[i] = (struct worker){
			.broker = &broker,
			.channel = &channels[i],
			.group_account = &account,
		};
	}
}

static void end(void)
{
	char command[96];

	vm_groups_deinit(&broker.groups);
	account_deinit(&account);
	snprintf(command, sizeof(command), "rm -r %s", root);
	check_eq(system(command), 0);
}

static uint64_t n_kills(void)
{
	TAILQ_INIT(&broker.pool.workers);
	return totals_of(&broker, &account).oom_kills;
}

TEST(an_end_by_the_kernel_is_a_reason)
{
	begin();
	/* Somebody else's signal. */
	put("vm-one/memory.events", "oom_kill 0\n");
	oom_note_exit(&workers[0], SIGKILL);
	check_eq(records[0].reason, VGPU_REASON_NONE);
	put("vm-one/memory.events", "oom_kill 1\n");
	oom_note_exit(&workers[0], SIGSEGV);
	oom_note_exit(&workers[0], 0);
	oom_note_exit(&workers[0], SIGKILL << 8);
	check_eq(records[0].reason, VGPU_REASON_NONE);
	oom_note_exit(&workers[0], SIGKILL);
	check_eq(records[0].reason, VGPU_REASON_HOST_MEMORY);
	check_eq(n_kills(), 1);
	/* The same end is not the next one's. */
	oom_note_exit(&workers[1], SIGKILL);
	check_eq(records[1].reason, VGPU_REASON_NONE);
	/* One whose exit was not reported, since vgpud was started again. */
	put("vm-one/memory.events", "oom_kill 2\n");
	oom_note_exit(&workers[1], LINK_STATUS_UNKNOWN);
	check_eq(records[1].reason, VGPU_REASON_HOST_MEMORY);
	check_eq(n_kills(), 2);
	end();
}

TEST(another_reason_remains_and_the_end_counts)
{
	begin();
	records[0].reason = VGPU_REASON_SHUTDOWN;
	put("vm-one/memory.events", "oom_kill 1\n");
	oom_note_exit(&workers[0], SIGKILL);
	check_eq(records[0].reason, VGPU_REASON_SHUTDOWN);
	check_eq(n_kills(), 1);
	end();
}

TEST(the_next_group_of_a_vm_counts_from_the_beginning)
{
	begin();
	put("vm-one/memory.events", "oom_kill 1\n");
	oom_note_exit(&workers[0], SIGKILL);
	account.n_in_group = 1;
	oom_note_exit(&workers[1], 0);
	oom_note_exit(&workers[1], SIGKILL);
	check_eq(records[1].reason, VGPU_REASON_HOST_MEMORY);
	check_eq(n_kills(), 2);
	end();
}

TEST(a_worker_in_no_group_was_ended_by_somebody_else)
{
	begin();
	put("vm-one/memory.events", "oom_kill 9\n");
	workers[0].group_account = NULL;
	oom_note_exit(&workers[0], SIGKILL);
	workers[1].channel = NULL;
	oom_note_exit(&workers[1], SIGKILL);
	check_eq(records[0].reason, VGPU_REASON_NONE);
	check_eq(records[1].reason, VGPU_REASON_NONE);
	check_eq(n_kills(), 0);
	end();
}
