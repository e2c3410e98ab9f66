/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadows: pinned memory that graphs copy in the place of the program's
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "vgpu/checked.h"

#include "entry/graph-shadow.h"
#include "memory/arena.h"
#include "memory/copy.h"
#include "wire/lock.h"

/* Bytes that are compared at once. */
#define CHUNK 64u

static uint8_t *row_of(const struct shim_rows *rows, uint64_t y, uint64_t z)
{
	return rows->memory + z * rows->layer + y * rows->pitch;
}

uint64_t shim_rows_span(const struct shim_rows *rows)
{
	return (uint64_t)(row_of(rows, rows->height - 1, rows->depth - 1) -
			  rows->memory) +
	       rows->width;
}

/* The number of this process: one of its own for each fill. */
static struct {
	uint64_t random[SHIM_SHADOW_MARK / sizeof(uint64_t) - 1];
	uint64_t n_fills; /* atomic */
	int is_known;	  /* 1; -1: there is none; the lock */
} mark;

/* Return: whether there is a number. */
static bool has_mark(void)
{
	static struct shim_lock lock;

	SHIM_LOCKED(&lock);
	if (!mark.is_known)
		mark.is_known = getrandom(mark.random, sizeof(mark.random), 0) ==
						(ssize_t)sizeof(mark.random)
					? 1
					: -1;
	return mark.is_known > 0;
}

static void write_mark(struct shim_shadow *shadow)
{
	uint64_t n = __atomic_add_fetch(&mark.n_fills, 1, __ATOMIC_RELAXED);

	memcpy(shadow->before, mark.random, sizeof(mark.random));
	memcpy(shadow->before + sizeof(mark.random), &n, sizeof(n));
	memcpy(shadow->pinned, shadow->before, SHIM_SHADOW_MARK);
}

CUresult shim_shadow_init(struct shim_shadow *shadow, const struct shim_rows *rows,
	enum shim_shadow_use use)
{
	uint64_t size;

	*shadow = (struct shim_shadow){ .rows = *rows };
	if (!vgpu_mul_u64(rows->width, rows->height, &size) ||
		!vgpu_mul_u64(size, rows->depth, &size))
		return CUDA_ERROR_INVALID_VALUE;
	shadow->is_marked =
		use == SHIM_SHADOW_WHOLE && size > SHIM_SHADOW_MARK && has_mark();
	shadow->pinned = shim_arena_alloc(size);
	if (shadow->pinned && use != SHIM_SHADOW_READ)
		shadow->before = malloc(shadow->is_marked ? SHIM_SHADOW_MARK : size);
	if (shadow->pinned && (shadow->before || use == SHIM_SHADOW_READ))
		return CUDA_SUCCESS;
	shim_shadow_deinit(shadow);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void shim_shadow_deinit(struct shim_shadow *shadow)
{
	if (shadow->pinned)
		shim_arena_free(shadow->pinned);
	free(shadow->before);
	*shadow = (struct shim_shadow){};
}

/* The program may have unmapped memory of a node that is disabled. */
static bool is_mapped(const uint8_t *memory, uint64_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)memory & ~(page - 1);

	/* Which does nothing else to memory on Linux. */
	return !msync((void *)first, (uintptr_t)memory + size - first, MS_ASYNC) ||
	       errno != ENOMEM;
}

void shim_shadow_fill(struct shim_shadow *shadow)
{
	const struct shim_rows *rows = &shadow->rows;
	uint8_t *to = shadow->pinned;
	bool is_whole;

	if (shadow->is_marked) {
		write_mark(shadow);
		return;
	}
	is_whole = is_mapped(rows->memory, shim_rows_span(rows));
	for (uint64_t z = 0; z < rows->depth; z++)
		for (uint64_t y = 0; y < rows->height; y++, to += rows->width)
			if (is_whole || is_mapped(row_of(rows, y, z), rows->width))
				memcpy(to, row_of(rows, y, z), rows->width);
	if (shadow->before)
		memcpy(shadow->before, shadow->pinned, (size_t)(to - shadow->pinned));
}

static void write_changed(
	uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += CHUNK) {
		uint64_t n = size - at < CHUNK ? size - at : CHUNK;

		if (!memcmp(now + at, before + at, n))
			continue;
		for (uint64_t i = at; i < at + n; i++)
			if (now[i] != before[i])
				to[i] = now[i];
	}
}

void shim_shadow_drain(struct shim_shadow *shadow)
{
	const struct shim_rows *rows = &shadow->rows;
	uint64_t at = 0;

	if (!shadow->before ||
		(shadow->is_marked &&
			!memcmp(shadow->pinned, shadow->before, SHIM_SHADOW_MARK)))
		return;
	for (uint64_t z = 0; z < rows->depth; z++)
		for (uint64_t y = 0; y < rows->height; y++, at += rows->width)
			if (shadow->is_marked)
				memcpy(row_of(rows, y, z), shadow->pinned + at,
					rows->width);
			else
				write_changed(row_of(rows, y, z), shadow->pinned + at,
					shadow->before + at, rows->width);
}

/*
 * Sides of copies
 */

#define SIDE(_copy, _prefix)                                                             \
	{                                                                                \
		.type = (_copy)->_prefix##MemoryType,                                    \
		.address = (_copy)->_prefix##MemoryType == CU_MEMORYTYPE_HOST            \
				   ? shim_address((_copy)->_prefix##Host)                \
				   : (_copy)->_prefix##Device,                           \
		.x = (_copy)->_prefix##XInBytes, .y = (_copy)->_prefix##Y,               \
		.z = (_copy)->_prefix##Z, .pitch = (_copy)->_prefix##Pitch,              \
		.rows = (_copy)->_prefix##Height,                                        \
	}

struct shim_graph_side shim_graph_side_to(const CUDA_MEMCPY3D *copy)
{
	return (struct shim_graph_side)SIDE(copy, dst);
}

struct shim_graph_side shim_graph_side_from(const CUDA_MEMCPY3D *copy)
{
	return (struct shim_graph_side)SIDE(copy, src);
}

bool shim_graph_side_may_be_host(const struct shim_graph_side *side)
{
	return side->type == CU_MEMORYTYPE_HOST || side->type == CU_MEMORYTYPE_UNIFIED;
}

bool shim_graph_side_is_pageable(const struct shim_graph_side *side)
{
	return shim_graph_side_may_be_host(side) &&
	       shim_copy_place(side->address) == SHIM_PLACE_PAGEABLE;
}

CUresult shim_graph_side_locate(const struct shim_graph_side *side,
	const CUDA_MEMCPY3D *copy, struct shim_rows *rows)
{
	uint64_t n_rows = side->rows ? side->rows : copy->Height, offset, row, layers,
		 end;

	*rows = (struct shim_rows){
		.width = copy->WidthInBytes,
		.height = copy->Height,
		.depth = copy->Depth,
		.pitch = side->pitch ? side->pitch : copy->WidthInBytes,
	};
	if (!rows->width || !rows->height || !rows->depth || rows->width > rows->pitch ||
		rows->height > n_rows ||
		!vgpu_mul_u64(rows->pitch, n_rows, &rows->layer) ||
		!vgpu_mul_u64(side->z, rows->layer, &offset) ||
		!vgpu_mul_u64(side->y, rows->pitch, &row) ||
		!vgpu_add_u64(offset, row, &offset) ||
		!vgpu_add_u64(offset, side->x, &offset) ||
		!vgpu_add_u64(side->address, offset, &offset) ||
		!vgpu_mul_u64(rows->depth, rows->layer, &layers) ||
		!vgpu_add_u64(offset, layers, &end))
		return CUDA_ERROR_INVALID_VALUE;
	rows->memory = shim_pointer(offset);
	return CUDA_SUCCESS;
}

#define REPLACE(_copy, _prefix, _memory, _pitch, _rows)                                  \
	do {                                                                             \
		(_copy)->_prefix##MemoryType = CU_MEMORYTYPE_HOST;                       \
		(_copy)->_prefix##Host = (_memory);                                      \
		(_copy)->_prefix##Device = 0;                                            \
		(_copy)->_prefix##XInBytes = 0;                                          \
		(_copy)->_prefix##Y = 0;                                                 \
		(_copy)->_prefix##Z = 0;                                                 \
		(_copy)->_prefix##Pitch = (_pitch);                                      \
		(_copy)->_prefix##Height = (_rows);                                      \
	} while (0)

void shim_graph_side_replace_to(
	CUDA_MEMCPY3D *copy, void *memory, uint64_t pitch, uint64_t rows)
{
	REPLACE(copy, dst, memory, pitch, rows);
}

void shim_graph_side_replace_from(
	CUDA_MEMCPY3D *copy, void *memory, uint64_t pitch, uint64_t rows)
{
	REPLACE(copy, src, memory, pitch, rows);
}
