/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox probe: a driver that tries to escape from its worker
 *
 * The null driver with another cuCtxSynchronize(), which tries what a guest that has
 * taken over a worker would try first, and logs the result of each attempt. None of them
 * is harmful if it is permitted. With PROBE in the environment it exceeds its resources
 * instead: threads, or memory in files. The process that it tries to read besides vgpud
 * itself is named by the file in PROBE_NEIGHBOUR; if that cannot be read it is vgpud too.
 */

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include "vgpu/cuda.h"
#pragma GCC visibility pop

#define STACK_SIZE 65536
#define THREADS_MAX 4000
#define HOARD_FILES 8
#define HOARD_SIZE (256ul << 20)

static pid_t keeper, neighbour;

/* Read before the sandbox, which hides even the parent's pid. */
static void __attribute__((__constructor__)) find_keeper(void)
{
	keeper = neighbour = getppid();
}

static long try_connect(void)
{
	/* Regardless of the number that socket() would return: the filter judges the call
	 * itself. */
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/nowhere" };

	return connect(0, (struct sockaddr *)&address, sizeof(address));
}

static long try_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long try_unix_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long try_execve(void)
{
	char *none[] = { NULL };

	return execve("/nowhere", none, none);
}

static long try_fork(void)
{
	pid_t pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(0);
	return pid;
}

static long try_map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0) == MAP_FAILED
		       ? -1
		       : 0;
}

static long try_protect_code(void)
{
	void *page = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? 0 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static long try_open(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static long try_trace(void)
{
	return ptrace(PTRACE_ATTACH, -1, NULL, NULL);
}

static long try_kill(void)
{
	return kill(keeper, 0);
}

static long read_process(pid_t pid)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { read_process, 1 };

	return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

static long try_read_keeper(void)
{
	return read_process(keeper);
}

static long try_read_neighbour(void)
{
	return read_process(neighbour);
}

static long open_of(pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd;
}

/* Any one is enough: memories, doorbells, control sockets are all there. */
static long open_descriptor_of(pid_t pid)
{
	char name[16];
	long r = -1;

	for (int fd = 3; fd < 64 && r < 0; fd++) {
		snprintf(name, sizeof(name), "fd/%d", fd);
		r = open_of(pid, name, O_RDWR);
		if (r < 0 && errno != ENOENT && errno != ENXIO)
			return r;
	}
	return r;
}

static long try_memory_of_keeper(void)
{
	return open_of(keeper, "mem", O_RDWR);
}

static long try_memory_of_neighbour(void)
{
	return open_of(neighbour, "mem", O_RDWR);
}

static long try_list_of_keeper(void)
{
	return open_of(keeper, "fd", O_RDONLY | O_DIRECTORY);
}

static long try_descriptor_of_keeper(void)
{
	return open_descriptor_of(keeper);
}

static long try_descriptor_of_neighbour(void)
{
	return open_descriptor_of(neighbour);
}

static long try_environment_of_keeper(void)
{
	return open_of(keeper, "environ", O_RDONLY);
}

static long try_command_of_keeper(void)
{
	return open_of(keeper, "cmdline", O_RDONLY);
}

static long try_limit_of_keeper(void)
{
	struct rlimit limit;

	return syscall(SYS_prlimit64, keeper, RLIMIT_NOFILE, NULL, &limit);
}

static long try_set_limit_of_keeper(void)
{
	struct rlimit limit = { 4096, 4096 };

	syscall(SYS_prlimit64, keeper, RLIMIT_NOFILE, NULL, &limit);
	return syscall(SYS_prlimit64, keeper, RLIMIT_NOFILE, &limit, NULL);
}

static long try_affinity_of_keeper(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	syscall(SYS_sched_getaffinity, keeper, sizeof(set), &set);
	return syscall(SYS_sched_setaffinity, keeper, sizeof(set), &set);
}

/* Of the log's pipe, and for itself: the commands are judged. */
static long try_signal_owner(void)
{
	return fcntl(STDERR_FILENO, F_SETOWN, getpid());
}

static long try_signal_number(void)
{
	return fcntl(STDERR_FILENO, F_SETSIG, SIGURG);
}

static long try_signal_async(void)
{
	return fcntl(STDIN_FILENO, F_SETFL, O_ASYNC);
}

static long try_signal_async_ioctl(void)
{
	int off = 0;

	return ioctl(STDERR_FILENO, FIOASYNC, &off);
}

/* The kernel takes 32 bits of the number. */
static long try_signal_wide_ioctl(void)
{
	int off = 0;

	return syscall(SYS_ioctl, STDERR_FILENO, FIOASYNC | 1ul << 32, &off);
}

static long try_lease(void)
{
	return fcntl(STDIN_FILENO, F_SETLEASE, F_UNLCK);
}

static long try_notify(void)
{
	return fcntl(STDIN_FILENO, F_NOTIFY, 0);
}

static long create_in(const char *folder)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/vgpu-probe-%d", folder, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	return fd;
}

static long try_create_shm(void)
{
	return create_in("/dev/shm");
}

static long try_create_tmp(void)
{
	return create_in("/tmp");
}

static long try_unnamed_file(void)
{
	return open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

static long try_memory_file(void)
{
	int fd = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? fd : write(fd, "x", 1);
}

static long try_shared_memory(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0) == MAP_FAILED
		       ? -1
		       : 0;
}

static int end_at_once(void *data)
{
	return 0;
}

/* A thread that is more than a thread. */
static long clone_with(int flags)
{
	static char stack[STACK_SIZE] __attribute__((__aligned__(16)));
	pid_t pid = clone(end_at_once, stack + sizeof(stack),
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | flags,
		NULL);

	/* It is on the stack that the next one has. */
	if (pid > 0)
		usleep(50000);
	return pid;
}

static long try_clone_uts(void)
{
	return clone_with(CLONE_NEWUTS);
}

static long try_clone_ipc(void)
{
	return clone_with(CLONE_NEWIPC);
}

static long try_clone_cgroup(void)
{
	return clone_with(CLONE_NEWCGROUP);
}

/* Anybody may: only the filter refuses it. */
static long try_clone_untraced(void)
{
	return clone_with(CLONE_UNTRACED);
}

static long try_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static long try_mount(void)
{
	return syscall(SYS_mount, "none", "/nowhere", "tmpfs", 0, NULL);
}

static long try_become_root(void)
{
	return setresuid(0, 0, 0);
}

static long try_raise_limit(void)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };

	return setrlimit(RLIMIT_NOFILE, &limit);
}

static long try_load_program(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_io_uring(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static const struct attempt {
	const char *name;
	long (*run)(void);
} attempts[] = {
	{ "connect", try_connect },
	{ "socket", try_socket },
	{ "unix-socket", try_unix_socket },
	{ "execve", try_execve },
	{ "fork", try_fork },
	{ "map-code", try_map_code },
	{ "protect-code", try_protect_code },
	{ "open", try_open },
	{ "trace", try_trace },
	{ "kill", try_kill },
	{ "read-keeper", try_read_keeper },
	{ "read-neighbour", try_read_neighbour },
	{ "memory-of-keeper", try_memory_of_keeper },
	{ "memory-of-neighbour", try_memory_of_neighbour },
	{ "list-of-keeper", try_list_of_keeper },
	{ "descriptor-of-keeper", try_descriptor_of_keeper },
	{ "descriptor-of-neighbour", try_descriptor_of_neighbour },
	{ "environment-of-keeper", try_environment_of_keeper },
	{ "command-of-keeper", try_command_of_keeper },
	{ "limit-of-keeper", try_limit_of_keeper },
	{ "set-limit-of-keeper", try_set_limit_of_keeper },
	{ "affinity-of-keeper", try_affinity_of_keeper },
	{ "signal-owner", try_signal_owner },
	{ "signal-number", try_signal_number },
	{ "signal-async", try_signal_async },
	{ "signal-async-ioctl", try_signal_async_ioctl },
	{ "signal-wide-ioctl", try_signal_wide_ioctl },
	{ "lease", try_lease },
	{ "notify", try_notify },
	{ "create-shm", try_create_shm },
	{ "create-tmp", try_create_tmp },
	{ "unnamed-file", try_unnamed_file },
	{ "memory-file", try_memory_file },
	{ "shared-memory", try_shared_memory },
	{ "clone-uts", try_clone_uts },
	{ "clone-ipc", try_clone_ipc },
	{ "clone-cgroup", try_clone_cgroup },
	{ "clone-untraced", try_clone_untraced },
	{ "namespace", try_namespace },
	{ "mount", try_mount },
	{ "become-root", try_become_root },
	{ "raise-limit", try_raise_limit },
	{ "load-program", try_load_program },
	{ "io-uring", try_io_uring },
};

/* One write(2): what else dprintf() would ask of the kernel is refused. */
static void say(const char *name, const char *outcome)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "probe %s: %s\n", name, outcome);

	if (write(STDERR_FILENO, line, n) != n)
		abort();
}

static void find_neighbour(void)
{
	const char *path = getenv("PROBE_NEIGHBOUR");
	char text[16] = "";
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0)
		neighbour = atoi(text);
	close(fd);
}

static void *sleep_on(void *data)
{
	for (;;)
		sleep(1000);
	return data;
}

static void take_threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	char text[32];
	int n = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	while (n < THREADS_MAX && !pthread_create(&thread, &attributes, sleep_on, NULL))
		n++;
	snprintf(text, sizeof(text), "%d", n);
	say("threads", text);
}

/* Returns: MiB in unmapped memory files, including files of vgpud. */
static unsigned long fill_files(void)
{
	static char bytes[1 << 20];
	unsigned long n = 0;

	memset(bytes, 1, sizeof(bytes));
	for (int i = 0; i < HOARD_FILES; i++) {
		int fd = memfd_create("hoard", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		for (unsigned long size = 0; fd >= 0 && size < HOARD_SIZE;
			size += sizeof(bytes)) {
			if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
				break;
			n++;
		}
	}
	return n;
}

static void take_files(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", fill_files());
	say("hoard", text);
}

static void attempt_all(void)
{
	find_neighbour();
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		long r = attempts[i].run();

		say(attempts[i].name, r >= 0 ? "done" : strerrorname_np(errno));
	}
}

CUresult cuCtxSynchronize(void)
{
	const char *what = getenv("PROBE");

	if (!what)
		attempt_all();
	else if (!strcmp(what, "threads"))
		take_threads();
	else
		take_files();
	say("all", "over");
	return CUDA_SUCCESS;
}
