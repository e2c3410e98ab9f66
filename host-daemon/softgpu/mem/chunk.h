/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Chunk: 2 MiB of device memory that small allocations share
 *
 * In units of 512 bytes, the alignment that CUDA promises. A page of the chunk is open to
 * kernels while any allocation has a byte in it, or less than a unit away: devices
 * tolerate an access that misses its allocation by a little, and programs depend on that.
 * For the same reason the first unit of a chunk, and the last, are never allocated.
 */

#include <stdbool.h>
#include <stdint.h>

#define CHUNK_SIZE (2ull << 20)
#define CHUNK_UNIT 512u
#define CHUNK_UNITS (CHUNK_SIZE / CHUNK_UNIT)
#define CHUNK_UNITS_MAX (CHUNK_UNITS - 2) /* those that can be taken */
#define CHUNK_PAGES 32u
#define CHUNK_ALLOCATION_MAX (32u << 10)

struct chunk {
	uint64_t address;
	uint32_t n_free; /* units */
	uint32_t hint;	 /* no free unit below it */
	uint32_t page_users[CHUNK_PAGES];
	uint64_t used[CHUNK_UNITS / 64];
};

void chunk_init(struct chunk *chunk, uint64_t address);

/* Return: whether there were n free units in a row; *offp is in bytes. */
bool chunk_take(struct chunk *chunk, uint32_t n_units, uint64_t *offp);
void chunk_give(struct chunk *chunk, uint64_t off, uint32_t n_units);

/* Counts the users of the pages of an allocation and of one unit on either side; a page
 * is closed when it has none. */
void chunk_enter(struct chunk *chunk, uint64_t off, uint64_t size);
void chunk_leave(struct chunk *chunk, uint64_t off, uint64_t size);
