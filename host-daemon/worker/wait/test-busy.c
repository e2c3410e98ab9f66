/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long a device has worked, by intervals of its clock
 */

#include "test.h"
#include "worker/wait/busy.h"

/* The device's clock is that much ahead of the host's in these tests. */
#define AHEAD 1000000

static struct busy busy;

static void begin(void)
{
	busy = (struct busy){};
	busy_see(&busy, 0, 0 - AHEAD);
}

static uint64_t count(struct busy_interval *intervals, size_t n, int64_t device_now)
{
	return busy_count(&busy, intervals, n, device_now - AHEAD);
}

TEST(gaps_between_batches_do_not_count)
{
	struct busy_interval batches[] = {
		{ .begin = 300, .end = 350 },
		{ .begin = 0, .end = 100 },
	};

	begin();
	check_eq(count(batches, 2, 1000), 150);
	check_eq(count(NULL, 0, 2000), 0);
}

TEST(streams_at_the_same_time_count_once)
{
	struct busy_interval batches[] = {
		{ .begin = 0, .end = 100 },
		{ .begin = 50, .end = 80 },
		{ .begin = 90, .end = 140 },
		{ .begin = 200, .end = 210 },
	};

	begin();
	check_eq(count(batches, 4, 1000), 150);
}

TEST(a_batch_that_runs_is_counted_as_it_runs)
{
	struct busy_interval batch = { .begin = 100, .runs = true };

	begin();
	check_eq(count(&batch, 1, 600), 500);
	batch = (struct busy_interval){ .begin = 100, .runs = true };
	check_eq(count(&batch, 1, 700), 100);
	batch = (struct busy_interval){ .begin = 100, .end = 750 };
	check_eq(count(&batch, 1, 900), 50);
}

TEST(another_stream_beside_one_that_runs_adds_nothing)
{
	struct busy_interval batches[] = {
		{ .begin = 100, .runs = true },
		{ .begin = 150, .end = 180 },
	};

	begin();
	check_eq(count(batches, 2, 600), 500);
	batches[0] = (struct busy_interval){ .begin = 100, .runs = true };
	batches[1] = (struct busy_interval){ .begin = 590, .end = 680 };
	check_eq(count(batches, 2, 700), 100);
}

TEST(what_was_counted_too_early_is_not_counted_again)
{
	struct busy_interval batch = { .begin = 100, .runs = true };

	begin();
	check_eq(count(&batch, 1, 600), 500);
	/* It had ended just before, and the next one began. */
	batch = (struct busy_interval){ .begin = 100, .end = 590 };
	check_eq(count(&batch, 1, 700), 0);
	batch = (struct busy_interval){ .begin = 595, .end = 650 };
	check_eq(count(&batch, 1, 800), 50);
}

TEST(an_event_seen_late_does_not_set_the_clock_back)
{
	struct busy_interval batch = { .begin = 0, .runs = true };

	begin();
	busy_see(&busy, 100, 900 - AHEAD);
	check_eq(count(&batch, 1, 1000), 1000);
}

TEST(an_event_seen_sooner_corrects_the_clock)
{
	struct busy_interval batch = { .begin = 0, .runs = true };

	busy = (struct busy){};
	busy_see(&busy, 0, 400 - AHEAD);
	check_eq(count(&batch, 1, 1000), 600);
	busy_see(&busy, 1000, 1000 - AHEAD);
	batch = (struct busy_interval){ .begin = 0, .runs = true };
	check_eq(count(&batch, 1, 1100), 500);
}

TEST(times_may_be_relative_to_a_later_event)
{
	struct busy_interval batch = { .begin = 100, .runs = true };

	begin();
	check_eq(count(&batch, 1, 600), 500);
	busy_move(&busy, 550);
	batch = (struct busy_interval){ .begin = -450, .runs = true };
	check_eq(busy_count(&busy, &batch, 1, 700 - AHEAD), 100);
	batch = (struct busy_interval){ .begin = 0, .end = 300 };
	check_eq(busy_count(&busy, &batch, 1, 900 - AHEAD), 150);
}

/* A batch of the same stream may be seen to begin only after the time up to which all
 * is counted. */
TEST(a_batch_that_has_hardly_begun_counts_nothing)
{
	struct busy_interval batch = { .begin = 700, .runs = true };

	begin();
	check_eq(count(&batch, 1, 600), 0);
	batch = (struct busy_interval){ .begin = 700, .runs = true };
	check_eq(count(&batch, 1, 800), 100);
}
