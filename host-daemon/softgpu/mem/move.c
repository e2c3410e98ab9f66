/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move: memory of devices that somebody puts elsewhere for a while
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "vgpu/error.h"

#include "mem/chunk.h"
#include "mem/move.h"

static struct part *part_at(struct memory *memory, uint64_t address)
{
	uint32_t i = 0;

	while (!window_has(&memory->parts[i].window, address))
		i++;
	return &memory->parts[i];
}

/* Whether an allocation has its pages, or its chunk, to this process. */
static bool is_private(struct memory *memory, const struct range *range)
{
	const struct part *part = part_at(memory, range->address);
	const struct part_share pages = part_pages_of(part, range->address, range->size);

	return !part_find_share(part, pages.address);
}

/* Whether it is the first mapping of the whole of memory that has no other file. */
static bool is_whole(const struct memory *memory, const struct range *range)
{
	if (range->flags & (RANGE_ON_HOST | RANGE_SHARED) ||
		range->size != range->physical->size)
		return false;
	for (const struct range *other = memory->ranges.entries; other < range; other++)
		if (other->kind == RANGE_MAPPED && other->physical == range->physical &&
			other->size == range->size)
			return false;
	return true;
}

static bool moves(struct memory *memory, const struct range *range)
{
	switch (range->kind) {
	case RANGE_DEVICE:
	case RANGE_MODULE:
	case RANGE_DRIVER:
	case RANGE_ARRAY:
	case RANGE_HEAP:
		return is_private(memory, range);
	case RANGE_MAPPED:
		return is_whole(memory, range);
	default:
		return false;
	}
}

static int list(struct memory *memory, struct softgpu_piece *pieces, size_t *np)
{
	const struct ranges *ranges = &memory->ranges;

	for (size_t i = 0; i < ranges->n_entries; i++) {
		const struct range *range = &ranges->entries[i];

		/* It may share a chunk with what would be dropped. */
		if (range->kind == RANGE_HOST || range->kind == RANGE_MANAGED)
			return -ENOTSUP;
		if (moves(memory, range))
			pieces[(*np)++] = (struct softgpu_piece){
				.address = range->address,
				.size = range->size,
				.id = range->id,
			};
	}
	return 0;
}

int move_list(struct memory *memory, struct softgpu_piece **piecesp, size_t *n_piecesp)
{
	struct softgpu_piece *pieces;
	size_t n = 0;
	int r;

	/* Freed memory of checked programs is kept, in places of its own. */
	if (memory->is_checked)
		return -ENOTSUP;
	pthread_mutex_lock(&memory->lock);
	pieces = calloc(memory->ranges.n_entries + 1, sizeof(*pieces));
	r = pieces ? list(memory, pieces, &n) : vgpu_error_origin(-ENOMEM);
	pthread_mutex_unlock(&memory->lock);
	if (r) {
		free(pieces);
		return r;
	}
	*piecesp = pieces;
	*n_piecesp = n;
	return 0;
}

static void drop(struct memory *memory, const struct range *range)
{
	/* The file has no pages there then, wherever else it is mapped. */
	if (range->kind == RANGE_MAPPED)
		madvise((void *)(uintptr_t)range->address, range->size, MADV_REMOVE);
	else if (range->size > CHUNK_ALLOCATION_MAX)
		window_drop(&part_at(memory, range->address)->window, range->address,
			part_pages(range->size) << SOFTGPU_PAGE_SHIFT);
}

/* All that small allocations are in. */
static void drop_chunks(struct part *part)
{
	for (size_t i = 0; i < part->n_chunks; i++)
		if (!part_find_share(part, part->chunks[i]->address))
			window_drop(&part->window, part->chunks[i]->address, CHUNK_SIZE);
}

void move_drop(struct memory *memory, const struct softgpu_piece *pieces, size_t n_pieces)
{
	pthread_mutex_lock(&memory->lock);
	for (size_t i = 0; i < n_pieces; i++) {
		const struct range *range =
			ranges_find(&memory->ranges, pieces[i].address);

		if (range && range->id == pieces[i].id)
			drop(memory, range);
	}
	for (uint32_t i = 0; i < memory->n_parts; i++)
		drop_chunks(&memory->parts[i]);
	pthread_mutex_unlock(&memory->lock);
}

bool move_has(struct memory *memory, const struct softgpu_piece *piece)
{
	const struct range *range;
	bool found;

	pthread_mutex_lock(&memory->lock);
	range = ranges_find(&memory->ranges, piece->address);
	found = range && range->id == piece->id;
	pthread_mutex_unlock(&memory->lock);
	return found;
}
