/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Allowance: the device time that kernel threads use, and its limit
 *
 * A device that several processes share gives each of them a share of its time, see
 * struct softgpu_allowance. A kernel thread charges its CPU time at the end of a turn,
 * but no more often than every SCHED_CHARGE_NS, because reading its clock is a system
 * call; and before it sleeps, so that nothing is missing while the process does nothing.
 * It looks at the limit before each turn. A turn ends where the rest of the allowance
 * does.
 *
 * Time in which a thread is held is not time of a kernel: a limit of a kernel's or a
 * launch's time does not count it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "softgpu.h"

#define SCHED_CHARGE_NS 200000u
/* Turns are not shorter than this, however many threads share what is left. */
#define SCHED_ALLOWANCE_MIN_NS 100000u

/* What a thread has charged: its CPU time, and up to which time of the clock. */
struct sched_account {
	struct softgpu_allowance *allowance; /* NULL: nothing is charged or limited */
	uint64_t cpu_ns;
	uint64_t wall_ns;
};

/* How many threads could have work now. With the scheduler's lock. */
void sched_allowance_publish(struct softgpu_allowance *allowance, uint64_t n_busy);

/* A launch was accepted, and begins or is discarded. NULL: nothing is counted. */
static inline void sched_allowance_pend(struct softgpu_allowance *allowance)
{
	if (allowance)
		__atomic_fetch_add(&allowance->n_pending, 1, __ATOMIC_RELAXED);
}

static inline void sched_allowance_unpend(struct softgpu_allowance *allowance)
{
	if (allowance)
		__atomic_fetch_sub(&allowance->n_pending, 1, __ATOMIC_RELAXED);
}

/* A context is broken now. */
void sched_allowance_count_fault(struct softgpu_allowance *allowance);

/* The thread has work to do, and has none left. */
void sched_account_wake(struct sched_account *account);
void sched_account_sleep(struct sched_account *account);

/* After a turn. */
void sched_account_charge(struct sched_account *account);

/* Whether the allowance is used up. Always false without one. */
bool sched_account_is_over(const struct sched_account *account);

/* Sleeps until it may not be any more; with none of the scheduler's locks. */
void sched_account_hold(struct sched_account *account);

/*
 * The duration of the next turn.
 *
 * @ns:		that of a device that is not shared
 * @n_threads:	that use up the allowance together
 */
uint64_t sched_account_turn(
	const struct sched_account *account, uint64_t ns, uint32_t n_threads);
