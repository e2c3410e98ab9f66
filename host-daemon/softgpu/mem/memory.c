/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: everything a device address can point to
 *
 * Each device has a part of the address space, and memory shared by host and all devices
 * has another; with one device that part is the device's. A miss of an allocation by less
 * than CHUNK_UNIT is tolerated, as it is on hardware.
 *
 * Checked memory has no open page at all: then each access is looked up among the
 * allocations, to the byte.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"

#include "mem/chunk.h"
#include "mem/memory.h"

/* Addresses for a window: limit, guards and fragmentation fit in, and two reservations of
 * llama.cpp, which reserves 32 GiB for each pool, whatever the size of the device. */
#define MEMORY_WINDOW_FACTOR 4
#define MEMORY_WINDOW_EXTRA (68ull << 30)

static bool memory_counts(enum range_kind kind)
{
	return kind == RANGE_DEVICE || kind == RANGE_MANAGED || kind == RANGE_MODULE ||
	       kind == RANGE_ARRAY || kind == RANGE_HEAP;
}

/* Bytes for which somebody has to be asked, because no call has named them. */
static uint64_t memory_charged(const struct memory *memory, const struct range *range)
{
	if (!memory->charging.charge ||
		(range->kind != RANGE_MODULE && range->kind != RANGE_HEAP))
		return 0;
	return (range->size + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT;
}

static bool memory_charge(const struct memory *memory, const struct range *range)
{
	const uint64_t size = memory_charged(memory, range);

	return !size ||
	       !memory->charging.charge(memory->charging.data, range->device, size);
}

static void memory_refund(const struct memory *memory, const struct range *range)
{
	const uint64_t size = memory_charged(memory, range);

	if (size)
		memory->charging.refund(memory->charging.data, range->device, size);
}

/* Returns: bytes of addresses for an allocation. Large ones have a closed page after them
 * anyway. */
static uint64_t memory_taken(const struct memory *memory, uint64_t size)
{
	return memory->is_checked && size <= CHUNK_ALLOCATION_MAX ? size + CHUNK_UNIT
								  : size;
}

static bool memory_is_watched(const struct memory *memory, const struct range *range)
{
	return range->kind == RANGE_DEVICE &&
	       memory->parts[range->device].window.unwritten;
}

/* Returns: bytes that count against the limit. */
static uint64_t memory_cost(const struct memory *memory, const struct range *range)
{
	uint64_t size = memory_taken(memory, range->size), cost;

	if (size <= CHUNK_ALLOCATION_MAX)
		cost = (size + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT;
	else
		cost = part_pages(size) << SOFTGPU_PAGE_SHIFT;
	return memory_is_watched(memory, range) ? cost + cost / 8 : cost;
}

static void memory_add_window(
	struct softgpu_space *space, const struct window *window, uint32_t map)
{
	if (!window->size)
		return;
	space->windows[space->n_windows] = (struct softgpu_window){
		.base = window->base,
		.size = window->size,
		.pages = window->maps[map],
		.unwritten = window->unwritten,
	};
	space->n_windows++;
}

/* Memory that does not belong to one device is in the last part. */
struct part *memory_shared(struct memory *memory)
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

/* What may be asked of an address. */
struct demand {
	unsigned int kinds; /* as in MEMORY_KIND() */
	uint32_t device;
	unsigned int access;
};

static bool memory_meets(const struct range *entry, const struct demand *demand)
{
	if (!(MEMORY_KIND(entry->kind) & demand->kinds))
		return false;
	return entry->kind != RANGE_MAPPED ||
	       (entry->access[demand->device] & demand->access) == demand->access;
}

/* Those that programs use as one where they have put them side by side. */
static bool memory_joins(enum range_kind kind)
{
	return kind == RANGE_REGISTERED || kind == RANGE_MAPPED;
}

static bool memory_has(struct memory *memory, uint64_t address, uint64_t size,
	const struct demand *demand)
{
	bool covered = true;

	pthread_mutex_lock(&memory->lock);
	while (size) {
		const struct range *entry = ranges_find(&memory->ranges, address);
		uint64_t rest = entry ? entry->size - (address - entry->address) : 0;

		covered = entry && memory_meets(entry, demand) &&
			  (rest >= size || memory_joins(entry->kind));
		if (!covered || rest >= size)
			break;
		address += rest;
		size -= rest;
	}
	pthread_mutex_unlock(&memory->lock);
	return covered;
}

/* The check of kernels with checked memory. */
static bool memory_reaches(
	void *data, uint64_t address, uint64_t size, unsigned int access)
{
	const struct memory_view *view = data;
	const struct demand demand = {
		.kinds = MEMORY_KIND(_RANGE_N) - 1,
		.device = view->device,
		.access = access,
	};

	return memory_has(view->memory, address, size, &demand);
}

static void memory_tell(void *data, uint64_t address, char *text, size_t size)
{
	const struct memory_view *view = data;

	memory_describe(view->memory, address, text, size);
}

void memory_space(struct memory *memory, uint32_t device, uint32_t devices,
	struct softgpu_space *space)
{
	*space = (struct softgpu_space){ 0 };
	for (uint32_t i = 0; i < memory->n_devices; i++)
		if (devices & 1u << i)
			memory_add_window(space, &memory->parts[i].window, 0);
	if (memory->n_parts > memory->n_devices)
		memory_add_window(space, &memory_shared(memory)->window, device);
	memory_add_window(space, &memory->host, 0);
	space->describe = memory_tell;
	space->data = &memory->views[device];
	if (memory->is_checked)
		space->covers = memory_reaches;
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
	wanted = part_pages(wanted) << SOFTGPU_PAGE_SHIFT;
	part_size = size / memory->n_parts / SOFTGPU_PAGE_SIZE * SOFTGPU_PAGE_SIZE;
	/* What is shared has the first addresses. */
	for (uint32_t i = 0; i < memory->n_parts && !r; i++)
		r = part_init(&memory->parts[i],
			base + (i + 1) % memory->n_parts * part_size, part_size, wanted,
			i < n_devices ? 1 : n_devices);
	if (!r && host_size)
		r = window_init(&memory->host, host_base, host_size, 1);
	for (uint32_t i = 0; i < n_devices; i++)
		memory->views[i] = (struct memory_view){ memory, i };
	if (r) {
		memory_deinit(memory);
		return vgpu_error_trace(r);
	}
	return 0;
}

int memory_watch(struct memory *memory)
{
	for (uint32_t i = 0; i < memory->n_parts; i++) {
		int r = window_watch(&memory->parts[i].window);

		if (r)
			return vgpu_error_trace(r);
	}
	return 0;
}

void memory_deinit(struct memory *memory)
{
	for (size_t i = 0; i < memory->ranges.n_entries; i++)
		if (memory->ranges.entries[i].kind == RANGE_MAPPED)
			physical_unref_locked(memory, memory->ranges.entries[i].physical);
	for (uint32_t i = 0; i < memory->n_parts; i++) {
		struct part *part = &memory->parts[i];

		for (size_t k = 0; k < part->n_shares; k++)
			physical_unref_locked(memory, part->shares[k].physical);
		part_deinit(part);
	}
	physicals_deinit(&memory->physicals);
	ranges_deinit(&memory->ranges);
	ranges_deinit(&memory->reservations);
	window_deinit(&memory->host);
	pthread_mutex_destroy(&memory->lock);
	*memory = (struct memory){ 0 };
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

static int memory_take_locked(struct memory *memory, struct range *range)
{
	bool counts = memory_counts(range->kind);
	struct part *part = memory_part_for(memory, range);
	uint64_t cost = memory_cost(memory, range), taken;
	int r;

	/* Host memory has no separate limit: the window is its limit. */
	if (range->size > part->window.size ||
		(counts && cost > memory->limit - part->used))
		return MEMORY_E_FULL;
	taken = memory_taken(memory, range->size);
	r = part_take(part, taken, &range->address);
	if (r && quarantine_flush(memory))
		r = part_take(part, taken, &range->address);
	if (r)
		return r == -ENOMEM ? MEMORY_E_FULL : r;
	range->id = memory->next_id++;
	r = ranges_insert(&memory->ranges, range);
	if (r) {
		part_give(part, range->address, taken);
		return vgpu_error_trace(r);
	}
	if (memory_is_watched(memory, range))
		window_set_unwritten(&part->window, range->address, range->size);
	memory_open(memory, part, range);
	if (counts)
		part->used += cost;
	return 0;
}

static int memory_alloc_locked(struct memory *memory, struct range *range)
{
	int r;

	if (!memory_charge(memory, range))
		return MEMORY_E_FULL;
	r = memory_take_locked(memory, range);
	if (r)
		memory_refund(memory, range);
	return r;
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

/* That of a registration. */
static struct window *memory_window_of(struct memory *memory, const struct range *range)
{
	return window_has(&memory->host, range->address) ? &memory->host
							 : &memory_shared(memory)->window;
}

static void memory_open_registered(struct memory *memory, const struct range *range)
{
	if (!memory->is_checked)
		window_allow(
			memory_window_of(memory, range), range->address, range->size);
}

/* Neighbours that share a page with a registration keep that page open. */
static void memory_close_registered(struct memory *memory, const struct range *range)
{
	window_forbid(memory_window_of(memory, range), range->address, range->size);
	for (size_t i = 0; i < memory->ranges.n_entries; i++) {
		const struct range *other = &memory->ranges.entries[i];

		if (other->kind != RANGE_REGISTERED)
			continue;
		if (other->address < range->address + range->size + SOFTGPU_PAGE_SIZE &&
			range->address < other->address + other->size + SOFTGPU_PAGE_SIZE)
			memory_open_registered(memory, other);
	}
}

static void memory_note_end(struct memory *memory, const struct range *range)
{
	memory->ended[memory->n_ends % MEMORY_ENDED_MAX] =
		(struct memory_ended){ range->address, range->size };
	/* Partner: memory_ends(). */
	__atomic_add_fetch(&memory->n_ends, 1, __ATOMIC_RELEASE);
}

/* The addresses and the memory of an allocation that has ended. */
static void memory_give(
	struct memory *memory, struct part *part, const struct range *range)
{
	uint64_t taken = memory_taken(memory, range->size);
	struct part_share pages = part_pages_of(part, range->address, taken);
	struct physical *shared;

	if (memory->is_checked && !part_find_share(part, pages.address)) {
		quarantine_put(memory, part, range->address, taken);
		return;
	}
	shared = part_give(part, range->address, taken);
	if (shared)
		physical_unref_locked(memory, shared);
}

static void memory_remove(struct memory *memory, const struct range *entry)
{
	struct range range = *entry;
	struct part *part;

	ranges_remove(&memory->ranges, entry);
	memory_note_end(memory, &range);
	if (range.kind == RANGE_REGISTERED) {
		memory_close_registered(memory, &range);
		return;
	}
	part = memory_part_at(memory, range.address);
	if (memory_is_watched(memory, &range))
		window_set_written(&part->window, range.address, range.size);
	memory_give(memory, part, &range);
	if (memory_counts(range.kind))
		part->used -= memory_cost(memory, &range);
	memory_refund(memory, &range);
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

/* With the lock. Return: whether it is in the host window, or all within reserved
 * addresses, where the program has put memory of its own. */
static bool is_registrable(struct memory *memory, const struct range *range)
{
	const struct range *reserved;

	if (vgpu_range_within(
		    range->address, range->size, memory->host.base, memory->host.size))
		return true;
	reserved = ranges_find(&memory->reservations, range->address);
	return reserved && vgpu_range_within(range->address, range->size,
				   reserved->address, reserved->size);
}

/* With the lock. */
static int check_unregistered(struct memory *memory, const struct range *range)
{
	const struct range *there = ranges_find(&memory->ranges, range->address);

	if (there && there->kind != RANGE_HOST && there->kind != RANGE_REGISTERED)
		return MEMORY_E_USED;
	if (there || ranges_overlap(&memory->ranges, range->address, range->size))
		return MEMORY_E_TWICE;
	return is_registrable(memory, range) ? 0 : MEMORY_E_OUTSIDE;
}

int memory_register(struct memory *memory, const struct range *template)
{
	struct range range = *template;
	uint64_t end;
	int r;

	if (!range.size || !vgpu_add_u64(range.address, range.size, &end))
		return MEMORY_E_OUTSIDE;
	range.kind = RANGE_REGISTERED;
	pthread_mutex_lock(&memory->lock);
	r = check_unregistered(memory, &range);
	if (!r) {
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

/* Kinds that no call reaches. */
static const unsigned int memory_hidden =
	MEMORY_KIND(RANGE_DRIVER) | MEMORY_KIND(RANGE_ARRAY) | MEMORY_KIND(RANGE_HEAP);

bool memory_find(struct memory *memory, uint64_t address, struct range *rangep)
{
	const struct range *entry;

	pthread_mutex_lock(&memory->lock);
	entry = ranges_find(&memory->ranges, address);
	if (entry && MEMORY_KIND(entry->kind) & memory_hidden)
		entry = NULL;
	if (entry)
		*rangep = *entry;
	pthread_mutex_unlock(&memory->lock);
	return entry != NULL;
}

bool memory_covers(struct memory *memory, uint32_t device, unsigned int access,
	uint64_t address, uint64_t size)
{
	const struct demand demand = {
		.kinds = (MEMORY_KIND(_RANGE_N) - 1) & ~memory_hidden,
		.device = device,
		.access = access,
	};

	return memory_has(memory, address, size, &demand);
}

bool memory_is_device(const struct memory *memory, uint64_t address)
{
	for (uint32_t i = 0; i < memory->n_parts; i++)
		if (window_has(&memory->parts[i].window, address))
			return true;
	return false;
}

void memory_info(
	struct memory *memory, uint32_t device, uint64_t *freep, uint64_t *totalp)
{
	pthread_mutex_lock(&memory->lock);
	*freep = memory->limit - memory->parts[device].used;
	*totalp = memory->limit;
	pthread_mutex_unlock(&memory->lock);
}

/* What the pages hold, except for zeros: a file is zeros where nothing is written. */
static void copy_pages(uint8_t *to, const uint8_t *from, uint64_t size)
{
	static const uint8_t zeros[4096];

	for (uint64_t at = 0; at < size; at += sizeof(zeros))
		if (memcmp(from + at, zeros, sizeof(zeros)))
			memcpy(to + at, from + at, sizeof(zeros));
}

static int share_pages(
	struct memory *memory, struct part *part, const struct part_share *share)
{
	const struct physical *physical = share->physical;
	void *at;

	at = mmap(NULL, share->size, PROT_READ | PROT_WRITE, MAP_SHARED, physical->fd, 0);
	if (at == MAP_FAILED)
		return vgpu_error_origin(-ENOMEM);
	copy_pages(at, (const uint8_t *)(uintptr_t)share->address, share->size);
	munmap(at, share->size);
	return part_share(part, share, physical->fd);
}

/* With the lock. Return: 0 if memory that can be shared is allocated there. */
static int share_find(struct memory *memory, uint64_t address, struct part **partp,
	struct part_share *share)
{
	const struct range *entry = ranges_find(&memory->ranges, address);
	const struct part_share *found;

	if (!entry || entry->kind != RANGE_DEVICE)
		return MEMORY_E_UNKNOWN;
	*partp = memory_part_at(memory, entry->address);
	*share = part_pages_of(*partp, entry->address, memory_taken(memory, entry->size));
	found = part_find_share(*partp, share->address);
	if (found)
		*share = *found;
	share->device = entry->device;
	return 0;
}

int memory_find_share(struct memory *memory, uint64_t address, struct memory_share *share)
{
	struct part_share found;
	struct part *part;
	int r;

	pthread_mutex_lock(&memory->lock);
	r = share_find(memory, address, &part, &found);
	if (!r)
		*share = (struct memory_share){
			found.address,
			found.size,
			found.device,
			found.physical ? physical_export(found.physical) : -1,
		};
	pthread_mutex_unlock(&memory->lock);
	return r;
}

int memory_share(struct memory *memory, uint64_t address,
	const struct memory_share *share, struct physical *physical)
{
	struct part_share found;
	struct part *part;
	int r;

	pthread_mutex_lock(&memory->lock);
	r = share_find(memory, address, &part, &found);
	/* It may have been freed, or shared, in the meantime. */
	if (!r && (found.physical || found.address != share->address ||
			  found.size != share->size))
		r = MEMORY_E_TWICE;
	found.physical = physical;
	if (!r)
		r = share_pages(memory, part, &found);
	/* Who else writes them is not known. */
	if (!r)
		window_set_written(&part->window, share->address, share->size);
	pthread_mutex_unlock(&memory->lock);
	return r;
}
