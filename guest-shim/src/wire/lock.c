/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock of the shim: the slow paths
 */

#include <stdbool.h>

#include "vgpu/cpu.h"
#include "vgpu/wake.h"

#include "wire/lock.h"

#define SPINS_MAX 200
/* Bounds the delay after a wake-up that was missed. */
#define SLEEP_MAX_MS 1u

void shim_lock_slow(struct shim_lock *lock)
{
	for (int i = 0; i < SPINS_MAX; i++) {
		vgpu_cpu_relax();
		if (__atomic_load_n(&lock->is_held, __ATOMIC_RELAXED) == 0 &&
			shim_trylock(lock))
			return;
	}
	/* Left set by the waiter that gets the lock: there may be others, and its own
	 * release wakes the next. Partner: the load in shim_unlock(). */
	for (;;) {
		__atomic_exchange_n(&lock->has_waiters, 1, __ATOMIC_SEQ_CST);
		if (shim_trylock(lock))
			return;
		vgpu_nap_word(&lock->has_waiters, 1, SLEEP_MAX_MS);
	}
}

void shim_lock_wake(struct shim_lock *lock)
{
	/* Cleared before the wake-up: a waiter that comes between the two finds its
	 * announcement gone, so that it does not go to sleep. */
	if (__atomic_exchange_n(&lock->has_waiters, 0, __ATOMIC_SEQ_CST))
		vgpu_wake_word(&lock->has_waiters, 1);
}
