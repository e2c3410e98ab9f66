/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library of older guests
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "glibc/glibc.h"

#include "test.h"

TEST(stat_is_that_of_the_c_library)
{
	struct stat64 is;
	struct stat should_be;

	memset(&is, 0xff, sizeof(is));
	check_eq(__wrap_stat64("/proc/self/exe", &is), 0);
	check_eq(stat("/proc/self/exe", &should_be), 0);
	check_eq(is.st_ino, should_be.st_ino);
	check_eq(is.st_size, should_be.st_size);
	check_eq(is.st_mode, should_be.st_mode);
	check_eq(is.st_uid, should_be.st_uid);
	check_eq(is.st_mtim.tv_nsec, should_be.st_mtim.tv_nsec);
	check_eq(__wrap_stat64("/nothing/there", &is), -1);
	check_eq(errno, ENOENT);
	memset(&is, 0xff, sizeof(is));
	check_eq(__wrap_fstat64(0, &is), 0);
	check_eq(fstat(0, &should_be), 0);
	check_eq(is.st_ino, should_be.st_ino);
	check_eq(__wrap_fstat64(-1, &is), -1);
	check_eq(errno, EBADF);
}

TEST(symbols_are_found)
{
	check(__wrap_dlsym(RTLD_DEFAULT, "malloc") == dlsym(RTLD_DEFAULT, "malloc"));
	check(!__wrap_dlsym(RTLD_DEFAULT, "no_such_function"));
}

struct sleeper {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool is_asleep;
	bool is_woken;
	int result;
};

static struct timespec from_now(int ms)
{
	struct timespec time;
	int64_t end;

	clock_gettime(CLOCK_MONOTONIC, &time);
	end = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec + ms * INT64_C(1000000);
	return (struct timespec){ end / 1000000000, end % 1000000000 };
}

static void *sleep_long(void *data)
{
	const struct timespec until = from_now(3600 * 1000);
	struct sleeper *sleeper = data;

	pthread_mutex_lock(&sleeper->lock);
	sleeper->is_asleep = true;
	while (!sleeper->is_woken && !sleeper->result)
		sleeper->result = shim_old_clockwait(
			&sleeper->cond, &sleeper->lock, CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&sleeper->lock);
	return sleeper;
}

TEST(converted_wait_is_woken)
{
	struct sleeper sleeper = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
	bool is_asleep = false;
	pthread_t thread;
	void *returned;

	check_eq(__wrap_pthread_create(&thread, NULL, sleep_long, &sleeper), 0);
	while (!is_asleep) {
		/* The lock is free only before and while the thread sleeps. */
		pthread_mutex_lock(&sleeper.lock);
		is_asleep = sleeper.is_asleep;
		sleeper.is_woken = is_asleep;
		pthread_cond_signal(&sleeper.cond);
		pthread_mutex_unlock(&sleeper.lock);
	}
	check_eq(__wrap_pthread_join(thread, &returned), 0);
	check(returned == &sleeper);
	check_eq(sleeper.result, 0);
}

static void wait_until(shim_clockwait_fn *clockwait, int ms)
{
	struct sleeper sleeper = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
	const struct timespec until = from_now(ms);

	pthread_mutex_lock(&sleeper.lock);
	while (!sleeper.result)
		sleeper.result =
			clockwait(&sleeper.cond, &sleeper.lock, CLOCK_MONOTONIC, &until);
	check_eq(sleeper.result, ETIMEDOUT);
	pthread_mutex_unlock(&sleeper.lock);
}

TEST(waits_end_at_their_time)
{
	static const int ms[] = { -1500, -1, 0, 1, 40, 1100 };

	for (size_t i = 0; i < sizeof(ms) / sizeof(*ms); i++) {
		wait_until(shim_old_clockwait, ms[i]);
		wait_until(__wrap_pthread_cond_clockwait, ms[i]);
	}
}
