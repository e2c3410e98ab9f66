/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: reserved addresses, and physical memory mapped at them
 */

#include <errno.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"

#include "mem/virtual.h"

static bool is_aligned(uint64_t value)
{
	return value % VIRTUAL_GRANULARITY == 0;
}

static int reserve(struct memory *memory, struct range *range, uint64_t alignment)
{
	struct part *part = memory_shared(memory);
	int r;

	if (range->size > part->window.size)
		return MEMORY_E_FULL;
	r = part_take_range(
		part, range->size, alignment, range->address, &range->address);
	if (r)
		return r == -ENOMEM ? MEMORY_E_FULL : r;
	r = ranges_insert(&memory->reservations, range);
	if (r) {
		part_give_range(part, range->address, range->size);
		return vgpu_error_trace(r);
	}
	return 0;
}

int virtual_reserve(struct memory *memory, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp)
{
	struct range range = { .size = size, .address = hint };
	int r;

	if (alignment & (alignment - 1) || !size || !is_aligned(size))
		return -EINVAL;
	if (alignment < VIRTUAL_GRANULARITY)
		alignment = VIRTUAL_GRANULARITY;
	pthread_mutex_lock(&memory->lock);
	r = reserve(memory, &range, alignment);
	pthread_mutex_unlock(&memory->lock);
	if (!r)
		*addressp = range.address;
	return r;
}

int virtual_free(struct memory *memory, uint64_t address, uint64_t size)
{
	const struct range *entry;
	int r = 0;

	pthread_mutex_lock(&memory->lock);
	entry = ranges_find(&memory->reservations, address);
	if (!entry || entry->address != address || entry->size != size) {
		r = MEMORY_E_UNKNOWN;
	} else if (ranges_overlap(&memory->ranges, address, size)) {
		r = MEMORY_E_USED;
	} else {
		ranges_remove(&memory->reservations, entry);
		part_give_range(memory_shared(memory), address, size);
	}
	pthread_mutex_unlock(&memory->lock);
	return r;
}

static bool is_reserved(struct memory *memory, uint64_t address, uint64_t size)
{
	const struct range *entry = ranges_find(&memory->reservations, address);

	return entry && size <= entry->size - (address - entry->address);
}

static int map(struct memory *memory, const struct range *template, uint64_t offset)
{
	struct range range = *template;
	struct physical *physical = range.physical;
	int r;

	if (!is_reserved(memory, range.address, range.size))
		return MEMORY_E_OUTSIDE;
	if (ranges_overlap(&memory->ranges, range.address, range.size))
		return MEMORY_E_TWICE;
	range.id = memory->next_id++;
	r = ranges_insert(&memory->ranges, &range);
	if (r)
		return vgpu_error_trace(r);
	r = window_map(&memory_shared(memory)->window, range.address, range.size,
		physical->fd, physical->offset + offset);
	if (r) {
		ranges_remove(
			&memory->ranges, ranges_find(&memory->ranges, range.address));
		return vgpu_error_trace(r);
	}
	physical_ref_locked(physical);
	return 0;
}

int virtual_map(struct memory *memory, uint64_t address, uint64_t size, uint64_t offset,
	struct physical *physical)
{
	const struct range range = {
		.address = address,
		.size = size,
		.kind = RANGE_MAPPED,
		.device = physical->device,
		.flags = (physical->is_host ? RANGE_ON_HOST : 0) |
			 (physical->is_shared ? RANGE_SHARED : 0),
		.physical = physical,
	};
	uint64_t end;
	int r;

	if (!size || !is_aligned(address) || !is_aligned(size) || !is_aligned(offset) ||
		!vgpu_add_u64(offset, size, &end) || end > physical->size)
		return -EINVAL;
	pthread_mutex_lock(&memory->lock);
	r = map(memory, &range, offset);
	pthread_mutex_unlock(&memory->lock);
	return r;
}

/*
 * Whole mappings without gaps between that make up [address, address + size).
 *
 * Return: the first, after which the others are; NULL: they do not.
 */
static struct range *find_whole(
	struct memory *memory, uint64_t address, uint64_t size, size_t *n_entriesp)
{
	const struct range *first = ranges_find(&memory->ranges, address);
	size_t at, n = 0;

	if (!first || first->address != address)
		return NULL;
	at = first - memory->ranges.entries;
	while (size) {
		const struct range *entry = &memory->ranges.entries[at + n];

		if (at + n == memory->ranges.n_entries || entry->kind != RANGE_MAPPED ||
			entry->address != address || entry->size > size)
			return NULL;
		address += entry->size;
		size -= entry->size;
		n++;
	}
	*n_entriesp = n;
	return n ? &memory->ranges.entries[at] : NULL;
}

static int unmap(struct memory *memory, uint64_t address, uint64_t size)
{
	struct window *window = &memory_shared(memory)->window;
	struct range *first;
	size_t n;
	int r;

	first = find_whole(memory, address, size, &n);
	if (!first)
		return MEMORY_E_UNKNOWN;
	window_forbid(window, address, size);
	r = window_unmap(window, address, size);
	if (r)
		return vgpu_error_trace(r);
	/* Partner: memory_ends(). */
	__atomic_add_fetch(&memory->n_ends, 1, __ATOMIC_RELEASE);
	while (n--) {
		physical_unref_locked(memory, first->physical);
		ranges_remove(&memory->ranges, first);
	}
	return 0;
}

int virtual_unmap(struct memory *memory, uint64_t address, uint64_t size)
{
	int r;

	pthread_mutex_lock(&memory->lock);
	r = unmap(memory, address, size);
	pthread_mutex_unlock(&memory->lock);
	return r;
}

int virtual_set_access(struct memory *memory, uint64_t address, uint64_t size,
	uint32_t device, uint8_t access)
{
	struct window *window = &memory_shared(memory)->window;
	struct range *first;
	size_t n;

	pthread_mutex_lock(&memory->lock);
	first = find_whole(memory, address, size, &n);
	for (size_t i = 0; first && i < n; i++)
		first[i].access[device] = access;
	if (first && device < window->n_maps && !memory->is_checked)
		window_set_access(window, device, address, size, access);
	if (first)
		__atomic_add_fetch(&memory->n_ends, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&memory->lock);
	return first ? 0 : MEMORY_E_UNKNOWN;
}

bool virtual_get_access(
	struct memory *memory, uint64_t address, uint32_t device, uint8_t *accessp)
{
	const struct range *entry;
	bool found;

	pthread_mutex_lock(&memory->lock);
	entry = ranges_find(&memory->ranges, address);
	found = entry && entry->kind == RANGE_MAPPED;
	if (found)
		*accessp = entry->access[device];
	pthread_mutex_unlock(&memory->lock);
	return found;
}

bool virtual_is_whole(
	struct memory *memory, uint64_t address, uint64_t size, bool *on_hostp)
{
	const struct range *first;
	bool is_whole;
	size_t n = 0;

	pthread_mutex_lock(&memory->lock);
	first = find_whole(memory, address, size, &n);
	is_whole = first;
	if (first)
		*on_hostp = first->flags & RANGE_ON_HOST;
	for (size_t i = 1; i < n; i++)
		if ((first[i].flags ^ first->flags) & RANGE_ON_HOST)
			is_whole = false;
	pthread_mutex_unlock(&memory->lock);
	return is_whole;
}

struct physical *virtual_find(struct memory *memory, uint64_t address)
{
	struct physical *physical = NULL;
	const struct range *entry;

	pthread_mutex_lock(&memory->lock);
	entry = ranges_find(&memory->ranges, address);
	if (entry && entry->kind == RANGE_MAPPED) {
		physical = entry->physical;
		physical_ref_locked(physical);
	}
	pthread_mutex_unlock(&memory->lock);
	return physical;
}
