/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, by kernels of all ages and by this one
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "worker/run/landlock.h"
#include "worker/run/sandbox-files.h"

/* A kernel whose interface has that version, and the rights it was asked for. */
static struct {
	int abi;
	int error; /* of what is not the question for the version */
	unsigned long size;
	uint64_t attributes[3];
	unsigned int n_rules, n_restricted;
	uint64_t access; /* of the last rule */
} kernel;

static long fail(void)
{
	errno = kernel.error;
	return -1;
}

static long create(const void *attributes, unsigned long size, uint32_t flags)
{
	if (flags) {
		if (kernel.abi > 0)
			return kernel.abi;
		errno = kernel.abi < 0 ? EOPNOTSUPP : ENOSYS;
		return -1;
	}
	if (kernel.error)
		return fail();
	check(size <= sizeof(kernel.attributes));
	kernel.size = size;
	memset(kernel.attributes, 0, sizeof(kernel.attributes));
	memcpy(kernel.attributes, attributes, size);
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* As the kernel does: a rule has rights that the ruleset is about. */
static long add(int ruleset, int type, const void *rule, uint32_t flags)
{
	check_eq(type, 1);
	memcpy(&kernel.access, rule, sizeof(kernel.access));
	check(kernel.access != 0);
	check_eq(kernel.access & ~kernel.attributes[0], 0);
	kernel.n_rules++;
	return kernel.error ? fail() : 0;
}

static long restrict_self(int ruleset, uint32_t flags)
{
	kernel.n_restricted++;
	return kernel.error ? fail() : 0;
}

static const struct landlock_kernel fake = { create, add, restrict_self };

static void check_asked(
	int abi, unsigned long size, uint64_t fs, uint64_t net, uint64_t scope)
{
	struct landlock landlock;

	kernel.abi = abi;
	check_eq(landlock_init(&landlock, &fake), 0);
	check_eq(kernel.size, size);
	check_eq(kernel.attributes[0], fs);
	check_eq(kernel.attributes[1], net);
	check_eq(kernel.attributes[2], scope);
	/* A folder of devices, with all that may be asked for. */
	check_eq(landlock_allow(&landlock, "/dev",
			 LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_IOCTL),
		0);
	check_eq(kernel.access, abi >= 5 ? 0x800e : 0xe);
	check_eq(landlock_allow(&landlock, "/dev/null", LANDLOCK_READ), 0);
	check_eq(kernel.access, 0x4);
	check_eq(landlock_enforce(&landlock), 0);
	landlock_deinit(&landlock);
}

TEST(each_kernel_is_asked_for_all_that_it_knows)
{
	check_asked(1, 8, 0x1fff, 0, 0);
	check_asked(2, 8, 0x3fff, 0, 0);
	check_asked(3, 8, 0x7fff, 0, 0);
	check_asked(4, 16, 0x7fff, 3, 0);
	check_asked(5, 16, 0xffff, 3, 0);
	check_asked(6, 24, 0xffff, 3, 3);
	/* Rights of later versions are not used, and do no harm. */
	check_asked(99, 24, 0xffff, 3, 3);
	check_eq(kernel.n_restricted, 7);
}

TEST(a_kernel_without_it_is_no_error)
{
	struct landlock landlock;

	kernel.abi = 0;
	check_eq(landlock_init(&landlock, &fake), LANDLOCK_E_ABSENT);
	kernel.abi = -1;
	check_eq(landlock_init(&landlock, &fake), LANDLOCK_E_ABSENT);
	landlock_deinit(&landlock);
}

TEST(a_kernel_that_refuses_is_an_error)
{
	struct landlock landlock;

	kernel.abi = 6;
	kernel.error = ENOMEM;
	check_eq(landlock_init(&landlock, &fake), -ENOMEM);
	kernel.error = 0;
	check_eq(landlock_init(&landlock, &fake), 0);
	kernel.error = EPERM;
	check_eq(landlock_allow(&landlock, "/", LANDLOCK_READ), -EPERM);
	check_eq(landlock_enforce(&landlock), -EPERM);
	landlock_deinit(&landlock);
}

TEST(paths_that_do_not_exist_have_no_rule)
{
	struct landlock landlock;

	kernel.abi = 6;
	check_eq(landlock_init(&landlock, &fake), 0);
	check_eq(landlock_allow(&landlock, "/nowhere/at/all", LANDLOCK_READ), 0);
	check_eq(landlock_allow_proc(&landlock, "/proc/nowhere"), 0);
	check_eq(kernel.n_rules, 0);
	check_eq(landlock.n_kept, 0);
	check_eq(landlock_allow_proc(&landlock, "/proc/self"), 0);
	check_eq(landlock.n_kept, 1);
	landlock_deinit(&landlock);
	check_eq(landlock.n_kept, 0);
}

/*
 * This kernel
 */

static void require_landlock(void)
{
	struct landlock landlock;

	if (landlock_init(&landlock, &landlock_kernel) == LANDLOCK_E_ABSENT)
		test_skip("this kernel has no Landlock");
	landlock_deinit(&landlock);
}

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void *open_on_another_thread(void *path)
{
	return opens(path, O_RDONLY) ? path : NULL;
}

static bool opens_on_another_thread(const char *path)
{
	void *result = NULL;
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, open_on_another_thread, (void *)path), 0);
	check_eq(pthread_join(thread, &result), 0);
	return result;
}

/* One of our drivers in a folder with other files. */
static void make_folder(char *folder, char *library, char *other)
{
	strcpy(folder, "/tmp/vgpu-landlock-XXXXXX");
	check(mkdtemp(folder) != NULL);
	snprintf(library, 64, "%s/libcuda.so.1", folder);
	snprintf(other, 64, "%s/secret", folder);
	check(opens(library, O_WRONLY | O_CREAT));
	check(opens(other, O_WRONLY | O_CREAT));
}

static void remove_folder(const char *folder, const char *library, const char *other)
{
	unlink(library);
	unlink(other);
	rmdir(folder);
}

static void limit(struct landlock *landlock, const char *library)
{
	const struct driver_options options = { .choice = library };

	check_eq(sandbox_files_limit(landlock, &options), 0);
}

/* Each check runs in its own process: rights cannot be regained. */
static void check_in_child(void (*run)(const char *library, const char *other))
{
	char folder[64], library[64], other[64];
	int status;
	pid_t pid;

	require_landlock();
	make_folder(folder, library, other);
	pid = fork();
	if (!pid) {
		run(library, other);
		_exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	remove_folder(folder, library, other);
	check_eq(status, 0);
}

static void run_limited(const char *library, const char *other)
{
	struct landlock landlock = LANDLOCK_NULL;
	char path[128];

	check(opens(other, O_RDONLY));
	check(opens("/dev/full", O_RDWR));
	limit(&landlock, library);
	/* Rights that drivers need. */
	check(opens(library, O_RDONLY));
	check(opens("/proc/self/maps", O_RDONLY));
	check(opens("/proc/meminfo", O_RDONLY));
	check(opens("/dev/null", O_RDWR));
	check(opens("/sys/devices/system/cpu/online", O_RDONLY));
	/* And what they do not. */
	check(!opens(library, O_RDWR));
	check(!opens(other, O_RDONLY));
	check(!opens("/etc/passwd", O_RDONLY));
	check(!opens("/dev/full", O_RDWR));
	check(!opens("/proc/1/cmdline", O_RDONLY));
	snprintf(path, sizeof(path), "/dev/shm/vgpu-landlock-%d", (int)getpid());
	check(!opens(path, O_RDWR | O_CREAT));
	snprintf(path, sizeof(path), "%s.new", library);
	check(!opens(path, O_RDWR | O_CREAT));
	check(!opens_on_another_thread("/etc/passwd"));
	/* The rule is about a file that the kernel may forget and find anew. */
	check_eq(landlock.n_kept > 0, 1);
	landlock_deinit(&landlock);
}

TEST(a_worker_opens_what_drivers_need_and_nothing_else)
{
	check_in_child(run_limited);
}

static void run_ended(const char *library, const char *other)
{
	struct landlock landlock = LANDLOCK_NULL;

	limit(&landlock, library);
	check_eq(sandbox_files_end(&landlock), 0);
	check(!opens(library, O_RDONLY));
	check(!opens("/proc/self/maps", O_RDONLY));
	check(!opens("/dev/null", O_RDWR));
	check(!opens_on_another_thread("/dev/null"));
}

TEST(a_worker_of_the_strict_profile_opens_nothing)
{
	check_in_child(run_ended);
}

static void run_list(const char *library, const char *other)
{
	struct landlock landlock = LANDLOCK_NULL;
	char list[128];

	snprintf(list, sizeof(list), ":relative:/:%.*s",
		(int)(strrchr(other, '/') - other), other);
	setenv("LD_LIBRARY_PATH", list, 1);
	limit(&landlock, "soft");
	check(opens(other, O_RDONLY));
	check(!opens("/etc/passwd", O_RDONLY));
	landlock_deinit(&landlock);
}

TEST(the_path_of_the_loader_counts_but_for_the_root)
{
	check_in_child(run_list);
}
