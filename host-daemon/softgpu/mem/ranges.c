/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges: disjoint address ranges, found by any address inside
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"

#include "mem/ranges.h"

void ranges_deinit(struct ranges *ranges)
{
	free(ranges->entries);
	*ranges = (struct ranges){ 0 };
}

/* Returns: index of the first entry that starts above the address. */
static size_t ranges_above(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->n_entries;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->entries[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int ranges_insert(struct ranges *ranges, const struct range *range)
{
	size_t at;

	if (ranges->n_entries == ranges->n_allocated) {
		size_t n = ranges->n_allocated ? 2 * ranges->n_allocated : 64;
		struct range *entries;

		entries = reallocarray(ranges->entries, n, sizeof(*entries));
		if (!entries)
			return vgpu_error_origin(-ENOMEM);
		ranges->entries = entries;
		ranges->n_allocated = n;
	}
	at = ranges_above(ranges, range->address);
	memmove(&ranges->entries[at + 1], &ranges->entries[at],
		(ranges->n_entries - at) * sizeof(*ranges->entries));
	ranges->entries[at] = *range;
	ranges->n_entries++;
	return 0;
}

void ranges_remove(struct ranges *ranges, const struct range *entry)
{
	size_t at = entry - ranges->entries;

	ranges->n_entries--;
	memmove(&ranges->entries[at], &ranges->entries[at + 1],
		(ranges->n_entries - at) * sizeof(*ranges->entries));
}

const struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
	size_t at = ranges_above(ranges, address);
	const struct range *entry;

	if (!at)
		return NULL;
	entry = &ranges->entries[at - 1];
	return address - entry->address < entry->size ? entry : NULL;
}

bool ranges_overlap(const struct ranges *ranges, uint64_t address, uint64_t size)
{
	size_t at = ranges_above(ranges, address);

	if (ranges_find(ranges, address))
		return true;
	return at < ranges->n_entries && ranges->entries[at].address - address < size;
}
