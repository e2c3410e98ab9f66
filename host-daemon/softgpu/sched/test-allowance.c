/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler: the device time that kernel threads may use
 */

#include <limits.h>
#include <sched.h>

#include "sched/test-engine.h"
#include "test.h"
#include "vgpu/wake.h"

#define MS UINT64_C(1000000)

static struct softgpu_allowance allowance;

static void start_shared(struct sched_context *context, uint32_t n_threads)
{
	start_threads(context, n_threads);
	sched.allowance = &allowance;
}

/* Limits that do not lapse before the test is over. */
static void limit(uint32_t kind, uint64_t limit_ns)
{
	allowance.beat_ns = sched_now_ns() + 3600 * 1000 * MS;
	__atomic_store_n(&allowance.limit_ns, limit_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&allowance.is_limited, kind, __ATOMIC_RELEASE);
	__atomic_fetch_add(&allowance.n_changes, 1, __ATOMIC_SEQ_CST);
	vgpu_wake_shared_word(&allowance.n_changes, INT_MAX);
}

static uint64_t n_pending(void)
{
	return __atomic_load_n(&allowance.n_pending, __ATOMIC_SEQ_CST);
}

static uint32_t n_held(void)
{
	return __atomic_load_n(&allowance.n_held, __ATOMIC_SEQ_CST);
}

static uint64_t used_ns(void)
{
	return __atomic_load_n(&allowance.used_ns, __ATOMIC_RELAXED);
}

static void wait_until_held(void)
{
	while (!n_held())
		sched_yield();
}

static void end(struct sched_context *context)
{
	check_eq(sched_context_wait(context), 0);
	/* A thread may not have woken yet. */
	while (n_held())
		sched_yield();
	check_eq(sched.aside_size, 0);
	sched_context_deinit(context);
}

TEST(memory_of_zeros_limits_nothing)
{
	struct sched_context context;
	uint64_t counter = 0;

	start_shared(&context, 2);
	check_eq(launch(&context.legacy, &(struct work){ .counter = &counter }, 100), 0);
	end(&context);
	check_eq(counter, 100);
	check_eq(allowance.held_ns, 0);
}

TEST(device_time_is_counted_when_a_thread_comes_to_rest)
{
	struct work work = { .works_ns = 20 * MS };
	struct sched_context context;
	uint64_t counter = 0;

	work.counter = &counter;
	start_shared(&context, 1);
	check_eq(launch(&context.legacy, &work, 1), 0);
	check_eq(sched_context_wait(&context), 0);
	while (!used_ns())
		sched_yield();
	check_eq(allowance.n_busy, 0);
	end(&context);
}

TEST(no_kernel_begins_beyond_the_limit)
{
	struct sched_context context;
	uint64_t counter = 0;

	start_shared(&context, 2);
	limit(SOFTGPU_ALLOWANCE_LIMITED, 0);
	check_eq(launch(&context.legacy, &(struct work){ .counter = &counter }, 8), 0);
	wait_until_held();
	check_eq(load(&counter), 0);
	check_eq(allowance.n_busy, 2);
	/* Launches that wait for it, or for one before them, have not begun. */
	check_eq(n_pending(), 1);
	for (int i = 0; i < 4; i++)
		check_eq(
			launch(&context.legacy, &(struct work){ .counter = &counter }, 8),
			0);
	check_eq(n_pending(), 5);
	limit(SOFTGPU_ALLOWANCE_LIMITED, UINT64_MAX);
	check_eq(sched_context_wait(&context), 0);
	check_eq(n_pending(), 0);
	end(&context);
	check_eq(counter, 40);
	check(allowance.held_ns > 0);
}

/* The block continues when the limit is raised, before another one of the grid begins. */
TEST(a_kernel_stops_inside_a_block)
{
	uint32_t resident = 0, resident_max = 0;
	struct work work = {
		.works_ns = 40 * MS,
		.resident = &resident,
		.resident_max = &resident_max,
	};
	struct sched_context context;
	uint64_t counter = 0, so_far = 5 * MS;

	work.counter = &counter;
	start_shared(&context, 1);
	limit(SOFTGPU_ALLOWANCE_LIMITED, so_far);
	check_eq(launch(&context.legacy, &work, 3), 0);
	while (load(&counter) < 3) {
		if (n_held())
			limit(SOFTGPU_ALLOWANCE_LIMITED, so_far += 5 * MS);
		sched_yield();
	}
	end(&context);
	check_eq(resident_max, 1);
	check(allowance.held_ns > 0);
}

TEST(a_limit_lapses_but_a_pause_does_not)
{
	struct sched_context context;
	uint64_t counter = 0;

	start_shared(&context, 1);
	limit(SOFTGPU_ALLOWANCE_LIMITED, 0);
	allowance.beat_ns = 1;
	check_eq(launch(&context.legacy, &(struct work){ .counter = &counter }, 1), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 1);
	limit(SOFTGPU_ALLOWANCE_PAUSED, UINT64_MAX);
	allowance.beat_ns = 1;
	check_eq(launch(&context.legacy, &(struct work){ .counter = &counter }, 1), 0);
	wait_until_held();
	check_eq(load(&counter), 1);
	limit(SOFTGPU_ALLOWANCE_UNLIMITED, 0);
	end(&context);
	check_eq(counter, 2);
}

/* The time limit of kernels is shorter than the time for which they are held. */
TEST(held_time_is_not_a_kernels_time)
{
	struct work work = { .works_ns = 30 * MS };
	struct sched_context context;
	uint64_t counter = 0, began;

	work.counter = &counter;
	start_shared(&context, 1);
	sched.timeout_ns = 1000 * MS;
	limit(SOFTGPU_ALLOWANCE_LIMITED, 5 * MS);
	check_eq(launch(&context.legacy, &work, 1), 0);
	wait_until_held();
	began = sched_now_ns();
	while (sched_now_ns() - began < 1100 * MS)
		sched_yield();
	limit(SOFTGPU_ALLOWANCE_UNLIMITED, 0);
	end(&context);
	check_eq(counter, 1);
}

TEST(a_context_ends_while_it_is_held)
{
	struct sched_context context;
	uint64_t counter = 0;

	start_shared(&context, 1);
	limit(SOFTGPU_ALLOWANCE_PAUSED, 0);
	check_eq(launch(&context.legacy, &(struct work){ .counter = &counter }, 8), 0);
	wait_until_held();
	sched_stop(&sched);
	sched_resume(&sched);
	sched_context_set_fault(&context, 700);
	limit(SOFTGPU_ALLOWANCE_UNLIMITED, 0);
	check_eq(sched_context_wait(&context), 700);
	check_eq(counter, 0);
	sched_context_deinit(&context);
}
