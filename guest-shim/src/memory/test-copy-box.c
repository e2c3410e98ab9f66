/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes: their bounds, and copies between memories of the program
 *
 * Copies with the device are compared byte for byte by tests/e2e/test-copy.c.
 */

#include <string.h>

#include "test.h"
#include "vgpu/ring-layout.h"

#include "memory/copy.h"
#include "memory/range.h"
#include "wire/channel.h"

#define BASE 0x7f0000000000ull

/* Whether a box with this side is within the allocation of 0x1000 bytes at BASE. */
static bool is_known(uint64_t offset, uint64_t pitch, uint64_t rows, uint64_t width,
	uint64_t height, uint64_t depth)
{
	const struct shim_side side = { BASE + offset, pitch, rows };

	return shim_side_is_known(&side, width, height, depth);
}

static void add_allocation(void)
{
	struct shim_range range = { .base = BASE, .size = 0x1000 };

	check(shim_range_add(&range));
}

TEST(a_box_within_an_allocation_is_known)
{
	add_allocation();
	check(is_known(0, 0x100, 0, 0x100, 16, 1));
	check(is_known(0, 0x100, 4, 0x100, 4, 4));
	/* The last row needs no whole pitch. */
	check(is_known(0xff, 0x100, 0, 1, 16, 1));
}

TEST(a_box_beyond_an_allocation_is_not_known)
{
	add_allocation();
	check(!is_known(0, 0x100, 0, 0x101, 16, 1));
	check(!is_known(0, 0x100, 0, 0x100, 17, 1));
	check(!is_known(1, 0x100, 0, 0x100, 16, 1));
	check(!is_known(0, 0x100, 5, 0x100, 4, 4));
	check(!is_known(UINT64_MAX - BASE, 0x100, 0, 1, 1, 1));
}

TEST(an_empty_box_is_known_wherever_it_is)
{
	check(is_known(0, 0x100, 4, 0, 4, 4));
	check(is_known(0, 0x100, 4, 4, 0, 4));
	check(is_known(0, 0x100, 4, 4, 4, 0));
}

TEST(sizes_that_overflow_are_not_known)
{
	add_allocation();
	check(!is_known(0, 1ull << 31, 0, 1, 1, 1));
	check(!is_known(0, INT32_MAX, 0, 1, UINT64_MAX, 1));
	check(!is_known(0, 0x100, UINT64_MAX, 1, 1, 3));
	check(!is_known(0, 0x100, 1ull << 63, 1, 1, 3));
	check(!is_known(0, 0x100, 1ull << 56, 1, 1, 2));
	check(!is_known(0, 0x100, 0, UINT64_MAX, 2, 1));
}

/* A channel without a host, which such copies do not need. */
static void begin(void)
{
	static struct vgpu_channel_control control;

	shim_channel.control = &control;
}

TEST(a_box_between_memories_of_the_program_is_copied_by_rows_and_layers)
{
	static uint8_t from[4][5][16], to[4][6][32], expected[4][6][32];
	struct shim_box box = {
		.to = { shim_address(&to[1][2][3]), sizeof(to[0][0]), 6 },
		.from = { shim_address(&from[0][1][2]), sizeof(from[0][0]), 5 },
		.width = 7,
		.height = 3,
		.depth = 2,
	};

	begin();
	memset(to, 0xee, sizeof(to));
	memset(expected, 0xee, sizeof(expected));
	for (size_t i = 0; i < sizeof(from); i++)
		((uint8_t *)from)[i] = i % 251;
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 3; y++)
			for (int x = 0; x < 7; x++)
				expected[1 + z][2 + y][3 + x] = from[z][1 + y][2 + x];
	check_eq(shim_copy_box(&box, NULL, false), CUDA_SUCCESS);
	check(!memcmp(to, expected, sizeof(to)));
}

TEST(an_empty_box_copies_nothing)
{
	uint8_t from[4] = { 1, 2, 3, 4 }, to[4] = { 0 };
	struct shim_box box = {
		.to = { shim_address(to), 4, 1 },
		.from = { shim_address(from), 4, 1 },
		.width = 4,
		.height = 1,
		.depth = 0,
	};

	begin();
	check_eq(shim_copy_box(&box, NULL, false), CUDA_SUCCESS);
	check_eq(to[0], 0);
}
