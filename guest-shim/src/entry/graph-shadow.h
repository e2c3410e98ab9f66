/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shadows: pinned memory that graphs copy in the place of the program's
 *
 * A shadow is filled from the memory before the device uses it, and drained into the
 * memory afterwards: only bytes that the device has changed, so a copy that was not done,
 * because its node is disabled or its body was not chosen, changes nothing. If one copy
 * writes all of a shadow it is enough to know whether it was done: the shadow begins with
 * a number that no program knows until then.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* Rows of memory, and how far they are apart. */
struct shim_rows {
	uint8_t *memory; /* the first row */
	uint64_t width, height, depth;
	uint64_t pitch;
	uint64_t layer; /* bytes from layer to layer */
};

struct shim_shadow {
	struct shim_rows rows; /* of the program */
	uint8_t *pinned;       /* its rows without gaps; NULL: there is no shadow */
	uint8_t *before;       /* what it was filled with; NULL: it is only read */
	bool is_marked;	       /* with a number at its beginning, which `before` has */
};

enum shim_shadow_use {
	SHIM_SHADOW_READ,
	SHIM_SHADOW_WRITTEN, /* in parts, and read */
	SHIM_SHADOW_WHOLE,   /* written by one copy, and not read */
};

/* Bytes of the number, and how small a shadow is that has none. */
#define SHIM_SHADOW_MARK 32u

/* Return: 0, or why there is none. */
CUresult shim_shadow_init(struct shim_shadow *shadow, const struct shim_rows *rows,
	enum shim_shadow_use use);
void shim_shadow_deinit(struct shim_shadow *shadow);

void shim_shadow_fill(struct shim_shadow *shadow);
void shim_shadow_drain(struct shim_shadow *shadow);

/*
 * Sides of copies
 */

/* One side as the structure of the API describes it. */
struct shim_graph_side {
	CUmemorytype type;
	uint64_t address;
	uint64_t x, y, z, pitch, rows;
};

struct shim_graph_side shim_graph_side_to(const CUDA_MEMCPY3D *copy);
struct shim_graph_side shim_graph_side_from(const CUDA_MEMCPY3D *copy);

bool shim_graph_side_is_pageable(const struct shim_graph_side *side);

/* Whether memory of the program is on that side, now or after a change of the node. */
bool shim_graph_side_may_be_host(const struct shim_graph_side *side);

/* Locates what is copied. Return: INVALID_VALUE if a row does not fit its pitch, nothing
 * is copied, or sizes overflow. */
CUresult shim_graph_side_locate(const struct shim_graph_side *side,
	const CUDA_MEMCPY3D *copy, struct shim_rows *rows);

/* Bytes from the first one to behind the last one. */
uint64_t shim_rows_span(const struct shim_rows *rows);

/* Puts memory of the host in the place of a side: the first row, and how far rows and
 * layers are apart, in bytes and rows. */
void shim_graph_side_replace_to(
	CUDA_MEMCPY3D *copy, void *memory, uint64_t pitch, uint64_t rows);
void shim_graph_side_replace_from(
	CUDA_MEMCPY3D *copy, void *memory, uint64_t pitch, uint64_t rows);
