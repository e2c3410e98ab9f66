/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arena and growing arrays
 *
 * A module's data is allocated from an arena and released with it at once. Arrays whose
 * final size is not known yet grow in a struct ptx_array and are copied into the arena at
 * the end.
 */

#include <stddef.h>
#include <stdint.h>

struct ptx_arena;

struct ptx_arena *ptx_arena_new(void);
struct ptx_arena *ptx_arena_free(struct ptx_arena *arena);

/* Returns: zeroed memory aligned for every type, or NULL. */
void *ptx_arena_alloc(struct ptx_arena *arena, size_t size);

/* Returns: a copy that ends with a NUL, or NULL. */
char *ptx_arena_string(struct ptx_arena *arena, const char *text, size_t size);

static inline void ptx_arena_freep(struct ptx_arena **arenap)
{
	ptx_arena_free(*arenap);
}

struct ptx_array {
	void *items;
	uint32_t n;
	uint32_t capacity;
};

void ptx_array_deinit(struct ptx_array *array);

/*
 * Appends n zeroed items of item_size bytes. The caller holds array->n + n below
 * a named limit first. Returns: the first of them, or NULL.
 */
void *ptx_array_push(struct ptx_array *array, uint32_t n, size_t item_size);

/* Copies the items into the arena. Returns: 0 or -ENOMEM; no items give NULL. */
int ptx_array_keep(const struct ptx_array *array, size_t item_size,
	struct ptx_arena *arena, void **itemsp, uint32_t *np);
