/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges: the device addresses that the guest may use
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "worker/base/ranges.h"

#define RANGES_GROW 256u

void ranges_init(struct ranges *ranges)
{
	*ranges = (struct ranges){ .lock = PTHREAD_MUTEX_INITIALIZER };
}

void ranges_deinit(struct ranges *ranges)
{
	free(ranges->items);
	ranges->items = NULL;
	pthread_mutex_destroy(&ranges->lock);
}

/* Index of the first range that starts above `address`. */
static size_t upper_bound(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->n_items;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int reserve_one(struct ranges *ranges)
{
	struct range *items;

	if (ranges->n_items < ranges->max)
		return 0;
	items = reallocarray(
		ranges->items, ranges->max + RANGES_GROW, sizeof(*ranges->items));
	if (!items)
		return vgpu_error_origin(-ENOMEM);
	ranges->items = items;
	ranges->max += RANGES_GROW;
	return 0;
}

static int add_locked(struct ranges *ranges, const struct range *range)
{
	uint64_t end;
	size_t at;
	int r;

	if (!range->size || !vgpu_add_u64(range->start, range->size, &end))
		return RANGES_E_OVERLAP;
	at = upper_bound(ranges, range->start);
	if (at > 0 &&
		range->start - ranges->items[at - 1].start < ranges->items[at - 1].size)
		return RANGES_E_OVERLAP;
	if (at < ranges->n_items && ranges->items[at].start < end)
		return RANGES_E_OVERLAP;
	r = reserve_one(ranges);
	if (r)
		return vgpu_error_trace(r);
	memmove(&ranges->items[at + 1], &ranges->items[at],
		(ranges->n_items - at) * sizeof(*ranges->items));
	ranges->items[at] = *range;
	ranges->n_items++;
	return 0;
}

int ranges_add(struct ranges *ranges, const struct range *range)
{
	int r;

	pthread_mutex_lock(&ranges->lock);
	r = add_locked(ranges, range);
	pthread_mutex_unlock(&ranges->lock);
	return r;
}

static void remove_at(struct ranges *ranges, size_t at)
{
	ranges->n_items--;
	memmove(&ranges->items[at], &ranges->items[at + 1],
		(ranges->n_items - at) * sizeof(*ranges->items));
}

int ranges_remove(
	struct ranges *ranges, enum range_kind kind, uint64_t start, struct range *rangep)
{
	int r = RANGES_E_UNKNOWN;
	size_t at;

	pthread_mutex_lock(&ranges->lock);
	at = upper_bound(ranges, start);
	if (at > 0 && ranges->items[at - 1].start == start &&
		ranges->items[at - 1].kind == kind) {
		*rangep = ranges->items[at - 1];
		remove_at(ranges, at - 1);
		r = 0;
	}
	pthread_mutex_unlock(&ranges->lock);
	return r;
}

int ranges_remove_owned(struct ranges *ranges, const void *owner, struct range *rangep)
{
	int r = RANGES_E_UNKNOWN;
	size_t i;

	pthread_mutex_lock(&ranges->lock);
	/* From the end: little has to be moved then. */
	for (i = ranges->n_items; i > 0; i--) {
		if (ranges->items[i - 1].owner != owner &&
			ranges->items[i - 1].parent != owner)
			continue;
		*rangep = ranges->items[i - 1];
		remove_at(ranges, i - 1);
		r = 0;
		break;
	}
	pthread_mutex_unlock(&ranges->lock);
	return r;
}

void ranges_remove_overlapping(
	struct ranges *ranges, enum range_kind kind, uint64_t start, uint64_t size)
{
	pthread_mutex_lock(&ranges->lock);
	for (size_t i = ranges->n_items; i > 0; i--) {
		const struct range *range = &ranges->items[i - 1];

		/* Neither begins after the end of the other. */
		if (range->kind == kind &&
			(range->start < start ? start - range->start < range->size
					      : range->start - start < size))
			remove_at(ranges, i - 1);
	}
	pthread_mutex_unlock(&ranges->lock);
}

bool ranges_find(struct ranges *ranges, uint64_t address, struct range *rangep)
{
	bool found;
	size_t at;

	pthread_mutex_lock(&ranges->lock);
	at = upper_bound(ranges, address);
	if (at > 0 && address - ranges->items[at - 1].start < ranges->items[at - 1].size)
		at--;
	found = at < ranges->n_items;
	if (found)
		*rangep = ranges->items[at];
	pthread_mutex_unlock(&ranges->lock);
	return found;
}

/* The end of what begins at or before `start` and may be used as one: a range, or
 * mappings side by side up to `end`. Return: 0 if there is nothing at `start`. */
static uint64_t end_of(const struct ranges *ranges, uint64_t start, uint64_t end)
{
	size_t at = upper_bound(ranges, start);
	uint64_t until;

	if (!at || start - ranges->items[at - 1].start >= ranges->items[at - 1].size)
		return 0;
	until = ranges->items[at - 1].start + ranges->items[at - 1].size;
	if (ranges->items[at - 1].kind != RANGE_MAPPED)
		return until;
	for (; until < end && at < ranges->n_items; at++) {
		if (ranges->items[at].kind != RANGE_MAPPED ||
			ranges->items[at].start != until)
			break;
		until += ranges->items[at].size;
	}
	return until;
}

bool ranges_cover(struct ranges *ranges, uint64_t start, uint64_t size)
{
	uint64_t end, until;

	if (!vgpu_add_u64(start, size, &end))
		return false;
	pthread_mutex_lock(&ranges->lock);
	until = end_of(ranges, start, end);
	pthread_mutex_unlock(&ranges->lock);
	return until && until >= end;
}

uint64_t ranges_find_gap(struct ranges *ranges, uint64_t base, uint64_t limit,
	uint64_t size, uint64_t alignment)
{
	uint64_t start = 0, end;
	size_t i;

	pthread_mutex_lock(&ranges->lock);
	if (!vgpu_align_u64(base, alignment, &start))
		goto out;
	for (i = 0; i <= ranges->n_items; i++) {
		uint64_t gap_end = i < ranges->n_items ? ranges->items[i].start : limit;

		if (vgpu_add_u64(start, size, &end) && end <= gap_end && end <= limit)
			goto out;
		if (i == ranges->n_items)
			break;
		end = ranges->items[i].start + ranges->items[i].size;
		if (end > start && !vgpu_align_u64(end, alignment, &start))
			break;
	}
	start = 0;
out:
	pthread_mutex_unlock(&ranges->lock);
	return start;
}
