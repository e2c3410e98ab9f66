/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: hazards in shared memory, and its bytes that nothing has written
 *
 * Clocks go on from block to block, so that all that earlier blocks have left in the
 * bytes happened before; they are cleared when the clock comes near its end.
 */

#include <stdlib.h>
#include <string.h>

#include "exec/watch.h"

#define CLOCK_LIMIT (1u << 31)

_Static_assert(WARPS_MAX == 32 && LANES == 32, "five bits each in struct watch_access");

/* Up to which number accesses of all warps happen before, together with another. */
static void join(uint32_t to[WARPS_MAX], const uint32_t from[WARPS_MAX])
{
	for (unsigned int i = 0; i < WARPS_MAX; i++)
		to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* What the warp does from now on is not known to the others. */
static void advance(struct watch *watch, uint32_t index)
{
	uint32_t *clock = &watch->seen[index][index];

	if (++*clock > watch->clock_max)
		watch->clock_max = *clock;
}

static int allocate(struct watch *watch, unsigned int kinds, uint32_t size)
{
	if (kinds & SOFTGPU_CHECK_RACES) {
		watch->bytes = calloc(size, sizeof(*watch->bytes));
		if (!watch->bytes)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	if (kinds & SOFTGPU_CHECK_UNWRITTEN) {
		watch->unwritten = calloc(size / 8 + 1, 1);
		if (!watch->unwritten)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	watch->n_bytes = size;
	return SOFTGPU_SUCCESS;
}

static bool is_enough(const struct watch *watch, unsigned int kinds, uint32_t size)
{
	return watch && watch->n_bytes >= size &&
	       !watch->bytes == !(kinds & SOFTGPU_CHECK_RACES) &&
	       !watch->unwritten == !(kinds & SOFTGPU_CHECK_UNWRITTEN);
}

int softgpu_watch_prepare(
	struct watch **watchp, const struct softgpu_launch *launch, uint32_t size)
{
	unsigned int kinds = launch->checks->kinds;
	struct watch *watch;

	/* Room for 1 byte at least, since an empty one might be NULL. */
	if (!is_enough(*watchp, kinds, size + 1)) {
		watch = calloc(1, sizeof(*watch));
		if (!watch)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
		if (allocate(watch, kinds, size + 1)) {
			softgpu_watch_free(watch);
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
		}
		softgpu_watch_free(*watchp);
		*watchp = watch;
	}
	(*watchp)->checks = launch->checks;
	(*watchp)->size = size;
	return SOFTGPU_SUCCESS;
}

struct watch *softgpu_watch_free(struct watch *watch)
{
	if (!watch)
		return NULL;
	free(watch->bytes);
	free(watch->unwritten);
	free(watch);
	return NULL;
}

size_t softgpu_watch_size(const struct watch *watch)
{
	size_t each = 0;

	if (!watch)
		return 0;
	if (watch->bytes)
		each += sizeof(*watch->bytes);
	if (watch->unwritten)
		each += 1;
	return sizeof(*watch) + each * watch->n_bytes;
}

void softgpu_watch_begin(struct watch *watch)
{
	uint32_t start = watch->clock_max;

	if (start >= CLOCK_LIMIT) {
		if (watch->bytes)
			memset(watch->bytes, 0, watch->n_bytes * sizeof(*watch->bytes));
		start = 0;
	}
	for (unsigned int i = 0; i < WARPS_MAX; i++) {
		for (unsigned int k = 0; k < WARPS_MAX; k++)
			watch->seen[i][k] = start;
		watch->seen[i][i] = start + 1;
	}
	watch->clock_max = start + 1;
	memset(watch->waiting, 0, sizeof(watch->waiting));
	memset(watch->opened, 0, sizeof(watch->opened));
	memset(watch->places, 0, sizeof(watch->places));
	if (watch->unwritten)
		softgpu_bits_set(watch->unwritten, 0, watch->size, true);
}

/*
 * Synchronisation
 */

void softgpu_watch_arrive(struct warp *w, unsigned int id)
{
	struct watch *watch = w->block->watch;

	join(watch->waiting[id], watch->seen[w->index]);
	advance(watch, w->index);
}

static bool is_waiting(const struct warp *w, unsigned int id)
{
	for (uint32_t i = 0; i < w->n_groups; i++)
		if (w->groups[i].state == GROUP_BARRIER && w->groups[i].barrier == id)
			return true;
	return false;
}

void softgpu_watch_open(struct block *block, unsigned int id)
{
	struct watch *watch = block->watch;

	/* A barrier of the whole block counts threads that have exited as arrived. */
	if (!block->barriers[id].expected)
		for (uint32_t i = 0; i < block->n_warps; i++)
			if (block->warps[i].dead == UINT32_MAX)
				join(watch->waiting[id], watch->seen[i]);
	for (uint32_t i = 0; i < block->n_warps; i++)
		if (is_waiting(&block->warps[i], id))
			join(watch->seen[i], watch->waiting[id]);
	memcpy(watch->opened[id], watch->waiting[id], sizeof(watch->opened[id]));
	memset(watch->waiting[id], 0, sizeof(watch->waiting[id]));
}

void softgpu_watch_pass(struct warp *w, unsigned int id)
{
	struct watch *watch = w->block->watch;

	if (!w->block->barriers[id].in_use)
		join(watch->seen[w->index], watch->opened[id]);
}

void softgpu_watch_order(struct warp *w, uint64_t address, enum watch_kind kind)
{
	struct watch *watch = w->block->watch;
	uint64_t hash = (address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	uint32_t *place = watch->places[hash % WATCH_PLACES];

	if (kind != WATCH_ORDERED_WRITE)
		join(watch->seen[w->index], place);
	if (kind == WATCH_ORDERED_READ)
		return;
	join(place, watch->seen[w->index]);
	advance(watch, w->index);
}

/*
 * Accesses
 */

void softgpu_watch_wrote(const struct block *block, uint64_t address, uint64_t size)
{
	uint64_t off = address - SOFTGPU_GENERIC_SHARED;
	const struct watch *watch = block->watch;

	if (!watch || !watch->unwritten)
		return;
	if (address >= SOFTGPU_GLOBAL_LOWEST)
		softgpu_space_wrote(&block->space, address, size);
	if (off >= SOFTGPU_GENERIC_RANGE)
		return;
	off %= SOFTGPU_CLUSTER_STRIDE;
	if (off < watch->size)
		softgpu_bits_set(watch->unwritten, off,
			size < watch->size - off ? size : watch->size - off, false);
}

static bool is_before(const struct watch *watch, const struct warp *w,
	const struct watch_access *access)
{
	uint32_t other = WATCH_WARP(access->who);

	return other == w->index || watch->seen[w->index][other] >= access->clock;
}

/* Instead of one that happened before, or of an empty one, or of any. */
static void add_read(struct watch_byte *byte, const struct watch *watch,
	const struct warp *w, struct watch_access access)
{
	unsigned int at = access.clock % WATCH_READS;

	for (unsigned int i = 0; i < WATCH_READS; i++)
		if (is_before(watch, w, &byte->reads[i]))
			at = i;
	byte->reads[at] = access;
}

/* Returns: the hazard with an earlier access, which is in *otherp, or NULL. */
static const char *find_hazard(const struct watch_byte *byte, const struct watch *watch,
	const struct warp *w, bool writes, bool is_ordered, bool is_same,
	struct watch_access *otherp)
{
	*otherp = byte->write;
	if (!is_before(watch, w, otherp) &&
		!(is_ordered && WATCH_IS_ORDERED(otherp->who)) && !is_same)
		return writes ? "write after write" : "read after write";
	for (unsigned int i = 0; writes && i < WATCH_READS; i++) {
		*otherp = byte->reads[i];
		if (!is_before(watch, w, otherp) &&
			!(is_ordered && WATCH_IS_ORDERED(otherp->who)))
			return "write after read";
	}
	return NULL;
}

const char *softgpu_watch_access(struct warp *w, const struct insn *ip, uint32_t lane,
	const struct watch_what *what, struct watch_access *otherp)
{
	struct watch *watch = w->block->watch;
	bool writes = what->kind == WATCH_WRITE || what->kind == WATCH_ATOMIC ||
		      what->kind == WATCH_ORDERED_WRITE;
	bool is_ordered = what->kind >= WATCH_ATOMIC;
	struct watch_access access = {
		.clock = watch->seen[w->index][w->index],
		.who = WATCH_CODE((uint32_t)(ip - w->block->kernel->code)) |
		       w->index << WATCH_CODE_BITS | lane << (WATCH_CODE_BITS + 5) |
		       (uint32_t)is_ordered << 31,
	};
	const char *hazard = NULL;

	for (uint32_t i = 0; i < what->size; i++) {
		struct watch_byte *byte = &watch->bytes[what->first + i];
		bool is_same = what->value &&
			       w->block->shared[what->first + i] == what->value[i];

		if (!hazard)
			hazard = find_hazard(
				byte, watch, w, writes, is_ordered, is_same, otherp);
		if (!writes) {
			add_read(byte, watch, w, access);
			continue;
		}
		*byte = (struct watch_byte){ .write = access };
	}
	return hazard;
}
