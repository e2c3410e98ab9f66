/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents: who owns which piece of a VM's arena
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpud/extent.h"

static uint8_t owners[256];
static struct extent_table table = { owners, 64 };

TEST(runs_are_taken_from_the_front_and_never_twice)
{
	uint32_t first = 99;

	check_eq(extent_take(&table, 0, 16, &first), 0);
	check_eq(first, 0);
	check_eq(extent_take(&table, 30, 47, &first), 0);
	check_eq(first, 16);
	check_eq(extent_take(&table, 1, 2, &first), EXTENT_E_FULL);
	check_eq(extent_take(&table, 1, 1, &first), 0);
	check_eq(first, 63);
	check_eq(extent_take(&table, 1, 1, &first), EXTENT_E_FULL);
	check_eq(extent_count(&table, 30), 47);
}

TEST(a_hole_is_used_only_if_it_is_long_enough)
{
	uint32_t first = 99;

	check_eq(extent_take(&table, 0, 8, &first), 0);
	check_eq(extent_take(&table, 1, 4, &first), 0);
	check_eq(extent_take(&table, 2, 8, &first), 0);
	check_eq(extent_give(&table, 1, 8, 4), 0);
	check_eq(extent_take(&table, 3, 5, &first), 0);
	check_eq(first, 20);
	check_eq(extent_take(&table, 3, 4, &first), 0);
	check_eq(first, 8);
}

TEST(a_run_that_is_partly_the_channels_becomes_wholly_its)
{
	uint32_t first;

	check_eq(extent_find_free(&table, 8, &first), 0);
	check_eq(first, 0);
	check_eq(extent_count(&table, 1), 0);
	/* As far as a broker came that was killed while it took them. */
	check_eq(extent_own(&table, 1, 0, 3), 0);
	check_eq(extent_own(&table, 1, 0, 8), 0);
	check_eq(extent_own(&table, 1, 0, 8), 0);
	check_eq(extent_count(&table, 1), 8);
	check_eq(extent_own(&table, 2, 7, 2), EXTENT_E_NOT_OWNED);
	check_eq(extent_count(&table, 2), 0);
	check_eq(extent_own(&table, 2, 60, 5), EXTENT_E_NOT_OWNED);
	check_eq(extent_own(&table, 2, UINT32_MAX, 2), EXTENT_E_NOT_OWNED);
}

TEST(nothing_and_more_than_all_cannot_be_taken)
{
	uint32_t first;

	check_eq(extent_take(&table, 0, 0, &first), EXTENT_E_FULL);
	check_eq(extent_take(&table, 0, 65, &first), EXTENT_E_FULL);
	check_eq(extent_take(&table, 0, UINT32_MAX, &first), EXTENT_E_FULL);
	check_eq(extent_take(&table, 0, 64, &first), 0);
	check_eq(first, 0);
}

TEST(a_run_given_twice_or_by_another_channel_is_refused)
{
	uint32_t first;

	check_eq(extent_take(&table, 5, 8, &first), 0);
	check_eq(extent_take(&table, 6, 8, &first), 0);
	check_eq(extent_give(&table, 6, 0, 8), EXTENT_E_NOT_OWNED);
	check_eq(extent_give(&table, 5, 4, 8), EXTENT_E_NOT_OWNED);
	check_eq(extent_give(&table, 5, 0, 8), 0);
	check_eq(extent_give(&table, 5, 0, 8), EXTENT_E_NOT_OWNED);
	check_eq(extent_give(&table, 6, 8, UINT32_MAX), EXTENT_E_NOT_OWNED);
	check_eq(extent_give(&table, 6, UINT32_MAX, 2), EXTENT_E_NOT_OWNED);
	check_eq(extent_count(&table, 6), 8);
}

TEST(all_runs_of_a_channel_are_found)
{
	uint32_t first, n, from = 0, n_runs = 0;

	memset(owners, 2, 10);
	memset(owners + 20, 2, 3);
	memset(owners + 23, 3, 3);
	memset(owners + 62, 2, 10); /* two in the table, the rest behind it */
	for (; extent_find(&table, 1, from, &first, &n); from = first + n, n_runs++)
		check_eq(extent_give(&table, 1, first, n), 0);
	check_eq(n_runs, 3);
	check_eq(extent_count(&table, 1), 0);
	check_eq(extent_count(&table, 2), 3);
	check_eq(owners[64], 2);
}

TEST(no_order_of_taking_and_giving_loses_an_extent)
{
	uint32_t first, n, total;

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		uint32_t channel = random() % 31;

		if (random() % 2)
			extent_take(&table, channel, 1 + random() % 20, &first);
		else if (extent_find(&table, channel, random() % 64, &first, &n))
			check_eq(extent_give(&table, channel, first, n), 0);
		total = 0;
		for (uint32_t c = 0; c < 31; c++)
			total += extent_count(&table, c);
		for (uint32_t e = 0; e < 64; e++)
			total += owners[e] == EXTENT_NOBODY;
		check_eq(total, 64);
	}
}

TEST(runs_that_fit_now_or_once_others_have_left)
{
	bool is_leaving[VGPU_CHANNELS_MAX] = { false };
	uint8_t owners[] = { 0, 0, 3, 3, 0, 4, 0, 0 };
	const struct extent_table table = { owners, sizeof(owners) };

	check(extent_fits(&table, 2, NULL));
	check(!extent_fits(&table, 3, NULL));
	check(!extent_fits(&table, 3, is_leaving));
	is_leaving[2] = true;
	check(extent_fits(&table, 5, is_leaving));
	check(!extent_fits(&table, 6, is_leaving));
	check(!extent_fits(&table, 5, NULL));
	is_leaving[3] = true;
	check(extent_fits(&table, 8, is_leaving));
	check(!extent_fits(&table, 9, is_leaving));
}
