/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program, and kills it before one of its system calls that others can notice
 *
 *	kill-at NUMBER PROGRAM [ARGUMENT...]
 *
 * Only those calls count, from 1, and only after the program has connected a socket: what
 * happens before is the same for all programs. Exit status: 0: it was killed; 1: it ended
 * before, with 0; 2: it failed; 77: it cannot be traced here.
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t calls[] = { SYS_connect, SYS_fchmod, SYS_flock, SYS_fsync,
	SYS_mkdirat, SYS_openat, SYS_recvmsg, SYS_sendmsg, SYS_sendto, SYS_unlinkat,
	SYS_write,
#ifdef SYS_mkdir
	SYS_mkdir,
#endif
#ifdef SYS_renameat
	SYS_renameat,
#endif
	SYS_renameat2 };

static bool is_counted(uint64_t nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i] == nr)
			return true;
	return false;
}

static int end(pid_t pid, int code)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return code;
}

/* Return: whether the process is at the beginning of the call that is its last. */
static bool is_last(pid_t pid, unsigned long *leftp, bool *is_connectedp)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	*is_connectedp |= info.entry.nr == SYS_connect;
	return *is_connectedp && is_counted(info.entry.nr) && !--*leftp;
}

static int follow(pid_t pid, unsigned long left)
{
	bool is_connected = false;
	int status, number = 0;

	if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
		    PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
		return end(pid, 77);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, number) < 0 ||
			waitpid(pid, &status, 0) != pid)
			return end(pid, 2);
		if (WIFEXITED(status))
			return WEXITSTATUS(status) ? 2 : 1;
		if (!WIFSTOPPED(status))
			return 2;
		number = WSTOPSIG(status) & 0x80 || WSTOPSIG(status) == SIGTRAP
				 ? 0
				 : WSTOPSIG(status);
		if (WSTOPSIG(status) & 0x80 && is_last(pid, &left, &is_connected))
			return end(pid, 0);
	}
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 3)
		return 2;
	pid = fork();
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		execv(argv[2], argv + 2);
		_exit(2);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	/* It stops as it executes the program. */
	return WIFSTOPPED(status) ? follow(pid, strtoul(argv[1], NULL, 10))
				  : WEXITSTATUS(status);
}
