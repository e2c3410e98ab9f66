/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: everything a device address can point to
 *
 * Each device has a part of the address space, and memory shared by host and all devices
 * has another; with one device that part is the device's. Within a part, small
 * allocations share chunks, large ones take whole pages followed by one closed page: a
 * kernel that runs over the end of an array faults as it does on hardware. A miss by less
 * than CHUNK_UNIT is tolerated, as it is there.
 *
 * Checked memory has no open page at all: then each access is looked up among the
 * allocations, to the byte.
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

/* Of a large allocation, and of the tolerated bytes after it. */
static uint64_t memory_open_pages(uint64_t size)
{
	return memory_pages(size + CHUNK_UNIT);
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

static void memory_add_window(struct softgpu_space *space, const struct window *window)
{
	if (!window->size)
		return;
	space->windows[space->n_windows] = (struct softgpu_window){
		.base = window->base,
		.size = window->size,
		.pages = window->map,
	};
	space->n_windows++;
}

/* Memory that does not belong to one device is in the last part. */
static struct part *memory_shared(struct memory *memory)
{
	return &memory->parts[memory->n_parts - 1];
}

static struct part *memory_part_for(struct memory *memory, const struct range *range)
{
	bool is_shared = range->kind == RANGE_HOST || range->kind == RANGE_MANAGED ||
			 range->kind == RANGE_DRIVER;

	return is_shared ? memory_shared(memory) : &memory->parts[range->device];
}

static struct part *memory_part_at(struct memory *memory, uint64_t address)
{
	uint32_t i = 0;

	while (address - memory->parts[i].window.base >= memory->parts[i].window.size)
		i++;
	return &memory->parts[i];
}

/* Whether the kinds, as in MEMORY_KIND(), have all of it. */
static bool memory_kinds_cover(
	struct memory *memory, uint64_t address, uint64_t size, unsigned int kinds)
{
	bool covered = true;

	pthread_mutex_lock(&memory->lock);
	while (size) {
		const struct range *entry = ranges_find(&memory->ranges, address);
		uint64_t rest = entry ? entry->size - (address - entry->address) : 0;

		covered = entry && MEMORY_KIND(entry->kind) & kinds &&
			  (rest >= size || entry->kind == RANGE_REGISTERED);
		if (!covered || rest >= size)
			break;
		address += rest;
		size -= rest;
	}
	pthread_mutex_unlock(&memory->lock);
	return covered;
}

/* The check of kernels with checked memory. */
static bool memory_reaches(void *data, uint64_t address, uint64_t size)
{
	return memory_kinds_cover(data, address, size, MEMORY_KIND(_RANGE_N) - 1);
}

void memory_space(struct memory *memory, uint32_t devices, struct softgpu_space *space)
{
	*space = (struct softgpu_space){ 0 };
	for (uint32_t i = 0; i < memory->n_devices; i++)
		if (devices & 1u << i)
			memory_add_window(space, &memory->parts[i].window);
	if (memory->n_parts > memory->n_devices)
		memory_add_window(space, &memory_shared(memory)->window);
	memory_add_window(space, &memory->host);
	if (memory->is_checked) {
		space->covers = memory_reaches;
		space->covers_data = memory;
	}
}

static int part_init(struct part *part, uint64_t base, uint64_t size, uint64_t wanted)
{
	int r;

	if (!size)
		r = window_init_reserve(&part->window, wanted);
	else
		r = window_init(&part->window, base, size < wanted ? size : wanted);
	if (!r)
		r = spans_init(&part->spans, part->window.size >> SOFTGPU_PAGE_SHIFT);
	return r ? vgpu_error_trace(r) : 0;
}

static void part_deinit(struct part *part)
{
	for (size_t i = 0; i < part->n_chunks; i++)
		free(part->chunks[i]);
	free(part->chunks);
	spans_deinit(&part->spans);
	window_deinit(&part->window);
}

int memory_init(struct memory *memory, uint32_t n_devices, uint64_t limit, uint64_t base,
	uint64_t size, uint64_t host_base, uint64_t host_size)
{
	uint64_t wanted = MEMORY_WINDOW_FACTOR * limit + MEMORY_WINDOW_EXTRA, part_size;
	int r = 0;

	*memory = (struct memory){
		.limit = limit,
		.next_id = 1,
		.n_devices = n_devices,
		.n_parts = n_devices > 1 ? n_devices + 1 : 1,
	};
	pthread_mutex_init(&memory->lock, NULL);
	wanted = memory_pages(wanted) << SOFTGPU_PAGE_SHIFT;
	part_size = size / memory->n_parts / SOFTGPU_PAGE_SIZE * SOFTGPU_PAGE_SIZE;
	for (uint32_t i = 0; i < memory->n_parts && !r; i++)
		r = part_init(&memory->parts[i], base + i * part_size, part_size, wanted);
	if (!r && host_size)
		r = window_init(&memory->host, host_base, host_size);
	if (r) {
		memory_deinit(memory);
		return vgpu_error_trace(r);
	}
	return 0;
}

void memory_deinit(struct memory *memory)
{
	for (uint32_t i = 0; i < memory->n_parts; i++)
		part_deinit(&memory->parts[i]);
	ranges_deinit(&memory->ranges);
	window_deinit(&memory->host);
	pthread_mutex_destroy(&memory->lock);
	*memory = (struct memory){ 0 };
}

static int part_take_pages(struct part *part, uint64_t n_pages, uint64_t *addressp)
{
	uint64_t first;
	int r;

	r = spans_take(&part->spans, n_pages, &first);
	if (r)
		return r;
	r = window_commit(&part->window, (first + n_pages) << SOFTGPU_PAGE_SHIFT);
	if (r) {
		spans_give(&part->spans, first, n_pages);
		return vgpu_error_trace(r);
	}
	*addressp = part->window.base + (first << SOFTGPU_PAGE_SHIFT);
	return 0;
}

static void part_give_pages(struct part *part, uint64_t address, uint64_t n_pages)
{
	spans_give(&part->spans, (address - part->window.base) >> SOFTGPU_PAGE_SHIFT,
		n_pages);
}

static int part_add_chunk(struct part *part, struct chunk **chunkp)
{
	struct chunk **chunks, *chunk;
	uint64_t address;
	int r;

	chunks = reallocarray(part->chunks, part->n_chunks + 1, sizeof(*part->chunks));
	if (!chunks)
		return vgpu_error_origin(-ENOMEM);
	part->chunks = chunks;
	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return vgpu_error_origin(-ENOMEM);
	/* One page more: the guard. */
	r = part_take_pages(part, CHUNK_PAGES + 1, &address);
	if (r) {
		free(chunk);
		return r;
	}
	chunk_init(chunk, address);
	part->chunks[part->n_chunks++] = chunk;
	*chunkp = chunk;
	return 0;
}

static int part_take_small(struct part *part, uint64_t size, uint64_t *addressp)
{
	uint32_t n_units = (size + CHUNK_UNIT - 1) / CHUNK_UNIT;
	struct chunk *chunk = NULL;
	uint64_t off;
	int r;

	for (size_t i = part->n_chunks; i-- > 0;)
		if (chunk_take(part->chunks[i], n_units, &off)) {
			chunk = part->chunks[i];
			break;
		}
	if (!chunk) {
		r = part_add_chunk(part, &chunk);
		if (r)
			return r;
		chunk_take(chunk, n_units, &off);
	}
	chunk_enter(chunk, off, size);
	*addressp = chunk->address + off;
	return 0;
}

static void part_give_small(struct part *part, uint64_t address, uint64_t size)
{
	struct chunk *chunk;
	size_t i = 0;

	while (address - part->chunks[i]->address >= CHUNK_SIZE)
		i++;
	chunk = part->chunks[i];
	chunk_give(chunk, address - chunk->address, (size + CHUNK_UNIT - 1) / CHUNK_UNIT);
	chunk_leave(chunk, address - chunk->address, size);
	for (uint32_t page = 0; page < CHUNK_PAGES; page++) {
		uint64_t start = chunk->address + page * SOFTGPU_PAGE_SIZE;

		if (chunk->page_users[page] ||
			start + SOFTGPU_PAGE_SIZE <= address - CHUNK_UNIT ||
			start >= address + size + CHUNK_UNIT)
			continue;
		window_forbid(&part->window, start, SOFTGPU_PAGE_SIZE);
		window_drop(&part->window, start, SOFTGPU_PAGE_SIZE);
	}
	if (chunk->n_free < CHUNK_UNITS_MAX)
		return;
	part_give_pages(part, chunk->address, CHUNK_PAGES + 1);
	free(chunk);
	part->chunks[i] = part->chunks[--part->n_chunks];
}

static void part_give(struct part *part, const struct range *range)
{
	uint64_t n_pages = memory_open_pages(range->size);

	if (range->size <= CHUNK_ALLOCATION_MAX) {
		part_give_small(part, range->address, range->size);
		return;
	}
	window_forbid(&part->window, range->address, n_pages << SOFTGPU_PAGE_SHIFT);
	window_drop(&part->window, range->address, n_pages << SOFTGPU_PAGE_SHIFT);
	part_give_pages(part, range->address, n_pages + 1);
}

/* For kernels, with what is forgiven around it. */
static void memory_open(
	const struct memory *memory, struct part *part, const struct range *range)
{
	uint64_t before = range->size <= CHUNK_ALLOCATION_MAX ? CHUNK_UNIT : 0;

	if (!memory->is_checked)
		window_allow(&part->window, range->address - before,
			before + range->size + CHUNK_UNIT - 1);
}

static int memory_alloc_locked(struct memory *memory, struct range *range)
{
	bool counts = memory_counts(range->kind);
	struct part *part = memory_part_for(memory, range);
	uint64_t cost = memory_cost(range->size);
	int r;

	/* Host memory has no separate limit: the window is its limit. */
	if (range->size > part->window.size ||
		(counts && cost > memory->limit - part->used))
		return MEMORY_E_FULL;
	if (range->size <= CHUNK_ALLOCATION_MAX)
		r = part_take_small(part, range->size, &range->address);
	else
		r = part_take_pages(
			part, memory_open_pages(range->size) + 1, &range->address);
	if (r)
		return r == -ENOMEM ? MEMORY_E_FULL : r;
	range->id = memory->next_id++;
	r = ranges_insert(&memory->ranges, range);
	if (r) {
		part_give(part, range);
		return vgpu_error_trace(r);
	}
	memory_open(memory, part, range);
	if (counts)
		part->used += cost;
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

static void memory_open_registered(struct memory *memory, const struct range *range)
{
	if (!memory->is_checked)
		window_allow(&memory->host, range->address, range->size);
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
			memory_open_registered(memory, other);
	}
}

static void memory_remove(struct memory *memory, const struct range *entry)
{
	struct range range = *entry;
	struct part *part;

	ranges_remove(&memory->ranges, entry);
	/* Partner: memory_ends(). */
	__atomic_add_fetch(&memory->n_ends, 1, __ATOMIC_RELEASE);
	if (range.kind == RANGE_REGISTERED) {
		memory_close_registered(memory, &range);
		return;
	}
	part = memory_part_at(memory, range.address);
	part_give(part, &range);
	if (memory_counts(range.kind))
		part->used -= memory_cost(range.size);
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
			memory_open_registered(memory, &range);
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
	unsigned int hidden = MEMORY_KIND(RANGE_DRIVER) | MEMORY_KIND(RANGE_ARRAY);

	return memory_kinds_cover(
		memory, address, size, (MEMORY_KIND(_RANGE_N) - 1) & ~hidden);
}

void memory_info(
	struct memory *memory, uint32_t device, uint64_t *freep, uint64_t *totalp)
{
	pthread_mutex_lock(&memory->lock);
	*freep = memory->limit - memory->parts[device].used;
	*totalp = memory->limit;
	pthread_mutex_unlock(&memory->lock);
}
