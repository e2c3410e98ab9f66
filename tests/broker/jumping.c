/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into vgpud: the time of day is set by years, forwards and backwards, each
 * time somebody looks at it
 *
 * Clocks that nobody can set are left alone. The first look of each process has the right
 * time, and creates the file VGPU_JUMPED/PID, so that a test sees that it is in effect.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define YEAR (365 * 24 * 3600)

static long offset(void)
{
	static const long offsets[] = { 0, 10 * YEAR, -5 * YEAR, 3600, -3600, -30 * YEAR,
		1, -1 };
	static unsigned int n;
	const unsigned int i = __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED);
	const char *folder = getenv("VGPU_JUMPED");
	char path[256];

	if (!i && folder) {
		snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	return offsets[i % (sizeof(offsets) / sizeof(*offsets))];
}

#pragma GCC visibility push(default)

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	const int r = real(clock, now);

	if (!r && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += offset();
	return r;
}

time_t time(time_t *nowp)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	if (nowp)
		*nowp = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	tv->tv_sec = now.tv_sec;
	tv->tv_usec = now.tv_nsec / 1000;
	return 0;
}

#pragma GCC visibility pop
