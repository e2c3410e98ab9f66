/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of system calls, argument by argument
 *
 * Each check runs in its own process with all rights of the user, so that only the filter
 * refuses anything.
 */

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/log.h"
#include "worker/run/sandbox-filter.h"
#include "worker/run/sandbox.h"

#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define STACK_SIZE 65536

static void check_in_child(enum sandbox_profile profile, void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* Refusals are logged once, which is noise here. */
		vgpu_log_init("test", VGPU_LOG_NONE);
		check_eq(sandbox_filter_load(profile), 0);
		run();
		_exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
}

static bool refused(long r)
{
	return r == -1 && errno == EPERM;
}

static int end_at_once(void *data)
{
	return 0;
}

static long clone_with(int flags)
{
	static char stack[STACK_SIZE] __attribute__((__aligned__(16)));

	return clone(end_at_once, stack + sizeof(stack), THREAD | flags, NULL);
}

static void *do_nothing(void *data)
{
	return data;
}

static void run_common(void)
{
	static const int flags[] = { CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWCGROUP,
		CLONE_NEWNET, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS, CLONE_UNTRACED,
		CLONE_PTRACE, CLONE_PARENT, CLONE_VFORK };
	pthread_t thread;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		check(refused(clone_with(flags[i])));
	check(refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
	check_eq(pthread_create(&thread, NULL, do_nothing, NULL), 0);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(syscall(SYS_clone3, NULL, 0), -1);
	check_eq(errno, ENOSYS);
}

TEST(threads_are_made_and_nothing_else_of_that_kind)
{
	check_in_child(SANDBOX_STRICT, run_common);
	check_in_child(SANDBOX_DRIVER, run_common);
}

static bool maps(int flags, int prot)
{
	return mmap(NULL, 4096, prot, flags, -1, 0) != MAP_FAILED;
}

static void run_strict(void)
{
	check(maps(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE));
	check(!maps(MAP_SHARED | MAP_ANONYMOUS, PROT_READ | PROT_WRITE));
	check(!maps(MAP_SHARED_VALIDATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE));
	check(!maps(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_EXEC));
	check(refused(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
	check(refused(open("/dev/null", O_RDONLY)));
	check(refused(ioctl(0, FIONREAD, NULL)));
	check(refused(fcntl(0, F_GETFL)));
}

TEST(the_strict_profile_makes_no_memory_that_nobody_sees)
{
	check_in_child(SANDBOX_STRICT, run_strict);
}

static void run_fcntl(void)
{
	const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	check(fd >= 0);
	check(fcntl(fd, F_GETFD) >= 0);
	check_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	check(fcntl(fd, F_DUPFD_CLOEXEC, 10) >= 10);
	check(refused(fcntl(fd, F_SETFL, O_ASYNC)));
	check(refused(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK)));
	check(refused(fcntl(fd, F_SETOWN, getpid())));
	check(refused(fcntl(fd, F_SETSIG, SIGURG)));
	check(refused(fcntl(fd, F_SETLEASE, F_UNLCK)));
	check(refused(fcntl(fd, F_NOTIFY, 0)));
}

static void run_ioctl(void)
{
	/* Requests of nvidia.ko have a size, those of nvidia-uvm are small, or begin with
	 * a fixed value. */
	static const unsigned long theirs[] = { 0xc02046d2, 0xc01046ce, 0x1, 0x4b, 0x53ff,
		0x30000001, 0x30000002 };
	static const unsigned long refused_ones[] = { FIOASYNC, 0x8901, 0x8902, TIOCSTI,
		FIOASYNC | 1ul << 32, 0x8901 | 1ul << 40, 0xffff };
	const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++) {
		check_eq(syscall(SYS_ioctl, fd, theirs[i], NULL), -1);
		check_eq(errno, ENOTTY);
	}
	for (size_t i = 0; i < sizeof(refused_ones) / sizeof(*refused_ones); i++)
		check(refused(syscall(SYS_ioctl, fd, refused_ones[i], NULL)));
}

static void run_self(void)
{
	struct rlimit limit;
	cpu_set_t set;

	check_eq(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit), 0);
	check(refused(syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit)));
	/* Also by its own number: only 0 means the calling process. */
	check(refused(syscall(SYS_prlimit64, getpid(), RLIMIT_NOFILE, NULL, &limit)));
	check_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	check_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	check_eq(sched_setaffinity(getpid(), sizeof(set), &set), 0);
	check(refused(sched_setaffinity(getppid(), sizeof(set), &set)));
}

static void run_files(void)
{
	check(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
	check(open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0);
	check(refused(open("/dev/null", O_RDWR | O_CREAT, 0600)));
	check(refused(open("/tmp", O_RDWR | O_TMPFILE, 0600)));
	check(refused(syscall(SYS_open, "/dev/null", O_RDWR | O_CREAT, 0600)));
	check(refused(syscall(SYS_creat, "/dev/null", 0600)));
	check(refused(mkdir("/tmp/vgpu-never", 0700)));
}

TEST(the_driver_profile_commands_nothing_of_others)
{
	check_in_child(SANDBOX_DRIVER, run_fcntl);
	check_in_child(SANDBOX_DRIVER, run_ioctl);
	check_in_child(SANDBOX_DRIVER, run_self);
}

TEST(the_driver_profile_makes_no_files)
{
	check_in_child(SANDBOX_DRIVER, run_files);
}
