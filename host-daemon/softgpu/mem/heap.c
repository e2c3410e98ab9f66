/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap: what malloc() in device code takes from
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"

#include "mem/heap.h"

#define PIECE_NONE 0u /* inside of a piece */
#define PIECE_FREE 0x40u
#define PIECE_TAKEN 0x80u
#define PIECE_ORDER 0x3fu

void heap_init(struct heap *heap)
{
	*heap = (struct heap){};
	pthread_mutex_init(&heap->lock, NULL);
}

void heap_reset(struct heap *heap)
{
	free(heap->pieces);
	free(heap->next);
	free(heap->previous);
	heap->pieces = NULL;
	heap->next = heap->previous = NULL;
	heap->base = 0;
	heap->n_units = 0;
	heap->is_begun = false;
	memset(heap->first, 0, sizeof(heap->first));
}

void heap_deinit(struct heap *heap)
{
	heap_reset(heap);
	pthread_mutex_destroy(&heap->lock);
}

bool heap_has_begun(struct heap *heap)
{
	bool is_begun;

	pthread_mutex_lock(&heap->lock);
	is_begun = heap->is_begun;
	pthread_mutex_unlock(&heap->lock);
	return is_begun;
}

bool heap_holds(struct heap *heap, uint64_t address)
{
	bool holds;

	pthread_mutex_lock(&heap->lock);
	holds = heap->base && address - heap->base < (uint64_t)heap->n_units
							     << HEAP_UNIT_SHIFT;
	pthread_mutex_unlock(&heap->lock);
	return holds;
}

static void list_add(struct heap *heap, uint32_t unit, unsigned int order)
{
	uint32_t first = heap->first[order];

	heap->pieces[unit] = (uint8_t)(PIECE_FREE | order);
	heap->next[unit] = first;
	heap->previous[unit] = 0;
	if (first)
		heap->previous[first - 1] = unit + 1;
	heap->first[order] = unit + 1;
}

static void list_remove(struct heap *heap, uint32_t unit)
{
	unsigned int order = heap->pieces[unit] & PIECE_ORDER;
	uint32_t next = heap->next[unit], previous = heap->previous[unit];

	heap->pieces[unit] = PIECE_NONE;
	if (next)
		heap->previous[next - 1] = previous;
	if (previous)
		heap->next[previous - 1] = next;
	else
		heap->first[order] = next;
}

int heap_begin(struct heap *heap, uint64_t base, uint64_t size)
{
	uint64_t n = size >> HEAP_UNIT_SHIFT;

	n = n > UINT32_C(1) << (HEAP_ORDERS - 1) ? UINT32_C(1) << (HEAP_ORDERS - 1) : n;
	heap->pieces = calloc(n, sizeof(*heap->pieces));
	heap->next = calloc(n, sizeof(*heap->next));
	heap->previous = calloc(n, sizeof(*heap->previous));
	if (!heap->pieces || !heap->next || !heap->previous) {
		heap_reset(heap);
		return vgpu_error_origin(-ENOMEM);
	}
	heap->base = base;
	heap->n_units = (uint32_t)n;
	/* The largest pieces that lie where a piece of their size may. */
	for (uint32_t at = 0, order; at < n; at += UINT32_C(1) << order) {
		order = at ? (uint32_t)__builtin_ctz(at) : HEAP_ORDERS - 1;
		while (UINT64_C(1) << order > n - at)
			order--;
		list_add(heap, at, order);
	}
	return 0;
}

uint64_t heap_take(struct heap *heap, uint64_t size)
{
	uint64_t units =
		(size >> HEAP_UNIT_SHIFT) + !!(size & ((1u << HEAP_UNIT_SHIFT) - 1));
	unsigned int order = 0, found;
	uint32_t unit;

	if (!size || units > heap->n_units)
		return 0;
	while (UINT64_C(1) << order < units)
		order++;
	for (found = order; found < HEAP_ORDERS && !heap->first[found]; found++)
		;
	if (found >= HEAP_ORDERS)
		return 0;
	unit = heap->first[found] - 1;
	list_remove(heap, unit);
	while (found > order) {
		found--;
		list_add(heap, unit + (UINT32_C(1) << found), found);
	}
	heap->pieces[unit] = (uint8_t)(PIECE_TAKEN | order);
	return heap->base + ((uint64_t)unit << HEAP_UNIT_SHIFT);
}

void heap_give(struct heap *heap, uint64_t address)
{
	uint64_t off = address - heap->base;
	uint32_t unit = (uint32_t)(off >> HEAP_UNIT_SHIFT), twin;
	unsigned int order;

	if (!heap->base || off & ((1u << HEAP_UNIT_SHIFT) - 1) ||
		off >> HEAP_UNIT_SHIFT >= heap->n_units ||
		!(heap->pieces[unit] & PIECE_TAKEN))
		return;
	order = heap->pieces[unit] & PIECE_ORDER;
	heap->pieces[unit] = PIECE_NONE;
	for (; order < HEAP_ORDERS - 1; order++) {
		twin = unit ^ UINT32_C(1) << order;
		if (twin >= heap->n_units || heap->pieces[twin] != (PIECE_FREE | order))
			break;
		list_remove(heap, twin);
		unit &= ~(UINT32_C(1) << order);
	}
	list_add(heap, unit, order);
}
