/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunk: 2 MiB of device memory that small allocations share
 */

#include "exec/engine.h"
#include "mem/chunk.h"

_Static_assert(CHUNK_PAGES *SOFTGPU_PAGE_SIZE == CHUNK_SIZE, "pages of a chunk");

static bool chunk_is_used(const struct chunk *chunk, uint32_t unit)
{
	return chunk->used[unit / 64] >> (unit % 64) & 1;
}

static void chunk_mark(struct chunk *chunk, uint32_t first, uint32_t n_units, bool used)
{
	for (uint32_t unit = first; unit < first + n_units; unit++) {
		uint64_t bit = UINT64_C(1) << (unit % 64);

		if (used)
			chunk->used[unit / 64] |= bit;
		else
			chunk->used[unit / 64] &= ~bit;
	}
}

void chunk_init(struct chunk *chunk, uint64_t address)
{
	*chunk = (struct chunk){ .address = address, .n_free = CHUNK_UNITS_MAX };
	chunk_mark(chunk, 0, 1, true);
	chunk_mark(chunk, CHUNK_UNITS - 1, 1, true);
}

bool chunk_take(struct chunk *chunk, uint32_t n_units, uint64_t *offp)
{
	uint32_t run = 0;

	if (chunk->n_free < n_units)
		return false;
	while (chunk->hint < CHUNK_UNITS && chunk_is_used(chunk, chunk->hint))
		chunk->hint++;
	for (uint32_t unit = chunk->hint; unit < CHUNK_UNITS; unit++) {
		if (unit % 64 == 0 && chunk->used[unit / 64] == UINT64_MAX) {
			run = 0;
			unit += 63;
			continue;
		}
		run = chunk_is_used(chunk, unit) ? 0 : run + 1;
		if (run < n_units)
			continue;
		chunk_mark(chunk, unit + 1 - n_units, n_units, true);
		chunk->n_free -= n_units;
		*offp = (uint64_t)(unit + 1 - n_units) * CHUNK_UNIT;
		return true;
	}
	return false;
}

void chunk_give(struct chunk *chunk, uint64_t off, uint32_t n_units)
{
	uint32_t first = off / CHUNK_UNIT;

	chunk_mark(chunk, first, n_units, false);
	chunk->n_free += n_units;
	if (first < chunk->hint)
		chunk->hint = first;
}

/* The pages that are open for an allocation. */
static uint64_t chunk_first_page(uint64_t off)
{
	return (off - CHUNK_UNIT) >> SOFTGPU_PAGE_SHIFT;
}

static uint64_t chunk_last_page(uint64_t off, uint64_t size)
{
	return (off + (size + CHUNK_UNIT - 1) / CHUNK_UNIT * CHUNK_UNIT) >>
	       SOFTGPU_PAGE_SHIFT;
}

void chunk_enter(struct chunk *chunk, uint64_t off, uint64_t size)
{
	for (uint64_t page = chunk_first_page(off); page <= chunk_last_page(off, size);
		page++)
		chunk->page_users[page]++;
}

void chunk_leave(struct chunk *chunk, uint64_t off, uint64_t size)
{
	for (uint64_t page = chunk_first_page(off); page <= chunk_last_page(off, size);
		page++)
		chunk->page_users[page]--;
}
