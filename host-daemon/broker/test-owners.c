/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy of the table of extents
 */

#include <string.h>

#include "broker/owners.h"
#include "broker/vm.h"

#include "test.h"

#define N_EXTENTS 64

static uint8_t owners[N_EXTENTS];
static uint8_t memory[VGPU_EXTENT_SIZE];
static struct vm vm = {
	.extents = { owners, N_EXTENTS },
	.map = memory,
	.channels = { [2] = { .vm = &vm, .index = 2 }, [3] = { .vm = &vm, .index = 3 } },
};

static bool copy_is_right(void)
{
	return !memcmp(memory + VGPU_OWNERS_OFF, owners, N_EXTENTS);
}

/* Nothing else of the memory is written. */
static void expect_rest_is_zero(void)
{
	static const uint8_t none[VGPU_EXTENT_SIZE];

	check(!memcmp(memory, none, VGPU_OWNERS_OFF));
	check(!memcmp(memory + VGPU_OWNERS_OFF + N_EXTENTS, none,
		sizeof(none) - VGPU_OWNERS_OFF - N_EXTENTS));
}

TEST(the_copy_follows_each_change)
{
	uint32_t first;

	check_eq(owners_take(&vm.channels[2], 16, &first), 0);
	check_eq(first, 0);
	check_eq(memory[VGPU_OWNERS_OFF + 15], 3);
	check(copy_is_right());
	check_eq(owners_own(&vm.channels[3], 20, 4), 0);
	check_eq(memory[VGPU_OWNERS_OFF + 23], 4);
	check(copy_is_right());
	check_eq(owners_give(&vm.channels[2], 8, 8), 0);
	check_eq(memory[VGPU_OWNERS_OFF + 8], 0);
	check(copy_is_right());
	expect_rest_is_zero();
}

TEST(a_change_that_is_refused_leaves_the_copy)
{
	check_eq(owners_own(&vm.channels[2], 4, 4), 0);
	check_eq(owners_own(&vm.channels[3], 6, 4), EXTENT_E_NOT_OWNED);
	check_eq(owners_give(&vm.channels[3], 4, 1), EXTENT_E_NOT_OWNED);
	check_eq(memory[VGPU_OWNERS_OFF + 4], 3);
	check_eq(memory[VGPU_OWNERS_OFF + 9], 0);
	check(copy_is_right());
}

TEST(what_a_guest_wrote_into_the_copy_is_written_over_by_the_next_broker)
{
	check_eq(owners_own(&vm.channels[2], 4, 4), 0);
	memset(memory + VGPU_OWNERS_OFF, 0xa5, N_EXTENTS);
	owners_publish(&vm);
	check(copy_is_right());
	expect_rest_is_zero();
}

TEST(memory_of_a_vm_that_is_gone_is_not_touched)
{
	uint32_t first;

	vm.gone = true;
	check_eq(owners_take(&vm.channels[2], 16, &first), 0);
	owners_publish(&vm);
	check_eq(memory[VGPU_OWNERS_OFF], 0);
}
