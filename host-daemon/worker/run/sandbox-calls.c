/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox calls: the system calls a worker may still make
 *
 * The common list has no call with a path, an address of another process or of the
 * network, and none that makes memory executable. Calls whose arguments matter are in
 * sandbox-filter.c: clone, tgkill, prctl; in the strict profile mmap, mprotect, fcntl; in
 * the driver's fcntl, ioctl, open, openat, prlimit64, sched_setaffinity. NVIDIA's driver
 * may in addition use files and executable memory, but no sockets either.
 */

#include <stddef.h>

#include "worker/run/sandbox-calls.h"

const char *const sandbox_calls_common[] = {
	/* Descriptors it holds: control socket, doorbells, log. */
	"read",
	"readv",
	"write",
	"writev",
	"preadv2",
	"close",
	"poll",
	"ppoll",
	"recvmsg",
	"sendmsg",
	/* Memory; that which was executable before stays so. */
	"brk",
	"madvise",
	"mremap",
	"munmap",
	/* Threads and their sleep. */
	"exit",
	"exit_group",
	"futex",
	"getpid",
	"gettid",
	"rseq",
	"sched_getaffinity",
	"sched_yield",
	"set_robust_list",
	"set_tid_address",
	/* Its own signals. */
	"restart_syscall",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sigaltstack",
	/* Time and chance. */
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"getrandom",
	"gettimeofday",
	"nanosleep",
	NULL,
};

const char *const sandbox_calls_driver[] = {
	/* Its device files, /proc and /sys, libraries that it loads late. */
	"access",
	"faccessat",
	"faccessat2",
	"fstat",
	"fstatfs",
	"getdents64",
	"lseek",
	"newfstatat",
	"pread64",
	"readlink",
	"readlinkat",
	"stat",
	"statfs",
	"statx",
	"uname",
	/* Memory that it shares with the device, and code that it makes. */
	"fallocate",
	"ftruncate",
	"get_mempolicy",
	"mbind",
	"memfd_create",
	"mincore",
	"mlock",
	"mlock2",
	"mmap",
	"mprotect",
	"msync",
	"munlock",
	"set_mempolicy",
	/* Its own events. */
	"dup",
	"dup2",
	"dup3",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_wait",
	"eventfd2",
	"pipe2",
	"timerfd_create",
	"timerfd_settime",
	/* Queries about itself. */
	"capget",
	"getcpu",
	"getegid",
	"geteuid",
	"getgid",
	"getppid",
	"getpriority",
	"getrlimit",
	"getrusage",
	"getuid",
	"sched_getparam",
	"sched_getscheduler",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"sysinfo",
	"times",
	NULL,
};
