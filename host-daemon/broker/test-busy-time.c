/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy time: shares of the last second
 */

#include "broker/busy-time.h"
#include "test.h"

#define MS 1000000ull

TEST(one_sample_is_no_time)
{
	struct busy_time time = {};

	check_eq(busy_time_percent(&time, 1), 0);
	busy_time_add(&time, 5000, 700 * MS);
	check_eq(busy_time_percent(&time, 1), 0);
	check_eq(busy_time_percent(&time, 0), 0);
}

TEST(the_share_is_of_all_units)
{
	struct busy_time time = {};

	busy_time_add(&time, 1000, 0);
	busy_time_add(&time, 1200, 100 * MS);
	check_eq(busy_time_percent(&time, 1), 50);
	check_eq(busy_time_percent(&time, 2), 25);
	busy_time_add(&time, 1400, 300 * MS);
	check_eq(busy_time_percent(&time, 1), 75);
}

TEST(it_is_at_most_all)
{
	struct busy_time time = {};

	busy_time_add(&time, 1000, 0);
	busy_time_add(&time, 1000, 0);
	check_eq(busy_time_percent(&time, 1), 0);
	busy_time_add(&time, 1200, 1000 * MS);
	check_eq(busy_time_percent(&time, 1), 100);
	/* A clock that went back. */
	busy_time_add(&time, 1400, 0);
	busy_time_add(&time, 1600, 900 * MS);
	check(busy_time_percent(&time, 1) <= 100);
}

TEST(what_is_older_than_a_second_does_not_count)
{
	struct busy_time time = {};

	for (int i = 0; i <= 10; i++)
		busy_time_add(&time, 1000 + 200 * i, (uint64_t)i * 200 * MS);
	check_eq(busy_time_percent(&time, 1), 100);
	for (int i = 1; i <= 5; i++)
		busy_time_add(&time, 3000 + 200 * i, 2000 * MS);
	check_eq(busy_time_percent(&time, 1), 0);
	/* Long without a sample. */
	busy_time_add(&time, 60000, 2000 * MS);
	busy_time_add(&time, 60200, 2100 * MS);
	check_eq(busy_time_percent(&time, 1), 50);
}
