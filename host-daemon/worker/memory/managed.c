/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables: the part of the arena that the worker allocates
 */

#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "vgpu/ring-layout.h"
#include "worker/base/call.h"
#include "worker/base/ranges.h"
#include "worker/base/session.h"
#include "worker/memory/arena.h"
#include "worker/memory/growth.h"
#include "worker/memory/managed.h"

#define MANAGED_ALIGN 256u

void managed_init(struct session *session)
{
	pthread_mutex_init(&session->managed->lock, NULL);
	ranges_init(&session->managed->taken);
}

void managed_deinit(struct session *session)
{
	ranges_deinit(&session->managed->taken);
	pthread_mutex_destroy(&session->managed->lock);
}

static uint64_t run_base(const struct session *session, const struct managed_run *run)
{
	return session->arena->base + (uint64_t)run->first * VGPU_EXTENT_SIZE;
}

static uint64_t run_size(const struct managed_run *run)
{
	return (uint64_t)run->n_extents * VGPU_EXTENT_SIZE;
}

/* Allocates memory in a run. Return: its address, or 0. */
static uint64_t take(
	struct session *session, const struct managed_run *run, uint64_t size)
{
	uint64_t base = run_base(session, run);
	struct range range = { .size = size, .kind = RANGE_GLOBAL };

	range.start = ranges_find_gap(&session->managed->taken, base,
		base + run_size(run), size, MANAGED_ALIGN);
	if (!range.start || ranges_add(&session->managed->taken, &range))
		return 0;
	return range.start;
}

static bool grow(struct session *session, uint64_t size)
{
	struct managed *managed = session->managed;
	struct managed_run *run = &managed->runs[managed->n_runs];
	uint64_t n;

	if (managed->n_runs == MANAGED_RUNS_MAX ||
		!vgpu_align_u64(size, VGPU_EXTENT_SIZE, &n) ||
		n / VGPU_EXTENT_SIZE > session->arena->n_extents)
		return false;
	if (growth_request(session, (uint32_t)(n / VGPU_EXTENT_SIZE), &run->first,
		    &run->n_extents))
		return false;
	managed->n_runs++;
	return true;
}

void *managed_alloc(void *data, uint64_t size)
{
	struct session *session = data;
	struct managed *managed = session->managed;
	uint64_t address = 0;
	uint32_t i;

	if (!size)
		return NULL;
	pthread_mutex_lock(&managed->lock);
	for (i = 0; i < managed->n_runs && !address; i++)
		address = take(session, &managed->runs[i], size);
	if (!address && grow(session, size))
		address = take(session, &managed->runs[managed->n_runs - 1], size);
	pthread_mutex_unlock(&managed->lock);
	return (void *)(uintptr_t)address;
}

void managed_free(void *data, void *memory, uint64_t size)
{
	struct session *session = data;
	struct range range;

	ranges_remove(&session->managed->taken, RANGE_GLOBAL, (uintptr_t)memory, &range);
}

CUresult managed_register(struct call *call)
{
	struct managed *managed = call->session->managed;
	CUresult result = CUDA_SUCCESS;
	uint32_t n_runs;

	pthread_mutex_lock(&managed->lock);
	n_runs = managed->n_runs;
	if (managed->n_registered < n_runs)
		result = arena_register_growth(call->session, call->runner);
	if (result == CUDA_SUCCESS)
		managed->n_registered = n_runs;
	pthread_mutex_unlock(&managed->lock);
	return result;
}

bool managed_find(struct session *session, uint64_t address, uint64_t size,
	struct managed_run *runp)
{
	struct managed *managed = session->managed;
	bool found = false;
	uint32_t i;

	pthread_mutex_lock(&managed->lock);
	for (i = 0; i < managed->n_runs && !found; i++) {
		found = vgpu_range_within(address, size,
			run_base(session, &managed->runs[i]),
			run_size(&managed->runs[i]));
		if (found)
			*runp = managed->runs[i];
	}
	pthread_mutex_unlock(&managed->lock);
	return found;
}
