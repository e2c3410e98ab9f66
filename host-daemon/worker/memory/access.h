/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Access: the memory that a guest may pass to calls
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct call;

/*
 * Whether [address, address + size) is within one live allocation of device
 * memory or within the channel's arena.
 *
 * Return: CUDA_SUCCESS or CUDA_ERROR_INVALID_VALUE.
 */
CUresult access_check(struct call *call, uint64_t address, uint64_t size);

/* One side of a copy: rows that begin `pitch` bytes apart, `rows` of them a layer. */
struct access_side {
	uint64_t address;
	uint64_t pitch;
	uint64_t rows;
};

/* Checks that a box on that side is within one allocation of the guest. Return: as
 * access_check(). */
CUresult access_check_side(struct call *call, const struct access_side *side,
	uint64_t width, uint64_t height, uint64_t depth);
