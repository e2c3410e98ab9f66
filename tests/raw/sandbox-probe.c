/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox probe: a driver that tries to get out of its worker
 *
 * The null driver with another cuCtxSynchronize(), which does what a guest that has
 * taken a worker over would try first, and says on the log how each attempt ended. None
 * of them does harm where nothing refuses it.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static long try_connect(void)
{
	/* Whatever number socket() would have had: the call itself is judged. */
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
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

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
	return kill(getppid(), 0);
}

static long try_read_other(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { try_read_other, 1 };

	return process_vm_readv(getppid(), &here, 1, &there, 1, 0);
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
	{ "read-other", try_read_other },
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

CUresult cuCtxSynchronize(void)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		long r = attempts[i].run();

		say(attempts[i].name, r >= 0 ? "done" : strerrorname_np(errno));
	}
	say("all", "over");
	return CUDA_SUCCESS;
}
