/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library of older guests
 *
 * A linker binds each function to the newest version that the C library of the build
 * has, and then the guest needs one as new, although the older versions would do: glibc
 * 2.34 moved all of libpthread and libdl into libc.so.6, with new versions. For the
 * functions here the linker is told --wrap, so that the guest's files call what is
 * below, which is bound to the versions of glibc 2.2.5 to 2.28, in libpthread.so.0 and
 * libdl.so.2: see stand-in.c.
 *
 * It is compiled without optimisation at link time, which would lose .symver.
 */

#include <dlfcn.h>
#include <stdint.h>

#include "glibc.h"
#include "old.h"

OLD(__pthread_register_cancel, "2.3.3")
OLD(__pthread_unregister_cancel, "2.3.3")
OLD(__pthread_unwind_next, "2.3.3")
OLD(dladdr, "2.2.5")
OLD(dlclose, "2.2.5")
OLD(dlerror, "2.2.5")
OLD(dlinfo, "2.3.3")
OLD(dlopen, "2.2.5")
OLD(dlsym, "2.2.5")
OLD(pthread_attr_getstack, "2.2.5")
OLD(pthread_create, "2.2.5")
OLD(pthread_getattr_np, "2.2.5")
OLD(pthread_join, "2.2.5")
OLD(pthread_key_create, "2.2.5")
OLD(pthread_once, "2.2.5")
OLD(pthread_setspecific, "2.2.5")
OLD(pthread_sigmask, "2.2.5")

/* What stat() was before glibc 2.33, with its version of the struct. */

#define STAT_VERSION 1

int __xstat64(int version, const char *path, struct stat64 *stat);
int __fxstat64(int version, int fd, struct stat64 *stat);

int __wrap_stat64(const char *path, struct stat64 *stat)
{
	return __xstat64(STAT_VERSION, path, stat);
}

int __wrap_fstat64(int fd, struct stat64 *stat)
{
	return __fxstat64(STAT_VERSION, fd, stat);
}

/* Waiting by CLOCK_MONOTONIC came with glibc 2.30. */

static shim_clockwait_fn *clockwait = shim_old_clockwait;

/* When the library is loaded: later the loader's lock could be another thread's. */
__attribute__((constructor)) static void find_clockwait(void)
{
	void *found = __wrap_dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");

	if (found)
		clockwait = (shim_clockwait_fn *)found;
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	clockid_t clock, const struct timespec *until)
{
	return clockwait(cond, lock, clock, until);
}

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static int64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return nanoseconds(&time);
}

int shim_old_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
	const struct timespec *until)
{
	struct timespec end;
	int64_t time = nanoseconds(until) - now(clock) + now(CLOCK_REALTIME);

	end.tv_sec = time / 1000000000;
	end.tv_nsec = time % 1000000000;
	return pthread_cond_timedwait(cond, lock, &end);
}
