/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lock of the shim: a futex with a bounded spin
 *
 * Held for some tens of nanoseconds by those who put a frame on the ring, so that a
 * short spin nearly always does. Nothing that can fault, block or be cancelled happens
 * while one is held. A forked child never takes one: it is turned away before.
 *
 *	0	free
 *	1	taken
 *	2	taken, and somebody may be asleep
 */

#include <stdbool.h>
#include <stdint.h>

struct shim_lock {
	uint32_t state;
};

#define SHIM_LOCK_INIT                                                                   \
	{                                                                                \
		0                                                                        \
	}

void shim_lock_slow(struct shim_lock *lock);
void shim_lock_wake(struct shim_lock *lock);

static inline void shim_lock(struct shim_lock *lock)
{
	uint32_t free_state = 0;

	if (__builtin_expect(!__atomic_compare_exchange_n(&lock->state, &free_state, 1,
				     false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
		    0))
		shim_lock_slow(lock);
}

static inline void shim_unlock(struct shim_lock *lock)
{
	if (__builtin_expect(
		    __atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2, 0))
		shim_lock_wake(lock);
}

static inline void shim_unlockp(struct shim_lock **lock)
{
	shim_unlock(*lock);
}

/* Holds a lock until the end of the scope; stands last among its declarations. */
#define SHIM_LOCKED(_lock)                                                               \
	__attribute__((__cleanup__(shim_unlockp),                                        \
		__unused__)) struct shim_lock *locked_ = (shim_lock(_lock), (_lock))
