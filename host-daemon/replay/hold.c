/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold: lets the kernels of a replay run, or holds them
 */

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#include "control/control.h"
#include "replay/hold.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"

int hold_init(struct hold *hold, int stats)
{
	*hold = (struct hold){};
	hold->file = mmap(
		NULL, WORKER_STATS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, stats, 0);
	if (hold->file == MAP_FAILED) {
		hold->file = NULL;
		return vgpu_error_origin(-errno);
	}
	hold->allowance = (struct softgpu_allowance *)(void *)((uint8_t *)hold->file +
							       WORKER_ALLOWANCE_OFF);
	return 0;
}

void hold_deinit(struct hold *hold)
{
	if (hold->file)
		munmap(hold->file, WORKER_STATS_SIZE);
	*hold = (struct hold){};
}

static void set(struct hold *hold, uint32_t limit)
{
	struct softgpu_allowance *allowance = hold->allowance;

	if (!allowance ||
		__atomic_load_n(&allowance->is_limited, __ATOMIC_RELAXED) == limit)
		return;
	/* Partner: sched_account_is_over() and sched_account_hold(). */
	__atomic_store_n(&allowance->is_limited, limit, __ATOMIC_RELEASE);
	__atomic_fetch_add(&allowance->n_changes, 1, __ATOMIC_RELEASE);
	vgpu_wake_shared_word(&allowance->n_changes, INT_MAX);
}

void hold_want(struct hold *hold, bool is_wanted)
{
	hold->is_wanted = is_wanted;
	set(hold, is_wanted ? SOFTGPU_ALLOWANCE_PAUSED : SOFTGPU_ALLOWANCE_UNLIMITED);
}

void hold_release(struct hold *hold)
{
	set(hold, SOFTGPU_ALLOWANCE_UNLIMITED);
}

void hold_again(struct hold *hold)
{
	if (hold->is_wanted)
		set(hold, SOFTGPU_ALLOWANCE_PAUSED);
}

bool hold_is_busy(const struct hold *hold)
{
	return hold->allowance &&
	       __atomic_load_n(&hold->allowance->n_busy, __ATOMIC_RELAXED);
}

uint64_t hold_faults(const struct hold *hold)
{
	/* Partner: sched_allowance_count_fault(). */
	return hold->allowance
		       ? __atomic_load_n(&hold->allowance->n_faults, __ATOMIC_ACQUIRE)
		       : 0;
}
