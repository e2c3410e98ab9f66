/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of memory
 */

#include "test.h"

#include "memory/range.h"
#include "wire/channel.h"

static bool add(uint64_t base, uint64_t size)
{
	struct shim_range range = { .base = base, .size = size };

	return shim_range_add(&range);
}

TEST(an_address_finds_its_allocation)
{
	struct shim_range found;

	check(add(0x3000, 0x100));
	check(add(0x1000, 0x100));
	check(add(0x2000, 0x100));
	check(shim_range_find(0x1000, &found));
	check_eq(found.base, 0x1000);
	check(shim_range_find(0x20ff, &found));
	check_eq(found.base, 0x2000);
	check(!shim_range_find(0x2100, &found));
	check(!shim_range_find(0xfff, &found));
}

TEST(a_span_is_covered_by_one_allocation_or_not)
{
	check(add(0x1000, 0x100));
	check(add(0x1100, 0x100));
	check(shim_range_covers(0x1000, 0x100));
	check(shim_range_covers(0x10ff, 1));
	check(!shim_range_covers(0x10ff, 2));
	check(!shim_range_covers(0x1000, UINT64_MAX));
}

TEST(removing_needs_the_base_and_the_kind)
{
	struct shim_range removed;

	check(add(0x1000, 0x100));
	check(!shim_range_remove(0x1001, SHIM_RANGE_DEVICE, &removed));
	check(!shim_range_remove(0x1000, SHIM_RANGE_PINNED, &removed));
	check(shim_range_remove(0x1000, SHIM_RANGE_DEVICE, &removed));
	check_eq(removed.size, 0x100);
	check(!shim_range_covers(0x1000, 1));
}

TEST(each_allocation_has_its_own_number)
{
	struct shim_range a, b;

	check(add(0x1000, 0x100));
	check(shim_range_remove(0x1000, SHIM_RANGE_DEVICE, &a));
	check(add(0x1000, 0x100));
	check(shim_range_find(0x1000, &b));
	check(a.id != b.id);
}

TEST(the_variables_of_a_module_go_with_it)
{
	struct shim_range variable = {
		.base = 0x1000,
		.size = 8,
		.kind = SHIM_RANGE_VARIABLE,
		.owner = 7,
	};

	check(shim_range_add(&variable));
	variable.base = 0x2000;
	variable.owner = 8;
	check(shim_range_add(&variable));
	shim_range_drop_owner(7);
	check(!shim_range_covers(0x1000, 8));
	check(shim_range_covers(0x2000, 8));
}

TEST(thousands_of_allocations_stay_in_order)
{
	struct shim_range found;

	for (uint64_t i = 0; i < 4000; i++)
		check(add(0x10000 + (i * 2654435761u % 4000) * 0x100, 0x80));
	for (uint64_t i = 0; i < 4000; i++) {
		check(shim_range_find(0x10000 + i * 0x100 + 0x7f, &found));
		check_eq(found.base, 0x10000 + i * 0x100);
		check(!shim_range_find(0x10000 + i * 0x100 + 0x80, &found));
	}
}

static void add_mapping(uint64_t base, uint64_t size, uint64_t closed_to)
{
	struct shim_range range = {
		.base = base,
		.size = size,
		.kind = SHIM_RANGE_MAPPED,
		.closed_to = closed_to,
	};

	check(shim_range_add(&range));
}

TEST(mappings_side_by_side_are_one)
{
	add_mapping(0x1000, 0x1000, 0);
	add_mapping(0x2000, 0x1000, 0);
	add_mapping(0x4000, 0x1000, 0);
	check(add(0x3000, 0x1000));
	check(shim_range_covers(0x1800, 0x1000));
	check(shim_range_covers(0x1000, 0x2000));
	check(!shim_range_covers(0x1000, 0x2001));
	check(!shim_range_covers(0x3000, 0x1001));
	check(shim_range_covers(0x4000, 0x1000));
	check(!shim_range_covers(0x4000, 0x1001));
	check(!shim_range_covers(0x4000, UINT64_MAX));
}

TEST(a_mapping_that_a_device_is_denied_is_not_known)
{
	bool is_denied = false;

	add_mapping(0x1000, 0x1000, 3);
	add_mapping(0x2000, 0x1000, 3);
	check(!shim_range_covers(0x1000, 1));
	check(shim_range_holds(0x1000, 0x2000, &is_denied));
	check(is_denied);
	check(!shim_range_holds(0x1000, 0x2001, &is_denied));
	shim_range_set_access(0x1000, 0x2000, 1, true);
	check(!shim_range_covers(0x1000, 1));
	shim_range_set_access(0x1000, 0x1000, 2, true);
	check(shim_range_covers(0x1000, 0x1000));
	check(shim_range_holds(0x1000, 0x1000, &is_denied) && !is_denied);
	check(shim_range_holds(0x1000, 0x1001, &is_denied) && is_denied);
	check(!shim_range_covers(0x1000, 0x1001));
	shim_range_set_access(0x2000, 0x1000, 2, true);
	check(shim_range_covers(0x1000, 0x2000));
	shim_range_set_access(0x1000, 0x1000, 1, false);
	check(!shim_range_covers(0x1000, 1));
	check(shim_range_covers(0x2000, 1));
}

TEST(variables_outside_the_window_are_known)
{
	struct shim_range variable = {
		.base = 0x7000,
		.size = 0x100,
		.kind = SHIM_RANGE_VARIABLE,
	};

	shim_channel.window = (struct shim_window){
		.base = 0x100000,
		.size = 0x100000,
		.shm_size = 0x1000,
	};
	check(add(0x7100, 0x100));
	check(!shim_range_is_variable(0x7100));
	check(shim_range_add(&variable));
	check(shim_range_is_variable(0x7000));
	check(shim_range_is_variable(0x70ff));
	check(!shim_range_is_variable(0x7100));
	check(shim_range_remove(0x7000, SHIM_RANGE_VARIABLE, &variable));
	check(!shim_range_is_variable(0x7000));
	variable.base = 0x180000;
	check(shim_range_add(&variable));
	check(!shim_range_is_variable(0x180000));
}

TEST(unmapping_removes_mappings_and_nothing_else)
{
	struct shim_range found;

	check(add(0x1000, 0x1000));
	add_mapping(0x2000, 0x1000, 0);
	add_mapping(0x3000, 0x1000, 0);
	check(add(0x4000, 0x1000));
	shim_range_drop_mapped(0x2000, 0x2000);
	check(shim_range_find(0x1fff, &found));
	check(!shim_range_find(0x2000, &found));
	check(!shim_range_find(0x3fff, &found));
	check(shim_range_find(0x4000, &found));
}
