/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lock of the shim: a futex with a bounded spin
 *
 * Held for some tens of nanoseconds by the thread that puts a frame on the ring, so a
 * short spin nearly always suffices. Nothing that can fault, block or be cancelled
 * happens while one is held. A forked child never takes one: it is turned away before.
 *
 * Releasing the lock is a plain store. An atomic exchange, which the usual futex lock
 * needs to learn of waiters, would wait until every store before it has reached the other
 * side's cache, and the last of these is the ring's tail, which the host reads all the
 * time. Without it a waiter's announcement and the release can miss each other, but only
 * within the time that a store spends in a store buffer. So a waiter never sleeps for
 * longer than SLEEP_MAX_MS before it looks again.
 */

#include <stdbool.h>
#include <stdint.h>

struct shim_lock {
	uint32_t is_held;
	uint32_t has_waiters; /* maybe; what waiters sleep on */
};

#define SHIM_LOCK_INIT                                                                   \
	{                                                                                \
		0, 0                                                                     \
	}

void shim_lock_slow(struct shim_lock *lock);
void shim_lock_wake(struct shim_lock *lock);

static inline bool shim_trylock(struct shim_lock *lock)
{
	uint32_t is_held = 0;

	return __atomic_compare_exchange_n(
		&lock->is_held, &is_held, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void shim_lock(struct shim_lock *lock)
{
	if (__builtin_expect(!shim_trylock(lock), 0))
		shim_lock_slow(lock);
}

static inline void shim_unlock(struct shim_lock *lock)
{
	__atomic_store_n(&lock->is_held, 0, __ATOMIC_RELEASE);
	/* The compiler keeps the order; the processor may not, see above. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* Partner: the exchange in shim_lock_slow(). */
	if (__builtin_expect(__atomic_load_n(&lock->has_waiters, __ATOMIC_RELAXED), 0))
		shim_lock_wake(lock);
}

static inline void shim_unlockp(struct shim_lock **lock)
{
	shim_unlock(*lock);
}

/* Holds a lock until the end of the scope; the last of its declarations. */
#define SHIM_LOCKED(_lock)                                                               \
	__attribute__((__cleanup__(shim_unlockp),                                        \
		__unused__)) struct shim_lock *locked_ = (shim_lock(_lock), (_lock))
