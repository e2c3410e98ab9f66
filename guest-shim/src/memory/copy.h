/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies between the memories of program, arena and device
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* The kind of memory at an address. */
enum shim_place {
	SHIM_PLACE_PAGEABLE, /* ordinary memory of the program */
	SHIM_PLACE_ARENA,    /* pinned memory, which the device reaches too */
	SHIM_PLACE_DEVICE,
};

enum shim_place shim_copy_place(uint64_t address);

/* Pointers and device addresses are one number: the arena has both. */
static inline uint64_t shim_address(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static inline void *shim_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/*
 * Copies `size` bytes in the order of a stream.
 *
 * @waits:	returns only when both sides may be used again, as the synchronous calls
 *		promise; else only pageable memory is done with
 */
CUresult shim_copy(
	uint64_t to, uint64_t from, uint64_t size, CUstream stream, bool waits);

/*
 * After a synchronous copy: writes out what kernels printed before it, for which the
 * driver has to be asked if a completion word ended the wait. Copies within the device
 * are waited for if the program set SYNC_MEMOPS on the memory.
 */
CUresult shim_copy_settle(uint64_t to, uint64_t from, CUstream stream);

/* Before a stream is destroyed: has the device say when it is done with what small copies
 * have staged for it. */
void shim_copy_end_stream(CUstream stream);

/* One side of a box: rows that begin `pitch` bytes apart, `rows` of them a layer. */
struct shim_side {
	uint64_t address; /* of the first byte */
	uint64_t pitch;
	uint64_t rows;
};

/* `depth` layers of `height` rows of `width` bytes. */
struct shim_box {
	struct shim_side to;
	struct shim_side from;
	uint64_t width;
	uint64_t height;
	uint64_t depth;
	/* Of a copy between contexts: whose memory either side is; else 0. */
	uint64_t to_context;
	uint64_t from_context;
};

CUresult shim_copy_box(const struct shim_box *box, CUstream stream, bool waits);

/* Returns: whether such a box is within one allocation. @is_deniedp: see
 * shim_range_holds() */
bool shim_side_is_held(const struct shim_side *side, uint64_t width, uint64_t height,
	uint64_t depth, bool *is_deniedp);

/* Returns: the same, and no device is denied any of it, so that the host cannot refuse
 * it. */
bool shim_side_is_known(
	const struct shim_side *side, uint64_t width, uint64_t height, uint64_t depth);

/* Of a box in registered memory: the address becomes the one that the device has. */
void shim_side_reach(
	struct shim_side *side, uint64_t width, uint64_t height, uint64_t depth);
