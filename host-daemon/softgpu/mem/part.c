/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part: the addresses of one device, or those shared by host and devices
 */

#include <errno.h>
#include <stdlib.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

#include "exec/engine.h"
#include "mem/chunk.h"
#include "mem/part.h"

uint64_t part_pages(uint64_t size)
{
	return (size + SOFTGPU_PAGE_SIZE - 1) >> SOFTGPU_PAGE_SHIFT;
}

/* Of a large allocation, and of the tolerated bytes after it. */
static uint64_t part_open_pages(uint64_t size)
{
	return part_pages(size + CHUNK_UNIT);
}

int part_init(
	struct part *part, uint64_t base, uint64_t size, uint64_t wanted, uint32_t n_maps)
{
	int r;

	if (!size)
		r = window_init_reserve(&part->window, wanted, n_maps);
	else
		r = window_init(
			&part->window, base, size < wanted ? size : wanted, n_maps);
	if (!r)
		r = spans_init(&part->spans, part->window.size >> SOFTGPU_PAGE_SHIFT);
	return r ? vgpu_error_trace(r) : 0;
}

void part_deinit(struct part *part)
{
	for (size_t i = 0; i < part->n_chunks; i++)
		free(part->chunks[i]);
	free(part->chunks);
	free(part->shares);
	spans_deinit(&part->spans);
	window_deinit(&part->window);
}

/* Commits pages that were taken, or gives them back. */
static int part_commit(
	struct part *part, uint64_t first, uint64_t n_pages, uint64_t *addressp)
{
	int r;

	r = window_commit(&part->window, (first + n_pages) << SOFTGPU_PAGE_SHIFT);
	if (r) {
		spans_give(&part->spans, first, n_pages);
		return vgpu_error_trace(r);
	}
	*addressp = part->window.base + (first << SOFTGPU_PAGE_SHIFT);
	return 0;
}

static int part_take_pages(struct part *part, uint64_t n_pages, uint64_t *addressp)
{
	uint64_t first;
	int r;

	r = spans_take(&part->spans, n_pages, &first);
	return r ? r : part_commit(part, first, n_pages, addressp);
}

static void part_give_pages(struct part *part, uint64_t address, uint64_t n_pages)
{
	spans_give(&part->spans, (address - part->window.base) >> SOFTGPU_PAGE_SHIFT,
		n_pages);
}

/*
 * Shares
 */

struct part_share *part_find_share(const struct part *part, uint64_t address)
{
	for (size_t i = 0; i < part->n_shares; i++)
		if (part->shares[i].address == address)
			return &part->shares[i];
	return NULL;
}

static const struct chunk *part_find_chunk(const struct part *part, uint64_t address)
{
	size_t i = 0;

	while (address - part->chunks[i]->address >= CHUNK_SIZE)
		i++;
	return part->chunks[i];
}

struct part_share part_pages_of(const struct part *part, uint64_t address, uint64_t size)
{
	if (size <= CHUNK_ALLOCATION_MAX)
		return (struct part_share){
			.address = part_find_chunk(part, address)->address,
			.size = CHUNK_SIZE,
		};
	return (struct part_share){
		.address = address,
		.size = part_pages(size) << SOFTGPU_PAGE_SHIFT,
	};
}

int part_share(struct part *part, const struct part_share *share, int fd)
{
	struct part_share *shares;
	int r;

	shares = reallocarray(part->shares, part->n_shares + 1, sizeof(*shares));
	if (!shares)
		return vgpu_error_origin(-ENOMEM);
	part->shares = shares;
	r = window_map(&part->window, share->address, share->size, fd, 0);
	if (r)
		return vgpu_error_trace(r);
	part->shares[part->n_shares++] = *share;
	return 0;
}

/* Pages that are given back are ordinary memory again. *physicalp: the reference of their
 * share, if they had one. Return: false if that cannot be: they must not be used again.
 */
static bool part_unshare(struct part *part, uint64_t address, struct physical **physicalp)
{
	struct part_share *share = part_find_share(part, address);

	if (!share)
		return true;
	if (window_unmap(&part->window, share->address, share->size)) {
		vgpu_log_error("%llu bytes of memory that was shared are lost",
			(unsigned long long)share->size);
		return false;
	}
	*physicalp = share->physical;
	*share = part->shares[--part->n_shares];
	return true;
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

static struct physical *part_give_small(
	struct part *part, uint64_t address, uint64_t size)
{
	struct physical *physical = NULL;
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
		return NULL;
	if (part_unshare(part, chunk->address, &physical))
		part_give_pages(part, chunk->address, CHUNK_PAGES + 1);
	free(chunk);
	part->chunks[i] = part->chunks[--part->n_chunks];
	return physical;
}

int part_take(struct part *part, uint64_t size, uint64_t *addressp)
{
	if (size <= CHUNK_ALLOCATION_MAX)
		return part_take_small(part, size, addressp);
	return part_take_pages(part, part_open_pages(size) + 1, addressp);
}

struct physical *part_give(struct part *part, uint64_t address, uint64_t size)
{
	uint64_t n_pages = part_open_pages(size);
	struct physical *physical = NULL;

	if (size <= CHUNK_ALLOCATION_MAX)
		return part_give_small(part, address, size);
	window_forbid(&part->window, address, n_pages << SOFTGPU_PAGE_SHIFT);
	window_drop(&part->window, address, n_pages << SOFTGPU_PAGE_SHIFT);
	if (part_unshare(part, address, &physical))
		part_give_pages(part, address, n_pages + 1);
	return physical;
}

int part_take_range(struct part *part, uint64_t size, uint64_t alignment, uint64_t hint,
	uint64_t *addressp)
{
	const struct window *window = &part->window;
	uint64_t n_pages = part_pages(size), first;
	int r = -EBUSY;

	if (window_has(window, hint) && !(hint % alignment)) {
		first = (hint - window->base) >> SOFTGPU_PAGE_SHIFT;
		r = spans_take_at(&part->spans, first, n_pages);
	}
	if (r == -EBUSY) {
		if (!spans_find(&part->spans, n_pages, alignment >> SOFTGPU_PAGE_SHIFT,
			    window->base >> SOFTGPU_PAGE_SHIFT, &first))
			return -ENOMEM;
		r = spans_take_at(&part->spans, first, n_pages);
	}
	return r ? vgpu_error_trace(r) : part_commit(part, first, n_pages, addressp);
}

void part_give_range(struct part *part, uint64_t address, uint64_t size)
{
	part_give_pages(part, address, part_pages(size));
}
