/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of VMs: texts with a folder in their place, and real groups
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/vm-group.h"
#include "test.h"

static char root[64];

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	check(file && fputs(text, file) >= 0 && !fclose(file));
}

static void read_all(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");

	check(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

static const char *get(const char *name)
{
	static char text[256];
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	read_all(path, text, sizeof(text));
	return text;
}

static void remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	check_eq(unlink(path), 0);
}

static void make_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	check_eq(mkdir(path, 0755), 0);
}

static bool exists(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return !access(path, F_OK);
}

/* Files that the kernel would make in the group of a VM. */
static void fill(const char *name)
{
	static const char *const files[][2] = {
		{ "cgroup.type", "domain\n" },
		{ "cgroup.procs", "" },
		{ "cpu.max", "max 100000\n" },
		{ "memory.max", "max\n" },
		{ "memory.swap.max", "max\n" },
		{ "memory.current", "0\n" },
		{ "memory.stat", "anon 0\n" },
	};
	char path[96];

	make_folder(name);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", name, files[i][0]);
		put(path, files[i][1]);
	}
}

/* A folder that looks like a control group with that of a VM. */
static void make_root(const char *controllers, const char *enabled)
{
	strcpy(root, "/tmp/vgpu-vm-group-XXXXXX");
	check(mkdtemp(root));
	put("cgroup.controllers", controllers);
	put("cgroup.subtree_control", enabled);
	fill("vm-one");
}

static void begin(struct vm_groups *groups, const char *controllers)
{
	make_root(controllers, "");
	vm_groups_init_at(groups, root);
}

/* The same for a process in CGROUP_MAIN. */
static void begin_divided(struct vm_groups *groups, const char *enabled)
{
	char path[128];

	make_root("cpu memory\n", enabled);
	snprintf(path, sizeof(path), "%s/" CGROUP_MAIN, root);
	vm_groups_init_at(groups, path);
}

static void end(struct vm_groups *groups)
{
	char command[96];

	vm_groups_deinit(groups);
	snprintf(command, sizeof(command), "rm -r %s", root);
	check_eq(system(command), 0);
}

static int set(
	const struct vm_groups *groups, const char *vm, unsigned int cpu, uint64_t memory)
{
	return vm_group_set(
		groups, vm, &(struct vm_group_limits){ .cpu = cpu, .memory = memory });
}

/* What was written over the longer text that was there. */
static bool begins(const char *name, const char *text)
{
	return !strncmp(get(name), text, strlen(text));
}

TEST(a_limit_is_written_as_the_kernel_reads_it)
{
	struct vm_groups groups;
	int fd;

	begin(&groups, "cpuset cpu io memory\n");
	check_str(groups.why, "");
	check(groups.has_cpu && !groups.has_memory);
	check_eq(set(&groups, "one", 150, 1 << 30), 0);
	check(strstr(get("vm-one/cgroup.type"), "threaded"));
	check_str(get("cgroup.subtree_control"), "+cpu");
	check(begins("vm-one/cpu.max", "150000 100000"));
	check(begins("vm-one/memory.max", "max"));
	fd = vm_group_open(&groups, "one");
	check_eq(dprintf(fd, "4711"), 4);
	close(fd);
	check_str(get("vm-one/cgroup.procs"), "4711");
	check_eq(set(&groups, "one", 1, 0), 0);
	check(begins("vm-one/cpu.max", "1000 100000"));
	check(vm_group_open(&groups, "never") == -ENOENT);
	end(&groups);
}

TEST(without_the_controller_or_rights_there_are_none)
{
	struct vm_groups groups;

	begin(&groups, "cpuset cpufreq memory\n");
	check_eq(groups.own.folder, -1);
	check(strstr(groups.why, "no controller cpu"));
	check(!groups.has_cpu && !groups.has_memory);
	check_eq(set(&groups, "one", 50, 1), -ENOTSUP);
	check(!vm_group_exists(&groups, "one"));
	vm_group_remove(&groups, "one");
	vm_group_lift(&groups, "one");
	vm_groups_init_at(&groups, "/nonexistent");
	check_eq(groups.own.folder, -1);
	check(strstr(groups.why, "cannot be opened"));
	end(&groups);
}

TEST(groups_beside_vgpuds_own_limit_memory)
{
	struct vm_groups groups;

	begin_divided(&groups, "cpu memory\n");
	check_str(groups.why, "");
	check(groups.has_cpu && groups.has_memory);
	check(vm_group_exists(&groups, "one") && !vm_group_exists(&groups, "two"));
	check_eq(set(&groups, "one", 0, UINT64_C(5) << 30), 0);
	check_str(get("vm-one/cgroup.type"), "domain\n");
	check(begins("vm-one/cpu.max", "max"));
	check(begins("vm-one/memory.max", "5368709120"));
	check(begins("vm-one/memory.swap.max", "0"));
	check_eq(set(&groups, "one", 30, UINT64_MAX), 0);
	check(begins("vm-one/cpu.max", "30000 100000"));
	check(begins("vm-one/memory.max", "max"));
	/* Where nothing can be swapped. */
	remove_file("vm-one/memory.swap.max");
	check_eq(set(&groups, "one", 0, 4096), 0);
	check(begins("vm-one/memory.max", "4096"));
	end(&groups);
}

TEST(each_controller_is_used_alone_if_the_other_is_not_there)
{
	struct vm_groups groups;

	begin_divided(&groups, "memory\n");
	check(!groups.has_cpu && groups.has_memory);
	check_eq(set(&groups, "one", 50, 4096), 0);
	check_str(get("vm-one/cpu.max"), "max 100000\n");
	check(begins("vm-one/memory.max", "4096"));
	end(&groups);
	begin_divided(&groups, "cpu pids\n");
	check(groups.has_cpu && !groups.has_memory);
	check_eq(set(&groups, "one", 50, 4096), 0);
	check_str(get("vm-one/memory.max"), "max\n");
	check_eq(vm_group_oom_kills(&groups, "one"), 0);
	end(&groups);
	begin_divided(&groups, "pids\n");
	check_eq(groups.own.folder, -1);
	check(strstr(groups.why, "no controllers"));
	end(&groups);
}

TEST(a_limit_below_the_use_is_not_set)
{
	struct vm_groups groups;

	begin_divided(&groups, "cpu memory\n");
	put("vm-one/memory.current", "9000000\n");
	put("vm-one/memory.stat", "anon 7\ninactive_file 1000000\nactive_file 2000000\n");
	check_eq(set(&groups, "one", 10, 5999999), VM_GROUP_E_IN_USE);
	check(begins("vm-one/cpu.max", "10000"));
	check_str(get("vm-one/memory.max"), "max\n");
	/* What is only read from files the kernel can drop. */
	check_eq(set(&groups, "one", 10, 6000000), 0);
	check(begins("vm-one/memory.max", "6000000"));
	end(&groups);
}

TEST(the_kernel_tells_how_many_it_has_ended)
{
	struct vm_groups groups;

	begin_divided(&groups, "memory\n");
	check_eq(vm_group_oom_kills(&groups, "one"), 0);
	put("vm-one/memory.events",
		"low 0\nmax 812\noom 4\noom_kill 3\noom_group_kill 9\n");
	check_eq(vm_group_oom_kills(&groups, "one"), 3);
	put("vm-one/memory.events", "low 0\noom 4\noom_group_kill 9\n");
	check_eq(vm_group_oom_kills(&groups, "one"), 0);
	end(&groups);
}

static bool is_one(void *data, const char *vm)
{
	++*(int *)data;
	return !strcmp(vm, "one");
}

TEST(groups_of_earlier_configurations_go)
{
	struct vm_groups groups;
	int n_asked = 0;

	begin_divided(&groups, "cpu memory\n");
	make_folder("vm-gone");
	fill("vm-busy");
	put("vm-busy/cpu.max", "50000 100000\n");
	put("vm-busy/memory.max", "50000\n");
	make_folder("other");
	vm_groups_sweep(&groups, is_one, &n_asked);
	check_eq(n_asked, 3);
	check(!exists("vm-gone"));
	check(exists("other") && exists("vm-one"));
	/* It is not empty, and may be another vgpud's. */
	check(begins("vm-busy/cpu.max", "50000"));
	vm_group_lift(&groups, "busy");
	check(begins("vm-busy/cpu.max", "max"));
	check(begins("vm-busy/memory.max", "max"));
	vm_group_lift(&groups, "never");
	check(!exists("vm-never"));
	make_folder("vm-two");
	vm_group_remove(&groups, "two");
	check(!exists("vm-two"));
	end(&groups);
}

static double cpu_of(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	check_eq(clock_getcpuclockid(pid, &clock), 0);
	check_eq(clock_gettime(clock, &used), 0);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Of a process with one thread that never rests: the part of the time that it runs. */
static double part_of(pid_t pid)
{
	struct timespec before, after;
	const double used = cpu_of(pid);

	clock_gettime(CLOCK_MONOTONIC, &before);
	sleep(3);
	clock_gettime(CLOCK_MONOTONIC, &after);
	return (cpu_of(pid) - used) /
	       ((double)(after.tv_sec - before.tv_sec) +
		       (double)(after.tv_nsec - before.tv_nsec) / 1e9);
}

/* Return: 0 or -errno. */
static int move(const struct vm_groups *groups, const char *vm, pid_t pid)
{
	const int fd = vm_group_open(groups, vm);
	int r;

	if (fd < 0)
		return fd;
	r = dprintf(fd, "%d", (int)pid) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* Below the group of this process, as vgpud's are below its own. */
TEST(a_real_group_limits_a_process)
{
	struct vm_groups groups;
	double limited, free;
	char vm[32];
	pid_t pid;
	int r;

	vm_groups_init(&groups);
	if (groups.own.folder < 0)
		test_skip("%s", groups.why);
	snprintf(vm, sizeof(vm), "vgpu-test-%d", (int)getpid());
	r = set(&groups, vm, 20, UINT64_MAX);
	if (r) {
		vm_group_remove(&groups, vm);
		test_skip("no control group can be made here: %s", strerror(-r));
	}
	pid = fork();
	check(pid >= 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile unsigned long n = 0; !pid;)
		n++;
	check_eq(move(&groups, vm, pid), 0);
	limited = part_of(pid);
	/* Another broker, which finds the group. */
	vm_groups_deinit(&groups);
	vm_groups_init(&groups);
	check_eq(set(&groups, vm, 90, UINT64_MAX), 0);
	check_eq(move(&groups, vm, pid), 0);
	free = part_of(pid);
	/* It has a process. */
	vm_group_remove(&groups, vm);
	check_eq(move(&groups, vm, pid), 0);
	kill(pid, SIGKILL);
	check_eq(waitpid(pid, NULL, 0), pid);
	vm_group_remove(&groups, vm);
	check(!vm_group_exists(&groups, vm));
	vm_groups_deinit(&groups);
	printf("# with 20 %%: %.3f of a CPU, with 90 %%: %.3f\n", limited, free);
	check(limited <= 0.25);
	check(free > limited);
}
