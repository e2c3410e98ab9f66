/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Waking, and sleeping until woken
 *
 * All that wakes another thread or process goes through here, and nobody relies on it: a
 * wake-up may be lost where processors reorder what an emulator should have kept in
 * order, where a device drops an interrupt, or by an error in the C library (signals of
 * condition variables in glibc before 2.41). So who sleeps does it in naps: a bounded
 * time, and then another look at what it waits for, and who sleeps again sleeps longer.
 *
 * Which wake-ups are lost is decided in a file of its own: none, in wake-kept.c, and in
 * the copies of the programs that a test runs half of them, in wake-lost.c.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The first nap is longer than most waits, and the last so long that thousands of
 * threads which nap cost nothing. */
#define VGPU_NAP_MIN_MS 20u
#define VGPU_NAP_MAX_MS 1000u

/* How long was slept last; starts as {}, for each wait anew. */
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

/* Sleeps while the word, which is this process's own, has that value, at most so long. */
void vgpu_nap_word(uint32_t *word, uint32_t value, uint32_t ms);

/* Wakes those who sleep on a word by futex(2): that many, in this process or in any. */
void vgpu_wake_word(uint32_t *word, int n);
void vgpu_wake_shared_word(uint32_t *word, int n);

/* pthread_cond_signal() and pthread_cond_broadcast(). */
void vgpu_wake_one(pthread_cond_t *cond);
void vgpu_wake_all(pthread_cond_t *cond);

/* Adds one to an eventfd. Return: 0 or -errno; a full counter wakes too. */
int vgpu_wake_eventfd(int fd);

/* For wake-ups of other kinds. Returns: whether this one is not to be made. */
bool vgpu_wake_is_lost(void);
