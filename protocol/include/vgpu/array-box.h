/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One side of vgpuCopyArray, and the box to copy
 *
 * For an array, its handle is a field of the message, and x (in bytes), y and z are used;
 * for memory, the address of its first byte, rows that are `pitch` bytes apart, and
 * `rows` of them in a layer.
 */

#include <stdint.h>

struct vgpu_array_side {
	uint64_t address;
	uint64_t pitch;
	uint64_t rows;
	uint64_t x;
	uint64_t y;
	uint64_t z;
};

struct vgpu_array_box {
	struct vgpu_array_side to;
	struct vgpu_array_side from;
	uint64_t width; /* in bytes */
	uint64_t height;
	uint64_t depth;
};

_Static_assert(sizeof(struct vgpu_array_box) == 120, "driver-array.xml says so");
