/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The near path of an access: one check for the addresses of all lanes
 *
 * A planted bug: an access to shared memory has to begin within it, but may end outside.
 * Included instead of host-daemon/softgpu/exec/near.h in the target that must find it.
 */

#include "exec/memory.h"

/* Pages between the ends of a near access, each of which is checked. */
#define NEAR_PAGES 64

/* The near way, for global addresses. */
SCALAR bool near_global(const struct warp *w, const uint64_t *address, int64_t off,
	uint32_t mask, uint32_t size, unsigned int access)
{
	uint64_t fill = address[__builtin_ctz(mask)], low = fill, high = fill, bits = 0;
	const struct softgpu_window *window;

	EACH_LANE
	{
		uint64_t at = mask & lane_bit_wide[i] ? address[i] : fill;

		low = at < low ? at : low;
		high = at > high ? at : high;
		bits |= at;
	}
	/* Alignment of low + off: the low bits of all and of the offset are 0. */
	if (((bits | (uint64_t)off) & (size - 1)) ||
		high - low >= NEAR_PAGES * SOFTGPU_PAGE_SIZE)
		return false;
	low += (uint64_t)off;
	high += (uint64_t)off;
	window = softgpu_space_find(&w->block->space, low, high - low + size);
	if (!window)
		return false;
	for (uint64_t at = low & ~(SOFTGPU_PAGE_SIZE - 1); at < high + size;
		at += SOFTGPU_PAGE_SIZE)
		if (!softgpu_window_allows(window, at, access))
			return false;
	return true;
}

SCALAR bool near_shared(const struct warp *w, const uint32_t *address, uint32_t off,
	uint32_t mask, uint32_t size)
{
	uint32_t fill = address[__builtin_ctz(mask)] + off, high = fill, bits = 0;

	EACH_LANE
	{
		uint32_t at = mask & lane_bit[i] ? address[i] + off : fill;

		high = at > high ? at : high;
		bits |= at;
	}
	return !(bits & (size - 1)) && w->block->shared_size >= size &&
	       high <= w->block->shared_size;
}
