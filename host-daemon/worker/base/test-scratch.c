/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch: memory for one call
 */

#include <string.h>

#include "test.h"
#include "worker/base/scratch.h"

static struct scratch scratch;

TEST(pieces_are_aligned_and_do_not_overlap)
{
	uint8_t *a, *b;

	check_eq(scratch_init(&scratch), 0);
	a = scratch_alloc(&scratch, 1);
	b = scratch_alloc(&scratch, 17);
	check(a && b);
	check_eq((uintptr_t)a % 16, 0);
	check_eq((uintptr_t)b % 16, 0);
	check(b >= a + 1);
	check((uint8_t *)scratch_alloc(&scratch, 1) >= b + 17);
	scratch_deinit(&scratch);
}

TEST(no_piece_exceeds_the_block)
{
	check_eq(scratch_init(&scratch), 0);
	check(!scratch_alloc(&scratch, SCRATCH_SIZE + 1));
	check(scratch_alloc(&scratch, 1));
	check(!scratch_alloc(&scratch, SIZE_MAX));
	scratch_reset(&scratch);
	check(scratch_alloc(&scratch, SCRATCH_SIZE - 15));
	/* The last piece was rounded up to the end. */
	check(!scratch_alloc(&scratch, 1));
	scratch_deinit(&scratch);
}

TEST(the_next_call_has_the_whole_block)
{
	void *first;

	check_eq(scratch_init(&scratch), 0);
	first = scratch_alloc(&scratch, SCRATCH_SIZE);
	check(first && !scratch_alloc(&scratch, 1));
	scratch_reset(&scratch);
	check(scratch_alloc(&scratch, SCRATCH_SIZE) == first);
	scratch_deinit(&scratch);
}

TEST(messages_are_unpacked_into_the_block)
{
	ProtobufCAllocator *allocator;
	uint8_t *piece;

	check_eq(scratch_init(&scratch), 0);
	allocator = &scratch.allocator;
	piece = allocator->alloc(allocator->allocator_data, 32);
	check(piece >= scratch.block && piece + 32 <= scratch.block + SCRATCH_SIZE);
	check(!allocator->alloc(allocator->allocator_data, SCRATCH_SIZE));
	scratch_deinit(&scratch);
}
