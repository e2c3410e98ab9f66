/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The near way for instructions of any space, whose addresses have 64 bits
 */

#include "exec/near.h"

/* Returns: bytes at each address, including all elements of the vector. */
SCALAR uint32_t vector_size(const struct insn *ip, uint32_t element)
{
	uint32_t size = (ip->reserved & ACCESS_ALIGN) + 1u;

	return size < element ? element : size;
}

/* Returns: whether all of the vectors at those addresses lie in global memory. */
SCALAR bool near_generic(const struct warp *w, const struct insn *ip,
	const uint64_t *address, uint32_t mask, uint32_t element, unsigned int access)
{
	return !(ip->reserved >> ACCESS_SPACE_SHIFT) &&
	       near_global(w, address, ip->off, mask, vector_size(ip, element), access);
}

/* The same of the first @have bytes of a small space that the instruction names. */
SCALAR bool near_small(const struct insn *ip, const uint64_t *address, uint32_t mask,
	uint32_t element, enum access_space space, uint32_t have)
{
	uint32_t size = vector_size(ip, element), off = (uint32_t)ip->off;
	uint32_t bits = 0, high = 0;

	if (ip->reserved >> ACCESS_SPACE_SHIFT != space)
		return false;
	EACH_LANE
	{
		uint32_t at = (uint32_t)address[i] + off;

		at = mask & lane_bit[i] ? at : 0;
		high = at > high ? at : high;
		bits |= at;
	}
	return !(bits & (size - 1)) && have >= size && high <= have - size;
}

SCALAR bool near_local(const struct warp *w, const struct insn *ip,
	const uint64_t *address, uint32_t mask, uint32_t element)
{
	return near_small(ip, address, mask, element, ACCESS_LOCAL, w->block->local_size);
}

SCALAR uint8_t *global_place(const struct insn *ip, uint64_t address)
{
	return (uint8_t *)(uintptr_t)(address + (uint64_t)(int64_t)ip->off);
}

SCALAR uint8_t *shared_place(
	const struct warp *w, const struct insn *ip, uint64_t address)
{
	return w->block->shared + (uint32_t)((uint32_t)address + (uint32_t)ip->off);
}

SCALAR uint8_t *local_place(
	const struct warp *w, const struct insn *ip, uint64_t address, uint32_t lane)
{
	return w->block->local + (size_t)(w->first_thread + lane) * w->block->local_size +
	       (uint32_t)((uint32_t)address + (uint32_t)ip->off);
}
