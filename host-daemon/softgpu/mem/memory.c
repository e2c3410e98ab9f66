/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: everything a device address can point to
 *
 * Small allocations share chunks, large ones take whole pages and one page more
 * behind them, which stays closed: a kernel that runs over the end of an array
 * faults as it does on hardware.
 */

#include <stdlib.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"

#include "mem/chunk.h"
#include "mem/memory.h"

/* Addresses for a window of our own: limit, guards and fragmentation fit in. */
#define MEMORY_WINDOW_FACTOR 4
#define MEMORY_WINDOW_EXTRA (4ull << 30)

static uint64_t memory_pages(uint64_t size)
{
	return (size + SOFTGPU_PAGE_SIZE - 1) >> SOFTGPU_PAGE_SHIFT;
}

static bool memory_counts(enum range_kind kind)
{
	return kind == RANGE_DEVICE || kind == RANGE_MANAGED || kind == RANGE_MODULE ||
	       kind == RANGE_ARRAY;
}

/* Returns: bytes that count against the limit. */
static uint64_t memory_cost(uint64_t size)
{
	if (size <= CHUNK_ALLOCATION_MAX)
		return (size + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT;
	return memory_pages(size) << SOFTGPU_PAGE_SHIFT;
}

static void memory_add_window(struct memory *memory, const struct window *window)
{
	if (!window->size)
		return;
	memory->space.windows[memory->space.n_windows++] = (struct softgpu_window){
		.base = window->base,
		.size = window->size,
		.pages = window->map,
	};
}

int memory_init(struct memory *memory, uint64_t limit, uint64_t base, uint64_t size,
	uint64_t host_base, uint64_t host_size)
{
	uint64_t wanted = MEMORY_WINDOW_FACTOR * limit + MEMORY_WINDOW_EXTRA;
	int r;

	*memory = (struct memory){ .limit = limit, .next_id = 1 };
	pthread_mutex_init(&memory->lock, NULL);
	wanted = memory_pages(wanted) << SOFTGPU_PAGE_SHIFT;
	if (!size)
		r = window_init_reserve(&memory->device, wanted);
	else
		r = window_init(&memory->device, base, size < wanted ? size : wanted);
	if (!r && host_size)
		r = window_init(&memory->host, host_base, host_size);
	if (!r)
		r = spans_init(&memory->spans, memory->device.size >> SOFTGPU_PAGE_SHIFT);
	if (r) {
		memory_deinit(memory);
		return vgpu_error_trace(r);
	}
	memory_add_window(memory, &memory->device);
	memory_add_window(memory, &memory->host);
	return 0;
}

void memory_deinit(struct memory *memory)
{
	for (size_t i = 0; i < memory->n_chunks; i++)
		free(memory->chunks[i]);
	free(memory->chunks);
	spans_deinit(&memory->spans);
	ranges_deinit(&memory->ranges);
	window_deinit(&memory->host);
	window_deinit(&memory->device);
	pthread_mutex_destroy(&memory->lock);
	*memory = (struct memory){ 0 };
}

static int memory_take_pages(struct memory *memory, uint64_t n_pages, uint64_t *addressp)
{
	uint64_t first;
	int r;

	r = spans_take(&memory->spans, n_pages, &first);
	if (r)
		return r;
	r = window_commit(&memory->device, (first + n_pages) << SOFTGPU_PAGE_SHIFT);
	if (r) {
		spans_give(&memory->spans, first, n_pages);
		return vgpu_error_trace(r);
	}
	*addressp = memory->device.base + (first << SOFTGPU_PAGE_SHIFT);
	return 0;
}

static void memory_give_pages(struct memory *memory, uint64_t address, uint64_t n_pages)
{
	spans_give(&memory->spans, (address - memory->device.base) >> SOFTGPU_PAGE_SHIFT,
		n_pages);
}

static int memory_add_chunk(struct memory *memory, struct chunk **chunkp)
{
	struct chunk **chunks, *chunk;
	uint64_t address;
	int r;

	chunks = reallocarray(
		memory->chunks, memory->n_chunks + 1, sizeof(*memory->chunks));
	if (!chunks)
		return vgpu_error_origin(-ENOMEM);
	memory->chunks = chunks;
	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return vgpu_error_origin(-ENOMEM);
	/* One page more: the guard. */
	r = memory_take_pages(memory, CHUNK_PAGES + 1, &address);
	if (r) {
		free(chunk);
		return r;
	}
	chunk_init(chunk, address);
	memory->chunks[memory->n_chunks++] = chunk;
	*chunkp = chunk;
	return 0;
}

static int memory_take_small(struct memory *memory, uint64_t size, uint64_t *addressp)
{
	uint32_t n_units = (size + CHUNK_UNIT - 1) / CHUNK_UNIT;
	struct chunk *chunk = NULL;
	uint64_t off;
	int r;

	for (size_t i = memory->n_chunks; i-- > 0;)
		if (chunk_take(memory->chunks[i], n_units, &off)) {
			chunk = memory->chunks[i];
			break;
		}
	if (!chunk) {
		r = memory_add_chunk(memory, &chunk);
		if (r)
			return r;
		chunk_take(chunk, n_units, &off);
	}
	chunk_enter(chunk, off, size);
	*addressp = chunk->address + off;
	return 0;
}

static void memory_give_small(struct memory *memory, uint64_t address, uint64_t size)
{
	struct chunk *chunk;
	size_t i = 0;

	while (address - memory->chunks[i]->address >= CHUNK_SIZE)
		i++;
	chunk = memory->chunks[i];
	chunk_give(chunk, address - chunk->address, (size + CHUNK_UNIT - 1) / CHUNK_UNIT);
	chunk_leave(chunk, address - chunk->address, size);
	for (uint32_t page = 0; page < CHUNK_PAGES; page++) {
		uint64_t start = chunk->address + page * SOFTGPU_PAGE_SIZE;

		if (chunk->page_users[page] || start + SOFTGPU_PAGE_SIZE <= address ||
			start >= address + size)
			continue;
		window_forbid(&memory->device, start, SOFTGPU_PAGE_SIZE);
		window_drop(&memory->device, start, SOFTGPU_PAGE_SIZE);
	}
	if (chunk->n_free < CHUNK_UNITS)
		return;
	memory_give_pages(memory, chunk->address, CHUNK_PAGES + 1);
	free(chunk);
	memory->chunks[i] = memory->chunks[--memory->n_chunks];
}

static void memory_give(struct memory *memory, const struct range *range)
{
	uint64_t n_pages = memory_pages(range->size);

	if (range->size <= CHUNK_ALLOCATION_MAX) {
		memory_give_small(memory, range->address, range->size);
		return;
	}
	window_forbid(&memory->device, range->address, range->size);
	window_drop(&memory->device, range->address, n_pages << SOFTGPU_PAGE_SHIFT);
	memory_give_pages(memory, range->address, n_pages + 1);
}

static int memory_alloc_locked(struct memory *memory, struct range *range)
{
	bool counts = memory_counts(range->kind);
	uint64_t cost = memory_cost(range->size);
	int r;

	/* Host memory has no limit of its own: the window is its limit. */
	if (range->size > memory->device.size ||
		(counts && cost > memory->limit - memory->used))
		return MEMORY_E_FULL;
	if (range->size <= CHUNK_ALLOCATION_MAX)
		r = memory_take_small(memory, range->size, &range->address);
	else
		r = memory_take_pages(
			memory, memory_pages(range->size) + 1, &range->address);
	if (r)
		return r == -ENOMEM ? MEMORY_E_FULL : r;
	range->id = memory->next_id++;
	r = ranges_insert(&memory->ranges, range);
	if (r) {
		memory_give(memory, range);
		return vgpu_error_trace(r);
	}
	window_allow(&memory->device, range->address, range->size);
	if (counts)
		memory->used += cost;
	return 0;
}

int memory_alloc(struct memory *memory, const struct range *template, uint64_t *addressp)
{
	struct range range = *template;
	int r;

	if (!range.size)
		return MEMORY_E_UNKNOWN;
	pthread_mutex_lock(&memory->lock);
	r = memory_alloc_locked(memory, &range);
	pthread_mutex_unlock(&memory->lock);
	if (!r)
		*addressp = range.address;
	return r;
}

/* Neighbours that share a page with a registration keep that page open. */
static void memory_close_registered(struct memory *memory, const struct range *range)
{
	window_forbid(&memory->host, range->address, range->size);
	for (size_t i = 0; i < memory->ranges.n_entries; i++) {
		const struct range *other = &memory->ranges.entries[i];

		if (other->kind != RANGE_REGISTERED)
			continue;
		if (other->address < range->address + range->size + SOFTGPU_PAGE_SIZE &&
			range->address < other->address + other->size + SOFTGPU_PAGE_SIZE)
			window_allow(&memory->host, other->address, other->size);
	}
}

static void memory_remove(struct memory *memory, const struct range *entry)
{
	struct range range = *entry;

	ranges_remove(&memory->ranges, entry);
	if (range.kind == RANGE_REGISTERED) {
		memory_close_registered(memory, &range);
		return;
	}
	memory_give(memory, &range);
	if (memory_counts(range.kind))
		memory->used -= memory_cost(range.size);
}

int memory_free(struct memory *memory, uint64_t address, unsigned int kinds)
{
	const struct range *entry;
	int r = MEMORY_E_UNKNOWN;

	pthread_mutex_lock(&memory->lock);
	entry = ranges_find(&memory->ranges, address);
	if (entry && entry->address == address && kinds & MEMORY_KIND(entry->kind)) {
		memory_remove(memory, entry);
		r = 0;
	}
	pthread_mutex_unlock(&memory->lock);
	return r;
}

void memory_free_owner(struct memory *memory, const void *owner)
{
	pthread_mutex_lock(&memory->lock);
	for (size_t i = memory->ranges.n_entries; i-- > 0;)
		if (memory->ranges.entries[i].owner == owner)
			memory_remove(memory, &memory->ranges.entries[i]);
	pthread_mutex_unlock(&memory->lock);
}

int memory_register(struct memory *memory, const struct range *template)
{
	struct range range = *template;
	int r = 0;

	if (!range.size || !vgpu_range_within(range.address, range.size,
				   memory->host.base, memory->host.size))
		return MEMORY_E_OUTSIDE;
	range.kind = RANGE_REGISTERED;
	pthread_mutex_lock(&memory->lock);
	if (ranges_overlap(&memory->ranges, range.address, range.size)) {
		r = MEMORY_E_TWICE;
	} else {
		range.id = memory->next_id++;
		r = ranges_insert(&memory->ranges, &range);
		if (!r)
			window_allow(&memory->host, range.address, range.size);
	}
	pthread_mutex_unlock(&memory->lock);
	return r;
}

int memory_unregister(struct memory *memory, uint64_t address)
{
	return memory_free(memory, address, MEMORY_KIND(RANGE_REGISTERED));
}

bool memory_find(struct memory *memory, uint64_t address, struct range *rangep)
{
	const struct range *entry;

	pthread_mutex_lock(&memory->lock);
	entry = ranges_find(&memory->ranges, address);
	if (entry && (entry->kind == RANGE_DRIVER || entry->kind == RANGE_ARRAY))
		entry = NULL;
	if (entry)
		*rangep = *entry;
	pthread_mutex_unlock(&memory->lock);
	return entry != NULL;
}

bool memory_covers(struct memory *memory, uint64_t address, uint64_t size)
{
	bool covered = true;

	pthread_mutex_lock(&memory->lock);
	while (size) {
		const struct range *entry = ranges_find(&memory->ranges, address);
		uint64_t rest = entry ? entry->size - (address - entry->address) : 0;

		covered = entry && entry->kind != RANGE_DRIVER &&
			  entry->kind != RANGE_ARRAY &&
			  (rest >= size || entry->kind == RANGE_REGISTERED);
		if (!covered || rest >= size)
			break;
		address += rest;
		size -= rest;
	}
	pthread_mutex_unlock(&memory->lock);
	return covered;
}

void memory_info(struct memory *memory, uint64_t *freep, uint64_t *totalp)
{
	pthread_mutex_lock(&memory->lock);
	*freep = memory->limit - memory->used;
	*totalp = memory->limit;
	pthread_mutex_unlock(&memory->lock);
}
