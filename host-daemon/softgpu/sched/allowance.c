/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowance: the device time that kernel threads use, and its limit
 */

#include <time.h>

#include "vgpu/wake.h"

#include "sched/allowance.h"
#include "sched/sched.h"

/* A held thread looks at the beat at least this often. */
#define HOLD_MAX_MS 50u

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void add(uint64_t *sum, uint64_t n)
{
	__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static void charge(struct sched_account *account, uint64_t now)
{
	const uint64_t cpu = thread_cpu_ns();

	add(&account->allowance->used_ns, cpu - account->cpu_ns);
	account->cpu_ns = cpu;
	account->wall_ns = now;
}

void sched_allowance_publish(struct softgpu_allowance *allowance, uint64_t n_busy)
{
	__atomic_store_n(&allowance->n_busy, (uint32_t)n_busy, __ATOMIC_RELAXED);
}

void sched_allowance_count_fault(struct softgpu_allowance *allowance)
{
	/* Release: calls see the fault. Partner: who shares the device. */
	__atomic_fetch_add(&allowance->n_faults, 1, __ATOMIC_RELEASE);
}

void sched_account_wake(struct sched_account *account)
{
	if (!account->allowance)
		return;
	account->wall_ns = sched_now_ns();
}

void sched_account_sleep(struct sched_account *account)
{
	if (!account->allowance)
		return;
	charge(account, sched_now_ns());
}

void sched_account_charge(struct sched_account *account)
{
	uint64_t now;

	if (!account->allowance)
		return;
	now = sched_now_ns();
	if (now - account->wall_ns >= SCHED_CHARGE_NS)
		charge(account, now);
}

/* Whether whoever set the limit is gone. */
static bool has_lapsed(const struct softgpu_allowance *allowance)
{
	const uint64_t beat = __atomic_load_n(&allowance->beat_ns, __ATOMIC_RELAXED);
	const uint64_t now = sched_now_ns();

	return now > beat && now - beat > SOFTGPU_ALLOWANCE_BEAT_NS;
}

bool sched_account_is_over(const struct sched_account *account)
{
	const struct softgpu_allowance *allowance = account->allowance;
	uint32_t limit;

	if (!allowance)
		return false;
	/* Acquire: the limit belongs to it. Partner: who shares the device. */
	limit = __atomic_load_n(&allowance->is_limited, __ATOMIC_ACQUIRE);
	if (__builtin_expect(limit == SOFTGPU_ALLOWANCE_UNLIMITED, 1))
		return false;
	if (limit == SOFTGPU_ALLOWANCE_PAUSED)
		return true;
	return __atomic_load_n(&allowance->used_ns, __ATOMIC_RELAXED) >=
		       __atomic_load_n(&allowance->limit_ns, __ATOMIC_RELAXED) &&
	       !has_lapsed(allowance);
}

void sched_account_hold(struct sched_account *account)
{
	struct softgpu_allowance *allowance = account->allowance;
	struct vgpu_nap nap = {};
	uint32_t n_changes;
	uint64_t now;

	charge(account, sched_now_ns());
	__atomic_fetch_add(&allowance->n_held, 1, __ATOMIC_RELAXED);
	for (;;) {
		/* Partner: who shares the device increments it after the change. */
		n_changes = __atomic_load_n(&allowance->n_changes, __ATOMIC_ACQUIRE);
		if (!sched_account_is_over(account))
			break;
		vgpu_nap_shared_word(&allowance->n_changes, n_changes,
			vgpu_nap_next(&nap, VGPU_NAP_MIN_MS, HOLD_MAX_MS));
	}
	__atomic_fetch_sub(&allowance->n_held, 1, __ATOMIC_RELAXED);
	now = sched_now_ns();
	add(&allowance->held_ns, now - account->wall_ns);
	account->wall_ns = now;
	/* Sleeping is no device time. */
	account->cpu_ns = thread_cpu_ns();
}

uint64_t sched_account_turn(
	const struct sched_account *account, uint64_t ns, uint32_t n_threads)
{
	const struct softgpu_allowance *allowance = account->allowance;
	uint64_t limit, used, left;

	if (!allowance || __atomic_load_n(&allowance->is_limited, __ATOMIC_ACQUIRE) !=
				  SOFTGPU_ALLOWANCE_LIMITED)
		return ns;
	used = __atomic_load_n(&allowance->used_ns, __ATOMIC_RELAXED);
	limit = __atomic_load_n(&allowance->limit_ns, __ATOMIC_RELAXED);
	left = limit > used ? (limit - used) / (n_threads ? n_threads : 1) : 0;
	if (left >= ns)
		return ns;
	return left > SCHED_ALLOWANCE_MIN_NS ? left : SCHED_ALLOWANCE_MIN_NS;
}
