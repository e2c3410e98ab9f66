/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking, and sleeping until woken
 */

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/wake.h"

static struct timespec end_of(struct vgpu_nap *nap)
{
	uint32_t ms = vgpu_nap_ms(nap);
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	return end;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

void vgpu_nap_cond(struct vgpu_nap *nap, pthread_cond_t *cond, pthread_mutex_t *lock)
{
	const struct timespec end = end_of(nap);

	pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &end);
}

int vgpu_nap_cond_until(struct vgpu_nap *nap, pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *until)
{
	const struct timespec end = end_of(nap);

	if (is_before(&end, until)) {
		pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &end);
		return 0;
	}
	return -pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, until);
}

void vgpu_nap_word(uint32_t *word, uint32_t value, uint32_t ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

void vgpu_nap_shared_word(uint32_t *word, uint32_t value, uint32_t ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

void vgpu_wake_word(uint32_t *word, int n)
{
	if (!vgpu_wake_is_lost())
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void vgpu_wake_shared_word(uint32_t *word, int n)
{
	if (!vgpu_wake_is_lost())
		syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

void vgpu_wake_one(pthread_cond_t *cond)
{
	if (!vgpu_wake_is_lost())
		pthread_cond_signal(cond);
}

void vgpu_wake_all(pthread_cond_t *cond)
{
	if (!vgpu_wake_is_lost())
		pthread_cond_broadcast(cond);
}

int vgpu_wake_eventfd(int fd)
{
	const uint64_t one = 1;
	ssize_t n;

	if (vgpu_wake_is_lost())
		return 0;
	do
		n = write(fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
	return n < 0 && errno != EAGAIN ? -errno : 0;
}
