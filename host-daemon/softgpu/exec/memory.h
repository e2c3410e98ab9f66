/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a generic address to a place in this process
 */

#include "exec/warp.h"

/*
 * Returns: where @size bytes at the offset @off of the range of shared addresses lie, in
 * the block's own memory or in another block's of its cluster; or NULL. That memory stays
 * until the last block of the cluster has ended.
 */
static inline void *shared_resolve(const struct block *block, uint64_t off, uint32_t size)
{
	const struct cluster *cluster = block->cluster;
	uint64_t number;

	if (off + size <= block->shared_size)
		return block->shared + off;
	number = off / SOFTGPU_CLUSTER_STRIDE;
	off %= SOFTGPU_CLUSTER_STRIDE;
	/* All blocks of a launch have the same. */
	if (!number || number > cluster->n_blocks || off + size > block->shared_size)
		return NULL;
	return cluster->blocks[number - 1]->shared + off;
}

/* Returns: the same place as that of a generic address, in the block with a rank. */
static inline uint64_t shared_of_rank(uint64_t address, uint32_t rank)
{
	uint64_t off = (address - SOFTGPU_GENERIC_SHARED) % SOFTGPU_CLUSTER_STRIDE;

	return SOFTGPU_GENERIC_SHARED + (rank + 1) * (uint64_t)SOFTGPU_CLUSTER_STRIDE +
	       off;
}

static inline bool is_shared(uint64_t address)
{
	return address - SOFTGPU_GENERIC_SHARED < SOFTGPU_GENERIC_RANGE;
}

/*
 * Returns: where the lane's @size bytes at @address lie, or NULL with *codep set.
 * @access: SOFTGPU_READ, SOFTGPU_WRITE or both
 */
static inline void *warp_resolve(struct warp *w, uint32_t lane, uint64_t address,
	uint32_t size, uint32_t align_mask, unsigned int access, int *codep)
{
	const struct block *block = w->block;
	uint64_t off;

	if (address & align_mask) {
		*codep = SOFTGPU_ERROR_MISALIGNED_ADDRESS;
		return NULL;
	}
	*codep = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	if (address >= SOFTGPU_GLOBAL_LOWEST)
		return softgpu_space_check(&block->space, address, size, access)
			       ? (void *)(uintptr_t)address
			       : NULL;
	off = address - SOFTGPU_GENERIC_SHARED;
	if (off < SOFTGPU_GENERIC_RANGE)
		return shared_resolve(block, off, size);
	off = address - SOFTGPU_GENERIC_LOCAL;
	if (off < SOFTGPU_GENERIC_RANGE)
		return off + size <= block->local_size
			       ? block->local +
					 (size_t)(w->first_thread + lane) *
						 block->local_size +
					 off
			       : NULL;
	off = address - SOFTGPU_GENERIC_PARAM;
	if (off < SOFTGPU_GENERIC_RANGE && !(access & SOFTGPU_WRITE))
		return off + size <= block->params_size
			       ? (void *)(uintptr_t)(block->params + off)
			       : NULL;
	return NULL;
}

/*
 * Returns: the generic address of an access to any space. Addresses of the small spaces
 * have 32 bits: the sum with the offset wraps, whatever the width of the register.
 */
static inline uint64_t generic_address(const struct insn *ip, uint64_t address)
{
	static const uint32_t bases[] = {
		[ACCESS_GENERIC] = 0,
		[ACCESS_SHARED] = SOFTGPU_GENERIC_SHARED,
		[ACCESS_LOCAL] = SOFTGPU_GENERIC_LOCAL,
		[ACCESS_PARAM] = SOFTGPU_GENERIC_PARAM,
	};
	uint32_t space = ip->reserved >> ACCESS_SPACE_SHIFT & 3;
	uint64_t at = address + (uint64_t)(int64_t)ip->off;

	return space ? bases[space] + (uint64_t)(uint32_t)at : at;
}

/*
 * Returns: whether the address is in a space without atomic operations, local memory or
 * parameters. PTX leaves such a use of a generic address undefined; processors raise the
 * fault for a wrong address space, and so does softgpu.
 */
static inline bool is_never_atomic(uint64_t address)
{
	return address - SOFTGPU_GENERIC_LOCAL < SOFTGPU_GENERIC_RANGE ||
	       address - SOFTGPU_GENERIC_PARAM < SOFTGPU_GENERIC_RANGE;
}

static inline const char *fault_sentence(int code)
{
	switch (code) {
	case SOFTGPU_ERROR_MISALIGNED_ADDRESS:
		return "misaligned address";
	case SOFTGPU_ERROR_INVALID_ADDRESS_SPACE:
		return "operation not possible in this address space";
	default:
		return "illegal address";
	}
}
