/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is copied from or to an array, as it travels in vgpuCopyArray
 *
 * Of a side that is an array its handle travels beside this, and x (in bytes), y and z
 * count; of one that is memory the address of its first byte, with rows `pitch` bytes
 * apart and `rows` of them a layer.
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
