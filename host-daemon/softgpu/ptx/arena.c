/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena and growing arrays
 *
 * Chunks double from CHUNK_MIN to CHUNK_MAX, so that a small kernel costs little and a
 * large one few calls; a bigger request gets a separate chunk.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"

#include "ptx/arena.h"

#define CHUNK_MIN 1024u
#define CHUNK_MAX (256u << 10)
#define ALIGNMENT 16u

struct chunk {
	struct chunk *next;
	size_t size;
	size_t used;
	_Alignas(ALIGNMENT) unsigned char bytes[];
};

struct ptx_arena {
	struct chunk *chunks; /* newest first */
	size_t next_size;
};

struct ptx_arena *ptx_arena_new(void)
{
	struct ptx_arena *arena = calloc(1, sizeof(*arena));

	if (arena)
		arena->next_size = CHUNK_MIN;
	return arena;
}

struct ptx_arena *ptx_arena_free(struct ptx_arena *arena)
{
	struct chunk *chunk, *next;

	if (!arena)
		return NULL;
	for (chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(arena);
	return NULL;
}

static struct chunk *chunk_new(struct ptx_arena *arena, size_t size)
{
	struct chunk *chunk;

	if (size < arena->next_size)
		size = arena->next_size;
	if (arena->next_size < CHUNK_MAX)
		arena->next_size *= 2;
	chunk = calloc(1, sizeof(*chunk) + size);
	if (!chunk)
		return NULL;
	chunk->size = size;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

void *ptx_arena_alloc(struct ptx_arena *arena, size_t size)
{
	struct chunk *chunk = arena->chunks;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!chunk || chunk->size - chunk->used < size)
		chunk = chunk_new(arena, size);
	if (!chunk)
		return NULL;
	p = chunk->bytes + chunk->used;
	chunk->used += size;
	return p;
}

char *ptx_arena_string(struct ptx_arena *arena, const char *text, size_t size)
{
	char *copy = ptx_arena_alloc(arena, size + 1);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

void ptx_array_deinit(struct ptx_array *array)
{
	free(array->items);
	*array = (struct ptx_array){};
}

void *ptx_array_push(struct ptx_array *array, uint32_t n, size_t item_size)
{
	uint32_t wanted, capacity = array->capacity ? array->capacity : 16;
	void *items;

	if (__builtin_add_overflow(array->n, n, &wanted) || wanted > UINT32_MAX / 2)
		return NULL;
	while (capacity < wanted)
		capacity *= 2;
	if (capacity != array->capacity) {
		items = reallocarray(array->items, capacity, item_size);
		if (!items)
			return NULL;
		array->items = items;
		array->capacity = capacity;
	}
	items = (char *)array->items + (size_t)array->n * item_size;
	memset(items, 0, (size_t)n * item_size);
	array->n = wanted;
	return items;
}

int ptx_array_keep(const struct ptx_array *array, size_t item_size,
	struct ptx_arena *arena, void **itemsp, uint32_t *np)
{
	void *items = NULL;

	if (array->n) {
		items = ptx_arena_alloc(arena, (size_t)array->n * item_size);
		if (!items)
			return vgpu_error_origin(-ENOMEM);
		memcpy(items, array->items, (size_t)array->n * item_size);
	}
	*itemsp = items;
	*np = array->n;
	return 0;
}
