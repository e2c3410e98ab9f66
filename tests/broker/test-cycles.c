/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMs that come and go a thousand times leave nothing in vgpud
 */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl-client.h"
#include "guest.h"
#include "pair.h"
#include "test.h"

#define CYCLES 1000
/* Before the first measurement: allocators and tables have their size then. */
#define CYCLES_FIRST 50
/* What a thousand leaks of the smallest allocation exceed by far. */
#define GROWTH_KIB_MAX 384

static struct pair pair;
static char file[192], path[160];
static unsigned int n_reloads;

struct use {
	unsigned int keeper_fds;
	unsigned int broker_fds;
	unsigned int children;
	unsigned int files;
	unsigned int sockets; /* of this vgpud, listening and connected */
};

static unsigned int count_entries(const char *folder)
{
	unsigned int n = 0;
	DIR *dir = opendir(folder);

	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static unsigned int count_fds(pid_t pid)
{
	char folder[64];

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	return count_entries(folder);
}

static unsigned int count_sockets(void)
{
	FILE *list = fopen("/proc/net/unix", "re");
	unsigned int n = 0;
	char line[512];

	check(list != NULL);
	while (fgets(line, sizeof(line), list))
		n += strstr(line, pair.dir) != NULL;
	fclose(list);
	return n;
}

static struct use measure(void)
{
	char folder[160];

	snprintf(folder, sizeof(folder), "%s/vm.d", pair.dir);
	return (struct use){
		.keeper_fds = count_fds(pair.pid),
		.broker_fds = count_fds(pair_find_broker(&pair)),
		.children = pair_count_children(&pair),
		.files = count_entries(pair.dir) + count_entries(folder),
		.sockets = count_sockets(),
	};
}

/* What a worker that has just ended still has may be in the first measurement, so that
 * there may be less in the last one. */
static bool is_no_more(struct use first)
{
	const struct use last = measure();

	return last.keeper_fds <= first.keeper_fds &&
	       last.broker_fds <= first.broker_fds && last.children <= first.children &&
	       last.files <= first.files && last.sockets <= first.sockets;
}

/* Memory of the keeper that is its own. A broker lives for one change. */
static unsigned long keeper_kib(void)
{
	unsigned long size = 0;
	char name[64], line[256];
	FILE *status;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pair.pid);
	status = fopen(name, "re");
	check(status != NULL);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "RssAnon: %lu", &size);
	fclose(status);
	check(size > 0);
	return size;
}

static const char *write_file(bool is_ivshmem)
{
	static char text[512];
	FILE *to;

	snprintf(text, sizeof(text),
		"[vm new]\ntransport = %s\nsocket = %s\nsize = 256M\n%s",
		is_ivshmem ? "ivshmem" : "socket", path,
		is_ivshmem ? "max-processes = 7\n" : "");
	to = fopen(file, "we");
	check(to != NULL);
	fputs(text, to);
	check_eq(fclose(to), 0);
	return text;
}

/* A process of the VM has a session, and one goes before it has greeted. */
static void use_vm(void)
{
	struct guest guest;

	guest_connect(&guest, path);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	close(guest_try_connect(path));
}

/* The next broker has no connection but that of a client whose change it has made. */
static void reload(int *fdp)
{
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "SIGHUP: ", ++n_reloads);
	close(*fdp);
	*fdp = ctl_open();
}

static void cycle(int *fdp, unsigned int i)
{
	const bool is_ivshmem = i % 2;

	check_eq(ctl_status_of(ctl_ask_add(*fdp, "new", write_file(is_ivshmem))),
		VGPU_CTL__STATUS__OK);
	if (i % 100 == 50)
		reload(fdp);
	if (i % 10 == 0)
		use_vm();
	else if (is_ivshmem)
		close(guest_try_connect(path));
	check_eq(ctl_status_of(ctl_ask_remove(*fdp, "new")), VGPU_CTL__STATUS__OK);
	check_eq(unlink(file), 0);
	check(access(path, F_OK) < 0);
}

static void start(void)
{
	char lines[256], folder[160];

	snprintf(ctl_path, sizeof(ctl_path), "%s/ctl", test_tmpdir());
	snprintf(path, sizeof(path), "%s/new", test_tmpdir());
	snprintf(folder, sizeof(folder), "%s/vm.d", test_tmpdir());
	snprintf(file, sizeof(file), "%s/new.conf", folder);
	check_eq(mkdir(folder, 0700), 0);
	snprintf(lines, sizeof(lines), "ctl-socket = %s\n", ctl_path);
	pair_start(&pair,
		&(struct pair_options){ .worker = FAKE_WORKER, .vgpud_lines = lines });
	n_reloads = 0;
}

TEST_SECONDS(a_thousand_vms_that_come_and_go_leave_nothing, 300)
{
	unsigned long kib __attribute__((unused));
	struct guest guest;
	struct use before;
	int fd;

	pair_needs_descriptors();
	start();
	/* One VM is served all the time. */
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	fd = ctl_open();
	for (unsigned int i = 0; i < CYCLES_FIRST; i++)
		cycle(&fd, i);
	before = measure();
	kib = keeper_kib();
	for (unsigned int i = 0; i < CYCLES - CYCLES_FIRST; i++)
		cycle(&fd, i);
	guest_wait_for(is_no_more(before));
#ifndef __SANITIZE_ADDRESS__
	/* Its allocator keeps what is freed. */
	check(keeper_kib() < kib + GROWTH_KIB_MAX);
#endif
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	close(fd);
	pair_stop(&pair);
}

TEST(processes_that_come_and_go_do_not_stop_the_heartbeat_of_others)
{
	static struct guest guest, other;
	unsigned int n_rounds = 0;
	uint64_t beat;

	/* Of transport socket, where each is a VM. */
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	beat = __atomic_load_n(&guest.header->heartbeat, __ATOMIC_RELAXED);
	/* Many times as often as it beats, but no more than the keeper accepts. */
	while (__atomic_load_n(&guest.header->heartbeat, __ATOMIC_RELAXED) <= beat + 3) {
		check(n_rounds++ < 1000);
		guest_connect(&other, pair.socket);
		guest_disconnect(&other);
		usleep(10000);
	}
	guest_disconnect(&guest);
	pair_stop(&pair);
}
