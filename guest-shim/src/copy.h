/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies between the memories of program, arena and device
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* Where an address lies. */
enum shim_place {
	SHIM_PLACE_PAGEABLE, /* ordinary memory of the program */
	SHIM_PLACE_ARENA,    /* pinned memory, which the device reaches too */
	SHIM_PLACE_DEVICE,
};

enum shim_place shim_place(uint64_t address);

/*
 * Copies `size` bytes in the order of a stream.
 *
 * @waits:	returns only when both sides may be used again, as the synchronous calls
 *		promise; else only pageable memory is done with
 */
CUresult shim_copy(
	uint64_t to, uint64_t from, uint64_t size, CUstream stream, bool waits);

/* One rectangle: rows of `width` bytes. */
struct shim_rectangle {
	uint64_t to;
	uint64_t to_pitch;
	uint64_t from;
	uint64_t from_pitch;
	uint64_t width;
	uint64_t height;
};

CUresult shim_copy_rectangle(
	const struct shim_rectangle *rectangle, CUstream stream, bool waits);
