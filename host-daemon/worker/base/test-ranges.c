/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges: the addresses that a guest may name
 */

#include "test.h"
#include "worker/base/ranges.h"

static struct ranges ranges;

static int add(uint64_t start, uint64_t size, const void *owner)
{
	struct range range = { .start = start, .size = size, .owner = owner };

	return ranges_add(&ranges, &range);
}

TEST(addresses_within_one_range_are_covered)
{
	ranges_init(&ranges);
	check_eq(add(0x1000, 0x100, NULL), 0);
	check(ranges_cover(&ranges, 0x1000, 0x100));
	check(ranges_cover(&ranges, 0x10ff, 1));
	check(ranges_cover(&ranges, 0x1000, 0));
	check(!ranges_cover(&ranges, 0x0fff, 1));
	check(!ranges_cover(&ranges, 0x10ff, 2));
	check(!ranges_cover(&ranges, 0x1100, 0));
	check(!ranges_cover(&ranges, 0x1001, UINT64_MAX));
	check(!ranges_cover(&ranges, UINT64_MAX, UINT64_MAX));
	ranges_deinit(&ranges);
}

TEST(two_ranges_that_touch_are_still_two)
{
	ranges_init(&ranges);
	check_eq(add(0x2000, 0x100, NULL), 0);
	check_eq(add(0x1f00, 0x100, NULL), 0);
	check(!ranges_cover(&ranges, 0x1fff, 2));
	ranges_deinit(&ranges);
}

TEST(ranges_that_overlap_are_refused)
{
	ranges_init(&ranges);
	check_eq(add(0x1000, 0x100, NULL), 0);
	check_eq(add(0x10ff, 1, NULL), RANGES_E_OVERLAP);
	check_eq(add(0x0fff, 2, NULL), RANGES_E_OVERLAP);
	check_eq(add(0x0f00, 0x1000, NULL), RANGES_E_OVERLAP);
	check_eq(add(0x3000, 0, NULL), RANGES_E_OVERLAP);
	check_eq(add(UINT64_MAX - 1, 16, NULL), RANGES_E_OVERLAP);
	check_eq(add(0x1100, 0x100, NULL), 0);
	ranges_deinit(&ranges);
}

TEST(a_range_is_removed_by_its_start_and_kind_only)
{
	struct range range;

	ranges_init(&ranges);
	check_eq(add(0x1000, 0x100, NULL), 0);
	check_eq(ranges_remove(&ranges, RANGE_MEMORY, 0x1001, &range), RANGES_E_UNKNOWN);
	check_eq(ranges_remove(&ranges, RANGE_GLOBAL, 0x1000, &range), RANGES_E_UNKNOWN);
	check_eq(ranges_remove(&ranges, RANGE_MEMORY, 0x1000, &range), 0);
	check_eq(range.size, 0x100);
	check(!ranges_cover(&ranges, 0x1000, 1));
	check_eq(ranges_remove(&ranges, RANGE_MEMORY, 0x1000, &range), RANGES_E_UNKNOWN);
	ranges_deinit(&ranges);
}

TEST(overlapping_ranges_are_removed_by_kind)
{
	ranges_init(&ranges);
	check_eq(add(0x0f00, 0x100, NULL), 0);
	check_eq(add(0x1000, 0x100, NULL), 0);
	check_eq(add(0x1100, 0x100, NULL), 0);
	check_eq(add(0x1200, 0x100, NULL), 0);
	ranges_remove_overlapping(&ranges, RANGE_GLOBAL, 0x1000, 0x200);
	check(ranges_cover(&ranges, 0x1000, 0x100));
	ranges_remove_overlapping(&ranges, RANGE_MEMORY, 0x10ff, 2);
	check(ranges_cover(&ranges, 0x0f00, 0x100));
	check(!ranges_cover(&ranges, 0x1000, 1));
	check(!ranges_cover(&ranges, 0x1100, 1));
	check(ranges_cover(&ranges, 0x1200, 0x100));
	ranges_deinit(&ranges);
}

TEST(an_owner_takes_its_ranges_with_it)
{
	static int one, two;
	struct range range;
	int i;

	ranges_init(&ranges);
	for (i = 0; i < 1000; i++)
		check_eq(add(0x1000 + i * 0x100, 0x100, i % 2 ? &one : &two), 0);
	for (i = 0; !ranges_remove_owned(&ranges, &one, &range); i++)
		;
	check_eq(i, 500);
	check(!ranges_cover(&ranges, 0x1100, 1));
	check(ranges_cover(&ranges, 0x1000, 1));
	ranges_deinit(&ranges);
}

TEST(the_first_gap_that_fits_is_found)
{
	ranges_init(&ranges);
	check_eq(ranges_find_gap(&ranges, 0x1000, 0x10000, 0x1000, 0x1000), 0x1000);
	check_eq(add(0x1000, 0x1000, NULL), 0);
	check_eq(add(0x2800, 0x100, NULL), 0);
	check_eq(add(0x5000, 0x1000, NULL), 0);
	check_eq(ranges_find_gap(&ranges, 0x1000, 0x10000, 0x1000, 0x1000), 0x3000);
	check_eq(ranges_find_gap(&ranges, 0x1000, 0x10000, 0x800, 0x800), 0x2000);
	check_eq(ranges_find_gap(&ranges, 0x1000, 0x10000, 0x4000, 0x1000), 0x6000);
	check_eq(ranges_find_gap(&ranges, 0x1000, 0x10000, 0xb000, 0x1000), 0);
	check_eq(ranges_find_gap(&ranges, 0x1000, 0x10000, UINT64_MAX, 0x1000), 0);
	ranges_deinit(&ranges);
}

static void add_mapping(struct ranges *ranges, uint64_t start, uint64_t size)
{
	const struct range range = { .start = start, .size = size, .kind = RANGE_MAPPED };

	check_eq(ranges_add(ranges, &range), 0);
}

TEST(mappings_side_by_side_are_covered_as_one)
{
	const struct range other = { .start = 0x3000, .size = 0x1000 };
	struct ranges ranges;

	ranges_init(&ranges);
	add_mapping(&ranges, 0x1000, 0x1000);
	add_mapping(&ranges, 0x2000, 0x1000);
	add_mapping(&ranges, 0x4000, 0x1000);
	check_eq(ranges_add(&ranges, &other), 0);
	check(ranges_cover(&ranges, 0x1000, 0x2000));
	check(ranges_cover(&ranges, 0x1fff, 2));
	check(!ranges_cover(&ranges, 0x1000, 0x2001));
	check(!ranges_cover(&ranges, 0x2fff, 2));
	check(!ranges_cover(&ranges, 0x3fff, 2));
	check(!ranges_cover(&ranges, 0x4000, 0x1001));
	check(!ranges_cover(&ranges, 0x4000, UINT64_MAX));
	check(ranges_cover(&ranges, 0x4fff, 0));
	check(!ranges_cover(&ranges, 0x5000, 0));
	ranges_deinit(&ranges);
}

TEST(the_range_at_an_address_or_the_next_one_is_found)
{
	struct ranges ranges;
	struct range found;

	ranges_init(&ranges);
	check(!ranges_find(&ranges, 0, &found));
	add_mapping(&ranges, 0x1000, 0x1000);
	add_mapping(&ranges, 0x3000, 0x1000);
	check(ranges_find(&ranges, 0, &found));
	check_eq(found.start, 0x1000);
	check(ranges_find(&ranges, 0x1fff, &found));
	check_eq(found.start, 0x1000);
	check(ranges_find(&ranges, 0x2000, &found));
	check_eq(found.start, 0x3000);
	check(!ranges_find(&ranges, 0x4000, &found));
	ranges_deinit(&ranges);
}
