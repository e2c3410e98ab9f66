/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Wake-ups, and sleeping until one
 *
 * Every wake-up of another thread or process uses these functions, and none is relied on:
 * a wake-up may be lost where an emulator reorders a guest's memory accesses, where a
 * device drops an interrupt, or by an error in the C library (condition variables in
 * glibc before 2.41). So a waiter sleeps in naps: for a bounded time, after which it
 * checks its condition again, and each nap is longer than the one before.
 *
 * A separate file decides which wake-ups are lost: none in wake-kept.c, and half of
 * them in wake-lost.c, in the copies of the programs that a test runs.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The first nap is longer than most waits, and the last so long that thousands of napping
 * threads cost nothing. */
#define VGPU_NAP_MIN_MS 20u
#define VGPU_NAP_MAX_MS 1000u

/* The duration of the last nap; {} at the start of each wait. */
struct vgpu_nap {
	uint32_t ms;
};

/* Returns: how long to sleep now, in ms: at first `min`, then twice as long each time. */
static inline uint32_t vgpu_nap_next(struct vgpu_nap *nap, uint32_t min, uint32_t max)
{
	nap->ms = nap->ms ? 2 * nap->ms : min;
	if (nap->ms > max)
		nap->ms = max;
	return nap->ms;
}

static inline uint32_t vgpu_nap_ms(struct vgpu_nap *nap)
{
	return vgpu_nap_next(nap, VGPU_NAP_MIN_MS, VGPU_NAP_MAX_MS);
}

/* Waits on a condition variable, whose lock is held; returns also for no reason. */
void vgpu_nap_cond(struct vgpu_nap *nap, pthread_cond_t *cond, pthread_mutex_t *lock);

/* The same, up to a time of CLOCK_MONOTONIC. Return: 0, or -ETIMEDOUT then. */
int vgpu_nap_cond_until(struct vgpu_nap *nap, pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *until);

/* Sleeps while the word, which is private to this process, has that value, for at most
 * that time. */
void vgpu_nap_word(uint32_t *word, uint32_t value, uint32_t ms);

/* The same for a word that processes share. */
void vgpu_nap_shared_word(uint32_t *word, uint32_t value, uint32_t ms);

/* Wakes up to that many threads, of this or any process, that sleep on a word by
 * futex(2). */
void vgpu_wake_word(uint32_t *word, int n);
void vgpu_wake_shared_word(uint32_t *word, int n);

/* pthread_cond_signal() and pthread_cond_broadcast(). */
void vgpu_wake_one(pthread_cond_t *cond);
void vgpu_wake_all(pthread_cond_t *cond);

/* Adds one to an eventfd. Return: 0 or -errno; a full counter wakes too. */
int vgpu_wake_eventfd(int fd);

/* For wake-ups of other kinds. Returns: whether this one is not to be made. */
bool vgpu_wake_is_lost(void);
