/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock of the shim: the slow paths
 */

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock.h"

#define SPINS_MAX 200

void shim_lock_slow(struct shim_lock *lock)
{
	for (int i = 0; i < SPINS_MAX; i++) {
		uint32_t free_state = 0;

		__builtin_ia32_pause();
		if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == 0 &&
			__atomic_compare_exchange_n(&lock->state, &free_state, 1, false,
				__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
	}
	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void shim_lock_wake(struct shim_lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
