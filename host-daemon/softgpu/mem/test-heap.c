/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap: pieces do not overlap, come back whole, and only what was taken can be given
 */

#include <stdlib.h>

#include "mem/heap.h"
#include "test.h"

#define BASE UINT64_C(0x100000000)

TEST(pieces_are_disjoint_aligned_and_all_come_back)
{
	enum { N = 400 };
	/* No power of two: 1 MiB + 320 bytes. */
	uint64_t size = (1u << 20) + 320, at[N] = { 0 }, sizes[N];
	struct heap heap;
	uint32_t seed = 1;

	heap_init(&heap);
	check_eq(heap_begin(&heap, BASE, size), 0);
	for (int round = 0; round < 20000; round++) {
		int i;

		seed = seed * 1664525 + 1013904223;
		i = (int)(seed >> 8) % N;
		if (at[i]) {
			heap_give(&heap, at[i]);
			at[i] = 0;
			continue;
		}
		sizes[i] = 1 + (seed >> 16) % 9000;
		at[i] = heap_take(&heap, sizes[i]);
		if (!at[i])
			continue;
		check_eq(at[i] % 64, 0);
		check(at[i] >= BASE && at[i] + sizes[i] <= BASE + size);
		for (int k = 0; k < N; k++)
			check(k == i || !at[k] || at[k] >= at[i] + sizes[i] ||
				at[i] >= at[k] + sizes[k]);
	}
	for (int i = 0; i < N; i++)
		heap_give(&heap, at[i]);
	check_eq(heap_take(&heap, 1 << 20), BASE);
	check_eq(heap_take(&heap, 256), BASE + (1 << 20));
	check_eq(heap_take(&heap, 65), 0);
	check_eq(heap_take(&heap, 64), BASE + (1 << 20) + 256);
	check_eq(heap_take(&heap, 1), 0);
	heap_deinit(&heap);
}

TEST(freeing_unallocated_memory_fails)
{
	struct heap heap;
	uint64_t a, b;

	heap_init(&heap);
	heap_give(&heap, BASE);
	check_eq(heap_begin(&heap, BASE, 4096), 0);
	a = heap_take(&heap, 1024);
	b = heap_take(&heap, 1024);
	heap_give(&heap, a + 64);
	heap_give(&heap, a + 1);
	heap_give(&heap, 0);
	heap_give(&heap, UINT64_MAX);
	heap_give(&heap, BASE + 4096);
	heap_give(&heap, BASE - 64);
	heap_give(&heap, b);
	heap_give(&heap, b);
	check(heap_take(&heap, 2048));
	check_eq(heap_take(&heap, 1024), b);
	check_eq(heap_take(&heap, 1), 0);
	check_eq(heap_take(&heap, 0), 0);
	check_eq(heap_take(&heap, UINT64_MAX), 0);
	heap_deinit(&heap);
}
