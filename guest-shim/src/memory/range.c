/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges
 *
 * A sorted array: looking up is what happens often, and the search touches few lines.
 */

#include <stdlib.h>
#include <string.h>

#include "memory/arena.h"
#include "memory/range.h"
#include "wire/channel.h"
#include "wire/lock.h"

#define RANGES_FIRST 256u

static struct {
	struct shim_lock lock;
	struct shim_range *all;
	uint32_t n;
	uint32_t max;
	uint64_t n_ids;
	/* Atomic: how often ranges were added, or set, that calls wait for. */
	uint32_t n_syncs;
	/* Atomic: variables that are not in the window. */
	uint32_t n_outside;
} ranges;

/* Returns: the number of ranges that begin at or before the address. */
static uint32_t rank(uint64_t address)
{
	uint32_t low = 0, high = ranges.n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ranges.all[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct shim_range *find(uint64_t address)
{
	uint32_t i = rank(address);

	if (!i || address - ranges.all[i - 1].base >= ranges.all[i - 1].size)
		return NULL;
	return &ranges.all[i - 1];
}

static bool grow(void)
{
	uint32_t max = ranges.max ? ranges.max * 2 : RANGES_FIRST;
	struct shim_range *all = realloc(ranges.all, max * sizeof(*all));

	if (!all)
		return false;
	ranges.all = all;
	ranges.max = max;
	return true;
}

static bool is_outside(const struct shim_range *range)
{
	return (range->kind == SHIM_RANGE_VARIABLE ||
		       range->kind == SHIM_RANGE_MANAGED_VARIABLE) &&
	       !shim_window_is_arena(&shim_channel.window, range->base) &&
	       !shim_window_is_device(&shim_channel.window, range->base);
}

static void remove_at(uint32_t i)
{
	__atomic_sub_fetch(
		&ranges.n_outside, is_outside(&ranges.all[i]), __ATOMIC_RELAXED);
	memmove(&ranges.all[i], &ranges.all[i + 1],
		(ranges.n - i - 1) * sizeof(*ranges.all));
	ranges.n--;
}

bool shim_range_add(const struct shim_range *range)
{
	uint32_t i;

	SHIM_LOCKED(&ranges.lock);
	if (!range->size || find(range->base))
		return true;
	if (ranges.n == ranges.max && !grow())
		return false;
	i = rank(range->base);
	memmove(&ranges.all[i + 1], &ranges.all[i], (ranges.n - i) * sizeof(*ranges.all));
	ranges.all[i] = *range;
	ranges.all[i].id = ++ranges.n_ids;
	__atomic_add_fetch(&ranges.n_outside, is_outside(range), __ATOMIC_RELAXED);
	__atomic_add_fetch(&ranges.n_syncs, range->syncs, __ATOMIC_RELAXED);
	ranges.n++;
	return true;
}

bool shim_range_find(uint64_t address, struct shim_range *rangep)
{
	const struct shim_range *range;

	SHIM_LOCKED(&ranges.lock);
	range = find(address);
	if (range)
		*rangep = *range;
	return range;
}

bool shim_range_holds(uint64_t address, uint64_t size, bool *is_deniedp)
{
	const struct shim_range *range, *last;
	uint64_t rest;

	SHIM_LOCKED(&ranges.lock);
	*is_deniedp = false;
	range = find(address);
	if (!range)
		return false;
	last = &ranges.all[ranges.n - 1];
	rest = range->size - (address - range->base);
	*is_deniedp = range->closed_to;
	while (size > rest) {
		/* Mappings side by side are one array for programs. */
		if (range->kind != SHIM_RANGE_MAPPED || range == last ||
			range[1].kind != SHIM_RANGE_MAPPED ||
			range[1].base != range->base + range->size)
			return false;
		range++;
		rest += range->size;
		*is_deniedp |= range->closed_to;
	}
	return true;
}

bool shim_range_is_variable(uint64_t address)
{
	const struct shim_range *range;
	bool result;

	/* There are none with softgpu, and then every copy would take the lock. */
	if (!__atomic_load_n(&ranges.n_outside, __ATOMIC_RELAXED))
		return false;
	shim_lock(&ranges.lock);
	range = find(address);
	result = range && is_outside(range);
	shim_unlock(&ranges.lock);
	return result;
}

void shim_range_set_access(
	uint64_t address, uint64_t size, uint64_t devices, bool is_open)
{
	SHIM_LOCKED(&ranges.lock);
	for (uint32_t i = rank(address + size - 1); i-- > 0;) {
		struct shim_range *range = &ranges.all[i];

		if (range->base < address)
			break;
		if (is_open)
			range->closed_to &= ~devices;
		else
			range->closed_to |= devices;
	}
}

bool shim_range_set_owner(uint64_t base, uint64_t owner)
{
	struct shim_range *range;

	SHIM_LOCKED(&ranges.lock);
	range = find(base);
	if (!range || range->base != base || range->kind != SHIM_RANGE_MAPPED)
		return false;
	range->owner = owner;
	return true;
}

bool shim_range_find_on_host(uint64_t from, uint64_t to, struct shim_range *rangep)
{
	SHIM_LOCKED(&ranges.lock);
	for (uint32_t i = from ? rank(from - 1) : 0; i < ranges.n; i++) {
		if (ranges.all[i].base >= to)
			break;
		if (!ranges.all[i].arena)
			continue;
		*rangep = ranges.all[i];
		return true;
	}
	return false;
}

void shim_range_drop_mapped(uint64_t address, uint64_t size)
{
	SHIM_LOCKED(&ranges.lock);
	for (uint32_t i = rank(address + size - 1); i-- > 0;) {
		if (ranges.all[i].base < address)
			break;
		if (ranges.all[i].kind == SHIM_RANGE_MAPPED)
			remove_at(i);
	}
}

bool shim_range_remove(
	uint64_t base, enum shim_range_kind kind, struct shim_range *rangep)
{
	struct shim_range *range;

	SHIM_LOCKED(&ranges.lock);
	range = find(base);
	if (!range || range->base != base || range->kind != kind)
		return false;
	*rangep = *range;
	remove_at((uint32_t)(range - ranges.all));
	return true;
}

bool shim_range_set_syncs(uint64_t address, bool wanted)
{
	struct shim_range *range;

	SHIM_LOCKED(&ranges.lock);
	range = find(address);
	if (range)
		range->syncs = wanted;
	__atomic_add_fetch(&ranges.n_syncs, wanted, __ATOMIC_RELAXED);
	return range;
}

static bool syncs(uint64_t address)
{
	const struct shim_range *range = find(address);

	return range && range->syncs;
}

bool shim_range_syncs(uint64_t a, uint64_t b)
{
	bool result;

	/* Hardly any program asks for it, and then every copy would take the lock. */
	if (!__atomic_load_n(&ranges.n_syncs, __ATOMIC_RELAXED))
		return false;
	shim_lock(&ranges.lock);
	result = syncs(a) || syncs(b);
	shim_unlock(&ranges.lock);
	return result;
}

void shim_range_drop_context(const struct shim_context *context)
{
	SHIM_LOCKED(&ranges.lock);
	for (uint32_t i = ranges.n; i-- > 0;) {
		if (ranges.all[i].context != context)
			continue;
		if (ranges.all[i].kind == SHIM_RANGE_PINNED ||
			ranges.all[i].kind == SHIM_RANGE_MANAGED)
			shim_arena_free((void *)(uintptr_t)ranges.all[i].base);
		remove_at(i);
	}
}

void shim_range_drop_owner(uint64_t owner)
{
	SHIM_LOCKED(&ranges.lock);
	for (uint32_t i = ranges.n; i-- > 0;)
		if (ranges.all[i].owner && ranges.all[i].owner == owner)
			remove_at(i);
}
