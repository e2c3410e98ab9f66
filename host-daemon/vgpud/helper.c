/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper: threads for long system calls
 */

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "vgpud/helper.h"
#include "vgpu/error.h"

int helper_start(pthread_t *threadp, void *(*fn)(void *data), void *data)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(threadp, NULL, fn, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r ? vgpu_error_origin(-r) : 0;
}

void helper_lower_priority(void)
{
	/* On Linux this is the priority of the thread; lowering it is always
	 * permitted. */
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) < 0 && !errno)
		setpriority(PRIO_PROCESS, 0, 0);
}
