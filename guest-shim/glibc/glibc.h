/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The C library of older guests
 */

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

typedef int shim_clockwait_fn(pthread_cond_t *cond, pthread_mutex_t *lock,
	clockid_t clock, const struct timespec *until);

/*
 * pthread_cond_clockwait() where there is none. The time is converted: if CLOCK_REALTIME
 * is set meanwhile, the wait ends earlier or later. Sleepers nap (vgpu/wake.h), so an
 * early end is one more look at their condition.
 */
shim_clockwait_fn shim_old_clockwait;

/* In the place of the linker's. */
shim_clockwait_fn __wrap_pthread_cond_clockwait;
int __wrap_stat64(const char *path, struct stat64 *stat);
int __wrap_fstat64(int fd, struct stat64 *stat);
void *__wrap_dlsym(void *handle, const char *name);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
	void *(*start)(void *data), void *data);
int __wrap_pthread_join(pthread_t thread, void **result);
