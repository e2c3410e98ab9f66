/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for their session's share of the device's time
 */

#include <limits.h>
#include <pthread.h>
#include <sched.h>

#include "test.h"
#include "vgpu/wake.h"
#include "worker/wait/gate.h"

#define MS UINT64_C(1000000)

static struct softgpu_allowance allowance;
static struct gate gate;

static void begin(void)
{
	allowance = (struct softgpu_allowance){};
	gate = (struct gate){ .allowance = &allowance };
}

/* A limit that does not lapse before the test is over. */
static void limit(uint32_t kind, uint64_t limit_ns)
{
	allowance.beat_ns = gate_now() + 3600 * 1000 * MS;
	__atomic_store_n(&allowance.limit_ns, limit_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&allowance.is_limited, kind, __ATOMIC_RELEASE);
	__atomic_fetch_add(&allowance.n_changes, 1, __ATOMIC_SEQ_CST);
	vgpu_wake_shared_word(&allowance.n_changes, INT_MAX);
}

static enum gate_state look(void)
{
	return gate_look(&gate, gate_now());
}

static void *wait_at_gate(void *data)
{
	gate_wait(&gate);
	return NULL;
}

static pthread_t start_waiting(void)
{
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, wait_at_gate, NULL), 0);
	while (!__atomic_load_n(&allowance.n_held, __ATOMIC_SEQ_CST))
		sched_yield();
	return thread;
}

static void end_waiting(pthread_t thread)
{
	pthread_join(thread, NULL);
	check_eq(allowance.n_held, 0);
	check(allowance.held_ns > 0);
}

TEST(memory_of_zeros_limits_nothing)
{
	begin();
	gate.ahead_ns = UINT64_MAX;
	check(!gate_is_limited(&gate));
	check_eq(look(), GATE_OPEN);
	gate_wait(&gate);
	check_eq(allowance.held_ns, 0);
}

TEST(the_limit_counts_what_is_submitted)
{
	begin();
	allowance.used_ns = 3 * MS;
	limit(SOFTGPU_ALLOWANCE_LIMITED, 5 * MS);
	check_eq(look(), GATE_OPEN);
	gate.ahead_ns = 2 * MS - 1;
	check_eq(look(), GATE_OPEN);
	gate.ahead_ns = 2 * MS;
	check_eq(look(), GATE_AHEAD);
	allowance.used_ns = 5 * MS;
	gate.ahead_ns = 0;
	check_eq(look(), GATE_SHUT);
}

TEST(any_numbers_are_compared_without_overflow)
{
	begin();
	allowance.used_ns = UINT64_MAX - 1;
	gate.ahead_ns = UINT64_MAX;
	limit(SOFTGPU_ALLOWANCE_LIMITED, UINT64_MAX);
	check_eq(look(), GATE_AHEAD);
	limit(SOFTGPU_ALLOWANCE_LIMITED, 1);
	check_eq(look(), GATE_SHUT);
}

TEST(a_limit_lapses_but_no_pause)
{
	begin();
	allowance.used_ns = MS;
	limit(SOFTGPU_ALLOWANCE_LIMITED, 0);
	check_eq(look(), GATE_SHUT);
	allowance.beat_ns = 1;
	check_eq(gate_look(&gate, 1 + SOFTGPU_ALLOWANCE_BEAT_NS), GATE_SHUT);
	check_eq(gate_look(&gate, 2 + SOFTGPU_ALLOWANCE_BEAT_NS), GATE_OPEN);
	limit(SOFTGPU_ALLOWANCE_PAUSED, 0);
	allowance.beat_ns = 1;
	check_eq(look(), GATE_SHUT);
}

TEST(a_call_waits_until_the_limit_is_raised)
{
	pthread_t thread;

	begin();
	allowance.used_ns = MS;
	limit(SOFTGPU_ALLOWANCE_LIMITED, MS);
	thread = start_waiting();
	limit(SOFTGPU_ALLOWANCE_LIMITED, 2 * MS);
	end_waiting(thread);
}

TEST(a_call_waits_while_paused)
{
	pthread_t thread;

	begin();
	limit(SOFTGPU_ALLOWANCE_PAUSED, UINT64_MAX);
	thread = start_waiting();
	limit(SOFTGPU_ALLOWANCE_UNLIMITED, UINT64_MAX);
	end_waiting(thread);
}

/* Who shares the device is gone meanwhile, so nobody wakes it. */
TEST(a_call_that_waits_sees_the_limit_lapse)
{
	pthread_t thread;

	begin();
	allowance.used_ns = MS;
	limit(SOFTGPU_ALLOWANCE_LIMITED, MS);
	thread = start_waiting();
	__atomic_store_n(&allowance.beat_ns, 1, __ATOMIC_RELAXED);
	end_waiting(thread);
}

TEST(a_call_waits_for_what_is_submitted)
{
	pthread_t thread;

	begin();
	gate.ahead_ns = MS;
	limit(SOFTGPU_ALLOWANCE_LIMITED, MS);
	thread = start_waiting();
	__atomic_store_n(&gate.ahead_ns, 0, __ATOMIC_RELAXED);
	gate_wake(&gate);
	end_waiting(thread);
	check_eq(gate.n_complete, 1);
}

/* What is submitted may wait for a call that is behind this one. */
TEST(a_call_does_not_wait_for_ever_for_what_is_submitted)
{
	begin();
	gate.ahead_ns = UINT64_MAX;
	limit(SOFTGPU_ALLOWANCE_LIMITED, MS);
	gate_wait(&gate);
	check(allowance.held_ns >= GATE_PATIENCE_NS);
	check_eq(look(), GATE_AHEAD);
}
