/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launch dimensions as they travel: one fixed-layout field instead of seven, because
 * the cost of a message follows the number of its fields.
 */

#include <assert.h>
#include <stdint.h>

struct vgpu_launch_dims {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
	uint32_t flags; /* VGPU_LAUNCH_* */
};

enum {
	VGPU_LAUNCH_COOPERATIVE = 1u << 0,
	_VGPU_LAUNCH_FLAGS = VGPU_LAUNCH_COOPERATIVE,
};

static_assert(sizeof(struct vgpu_launch_dims) == 32, "fixed size");

/* Largest parameter block of a kernel (CUDA C Programming Guide, "__global__ function
 * parameters": 32 764 bytes from compute capability 7.0). */
#define VGPU_LAUNCH_PARAMS_MAX 32764u
