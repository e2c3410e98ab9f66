/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describe: what is at an address, or near it
 */

#include <stdio.h>

#include "mem/memory.h"

/* Allocations further away have nothing to do with an address. */
#define DESCRIBE_FAR (UINT64_C(1) << 30)

static const char *const kinds[_RANGE_N] = {
	[RANGE_DEVICE] = "an allocation",
	[RANGE_MANAGED] = "a managed allocation",
	[RANGE_MODULE] = "the variables of a module",
	[RANGE_HOST] = "a host allocation",
	[RANGE_REGISTERED] = "a host registration",
	[RANGE_DRIVER] = "memory of the driver",
	[RANGE_ARRAY] = "an array",
	[RANGE_MAPPED] = "a mapping",
	[RANGE_HEAP] = "the heap of kernels",
};

/* With the lock. Returns: the latest of that address, or NULL. */
static const struct memory_ended *find_ended(
	const struct memory *memory, uint64_t address)
{
	uint64_t n =
		memory->n_ends < MEMORY_ENDED_MAX ? memory->n_ends : MEMORY_ENDED_MAX;

	for (uint64_t i = 1; i <= n; i++) {
		const struct memory_ended *ended =
			&memory->ended[(memory->n_ends - i) % MEMORY_ENDED_MAX];

		if (address - ended->address < ended->size)
			return ended;
	}
	return NULL;
}

static uint64_t distance(const struct range *range, uint64_t address)
{
	if (address < range->address)
		return range->address - address;
	return address - (range->address + range->size);
}

/* With the lock. Returns: the entry that is nearest to the address, or NULL. */
static const struct range *find_nearest(const struct memory *memory, uint64_t address)
{
	const struct range *best = NULL;

	for (size_t i = 0; i < memory->ranges.n_entries; i++) {
		const struct range *entry = &memory->ranges.entries[i];

		if (!best || distance(entry, address) < distance(best, address))
			best = entry;
	}
	return best && distance(best, address) < DESCRIBE_FAR ? best : NULL;
}

static void describe_near(
	const struct range *range, uint64_t address, char *text, size_t size)
{
	bool is_before = address < range->address;

	snprintf(text, size, "%llu bytes %s %s of %llu bytes at 0x%llx",
		(unsigned long long)distance(range, address),
		is_before ? "before" : "past the end of", kinds[range->kind],
		(unsigned long long)range->size, (unsigned long long)range->address);
}

void memory_describe(struct memory *memory, uint64_t address, char *text, size_t size)
{
	const struct memory_ended *ended;
	const struct range *range;

	pthread_mutex_lock(&memory->lock);
	range = ranges_find(&memory->ranges, address);
	ended = find_ended(memory, address);
	if (range) {
		snprintf(text, size, "%llu bytes into %s of %llu bytes at 0x%llx",
			(unsigned long long)(address - range->address),
			kinds[range->kind], (unsigned long long)range->size,
			(unsigned long long)range->address);
	} else if (ended) {
		snprintf(text, size,
			"%llu bytes into memory of %llu bytes at 0x%llx that was freed",
			(unsigned long long)(address - ended->address),
			(unsigned long long)ended->size,
			(unsigned long long)ended->address);
	} else {
		range = find_nearest(memory, address);
		if (range)
			describe_near(range, address, text, size);
		else
			snprintf(text, size, "far from all allocations");
	}
	pthread_mutex_unlock(&memory->lock);
}
