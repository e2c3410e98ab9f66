/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests: copies of large pieces of memory
 */

#include <stdlib.h>

#include "test.h"
#include "vgpu/bulk.h"

#define ROOM (3 * VGPU_BULK_MIN)
#define GAP 0xa5

typedef void (*copy_fn)(void *to, const void *from, size_t size);

/* All of it is copied, and nothing beyond either end. */
static void check_copy(copy_fn copy, size_t to, size_t from, size_t size)
{
	static unsigned char source[ROOM + 256], target[ROOM + 256];

	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (unsigned char)(i * 31 + i / 251);
	memset(target, GAP, sizeof(target));
	copy(target + to, source + from, size);
	for (size_t i = 0; i < sizeof(target); i++)
		check_eq(target[i],
			i >= to && i < to + size ? source[from + i - to] : GAP);
}

static void check_sizes(copy_fn copy)
{
	static const size_t sizes[] = { 0, 1, 63, 64, VGPU_BULK_MIN - 1, VGPU_BULK_MIN,
		VGPU_BULK_MIN + 1, VGPU_BULK_MIN + 63, VGPU_BULK_MIN + 64, ROOM - 1 };
	static const size_t offsets[] = { 0, 1, 15, 16, 63, 64, 65 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < 49; k++)
			check_copy(copy, offsets[k % 7], offsets[k / 7], sizes[i]);
}

TEST(a_bulk_copy_moves_every_byte_of_any_size_and_alignment)
{
	check_sizes(vgpu_bulk_copy);
}

TEST(a_bulk_copy_past_caches_moves_every_byte_of_any_size_and_alignment)
{
	check_sizes(vgpu_bulk_copy_past_caches);
}
