/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handles
 *
 * A CUstream, CUmodule and so on of a guest program is a number, an index into the
 * worker's tables:
 *
 *	bits  0-19	index in the table of its kind
 *	bits 20-51	generation of that index, from 1: a handle is not used again
 *			within 2^32 creations
 *	bits 52-59	kind, from 1
 *
 * So no handle collides with NULL or with the special streams 1 and 2, and a handle that
 * is stale, foreign or of another kind is detected by comparison alone.
 */

#include <stdint.h>

#define VGPU_HANDLE_INDEX_BITS 20
#define VGPU_HANDLE_INDEX_MAX ((1u << VGPU_HANDLE_INDEX_BITS) - 1)

enum vgpu_handle_kind {
	VGPU_HANDLE_CONTEXT = 1,
	VGPU_HANDLE_MODULE,
	VGPU_HANDLE_FUNCTION,
	VGPU_HANDLE_LIBRARY,
	VGPU_HANDLE_KERNEL,
	VGPU_HANDLE_STREAM,
	VGPU_HANDLE_EVENT,
	VGPU_HANDLE_LINK,
	VGPU_HANDLE_POOL,
	VGPU_HANDLE_ARRAY,
	VGPU_HANDLE_MIPMAP,
	VGPU_HANDLE_TEXREF,
	VGPU_HANDLE_SURFREF,
	/* Of which guests hold the driver's own value, see driver-texture.xml. */
	VGPU_HANDLE_TEXTURE,
	VGPU_HANDLE_SURFACE,
	VGPU_HANDLE_GRAPH,
	VGPU_HANDLE_GRAPH_NODE,
	VGPU_HANDLE_GRAPH_EXEC,
	VGPU_HANDLE_ALLOCATION, /* of cuMemCreate */
	VGPU_HANDLE_USER_OBJECT,
	VGPU_HANDLE_GREEN,
	VGPU_HANDLE_CONDITION, /* of a graph; guests hold the driver's own value */
	_VGPU_HANDLE_N,
};

/* Contexts below this index are the primary contexts of the device of that number. */
#define VGPU_DEVICES_MAX 64u

static inline uint64_t vgpu_handle_make(uint8_t kind, uint32_t index, uint32_t generation)
{
	return (uint64_t)kind << 52 | (uint64_t)generation << VGPU_HANDLE_INDEX_BITS |
	       index;
}

static inline uint32_t vgpu_handle_index(uint64_t handle)
{
	return handle & VGPU_HANDLE_INDEX_MAX;
}

static inline uint32_t vgpu_handle_generation(uint64_t handle)
{
	return handle >> VGPU_HANDLE_INDEX_BITS;
}

/* Returns: the kind, or 0 where bits are set that no handle has. */
static inline uint8_t vgpu_handle_kind(uint64_t handle)
{
	return handle >> 60 ? 0 : (uint8_t)(handle >> 52);
}
