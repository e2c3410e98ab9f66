/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox calls: the system calls that a worker may make
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
	/* Descriptors it holds: control socket, doorbells, log, memory files. */
	"read",
	"readv",
	"write",
	"writev",
	"preadv2",
	"lseek",
	"close",
	"poll",
	"ppoll",
	"recvmsg",
	"sendmsg",
	/* Memory; executable mappings remain. */
	"brk",
	"madvise",
	"mremap",
	"munmap",
	/* Threads and sleeping. */
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
	/* Signal handlers and masks. */
	"restart_syscall",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sigaltstack",
	/* Time and random numbers. */
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"getrandom",
	"gettimeofday",
	"nanosleep",
	NULL,
};

const char *const sandbox_calls_driver[] = {
	/* Device files, /proc and /sys, libraries that are loaded late. */
	"access",
	"faccessat",
	"faccessat2",
	"fstat",
	"fstatfs",
	"getdents64",
	"newfstatat",
	"pread64",
	"readlink",
	"readlinkat",
	"stat",
	"statfs",
	"statx",
	"uname",
	/* Memory shared with the device, and generated code. */
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
	/* Event descriptors. */
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
	/* Queries about the process. */
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
