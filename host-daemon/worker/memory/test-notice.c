/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices: when the guest is told that its VM's quota was lowered below its use
 */

#include "control/quota.h"
#include "fixture.h"
#include "test.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/notice.h"

#define MINE 3
#define THEIRS 7

static struct fixture fixture;
static struct quota_page *page;

static struct session *begin(uint64_t quota, uint64_t used, uint64_t used_by_others)
{
	int fd;

	fixture_init(&fixture);
	check_eq(quota_make(&fd), 0);
	check_eq(quota_map(&page, fd), 0);
	quota_set_limit(page, quota);
	quota_open(page, MINE);
	quota_open(page, THEIRS);
	quota_set(page, THEIRS, used_by_others);
	check_eq(device_memory_share(&fixture.session, fd, MINE), 0);
	check(device_memory_charge(&fixture.session, 0, used));
	check_eq(notices_arm(&fixture.session), CUDA_SUCCESS);
	return &fixture.session;
}

static void end(void)
{
	device_memory_refund(&fixture.session, 0, fixture.session.memory->used);
	page = quota_unmap(page);
	fixture_deinit(&fixture);
}

static uint64_t next(void)
{
	uint64_t excess = 0;

	check_eq(notices_next(&fixture.session, &excess), CUDA_SUCCESS);
	check(excess);
	return excess;
}

/* A lane that waits. */
static void *wait_for_notice(void *data)
{
	*(uint64_t *)data = next();
	return NULL;
}

static pthread_t start_lane(uint64_t *excessp)
{
	struct notices *notices = fixture.session.notices;
	bool is_asked = false;
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, wait_for_notice, excessp), 0);
	while (!is_asked) {
		pthread_mutex_lock(&notices->lock);
		is_asked = notices->is_asked;
		pthread_mutex_unlock(&notices->lock);
	}
	return thread;
}

TEST(a_lower_limit_is_told_to_whoever_waits)
{
	struct session *session = begin(1000, 600, 300);
	uint64_t excess = 0;
	pthread_t thread = start_lane(&excess);

	quota_set_limit(page, 500);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(excess, 400);
	/* Less memory and a limit that is lower again. */
	device_memory_refund(session, 0, 500);
	thread = start_lane(&excess);
	quota_set_limit(page, 350);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(excess, 50);
	end();
}

TEST(a_limit_that_was_lowered_before_is_told_at_once)
{
	begin(1000, 600, 0);
	quota_set_limit(page, 500);
	/* Another registration. */
	check_eq(notices_arm(&fixture.session), CUDA_SUCCESS);
	check_eq(next(), 100);
	/* Several: the number is that of now. */
	quota_set_limit(page, 400);
	quota_set_limit(page, 300);
	quota_set(page, THEIRS, 7);
	check_eq(next(), 307);
	/* Raised in between: it is lower than before, if not than at the last look. */
	quota_set_limit(page, 1000);
	quota_set_limit(page, 301);
	check_eq(next(), 306);
	end();
}

TEST(what_is_no_excess_is_not_told)
{
	struct session *session = begin(1000, 600, 0);
	uint64_t excess = 0;
	pthread_t thread = start_lane(&excess);

	quota_set_limit(page, 600);
	quota_set_limit(page, 0);
	quota_set_limit(page, 2000);
	check(!device_memory_charge(session, 0, 1401));
	quota_set_limit(page, 599);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(excess, 1);
	end();
}

TEST(one_lane_waits)
{
	uint64_t excess = 0, other = 0;
	pthread_t thread;

	begin(1000, 600, 0);
	thread = start_lane(&excess);
	for (int i = 0; i < 3; i++)
		check_eq(
			notices_next(&fixture.session, &other), CUDA_ERROR_NOT_PERMITTED);
	quota_set_limit(page, 599);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(excess, 1);
	end();
}

TEST(a_session_that_is_not_armed_waits_for_nothing)
{
	uint64_t excess;

	fixture_init(&fixture);
	check_eq(notices_next(&fixture.session, &excess), CUDA_ERROR_NOT_PERMITTED);
	/* Without a quota page. */
	check_eq(notices_arm(&fixture.session), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(notices_next(&fixture.session, &excess), CUDA_ERROR_NOT_PERMITTED);
	fixture_deinit(&fixture);
}

TEST(writes_of_another_worker_cost_a_wrong_number)
{
	begin(1000, 600, 0);
	quota_set(page, THEIRS, UINT64_MAX);
	page->counted = 0;
	quota_set_limit(page, 500);
	check_eq(next(), UINT64_MAX - 500);
	end();
}

/* A worker that charges memory while the limit is lowered. */
static struct {
	pthread_barrier_t barrier;
	bool was_charged;
} race;

static void *charge(void *data)
{
	pthread_barrier_wait(&race.barrier);
	race.was_charged = device_memory_charge(&fixture.session, 0, 600);
	pthread_barrier_wait(&race.barrier);
	return NULL;
}

TEST(memory_is_charged_before_the_limit_is_lowered_or_refused)
{
	begin(1000, 0, 0);
	check_eq(pthread_barrier_init(&race.barrier, NULL, 2), 0);
	for (int i = 0; i < 3000; i++) {
		uint64_t used;
		pthread_t thread;

		check_eq(pthread_create(&thread, NULL, charge, NULL), 0);
		pthread_barrier_wait(&race.barrier);
		quota_set_limit(page, 500);
		/* As another worker counts it. */
		used = quota_of_others(page, THEIRS);
		pthread_barrier_wait(&race.barrier);
		check_eq(pthread_join(thread, NULL), 0);
		check(used == 600 || !race.was_charged);
		if (race.was_charged)
			device_memory_refund(&fixture.session, 0, 600);
		quota_set_limit(page, 1000);
	}
	pthread_barrier_destroy(&race.barrier);
	end();
}
