/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Blocks of pools: allocated and freed in the order of streams (memory/blocks.h)
 */

#include <stdbool.h>
#include <stdint.h>

#include "entry/pool.h"

struct shim_context;
struct shim_range;

/* @pool: NULL for the current one of the stream's device */
CUresult shim_pool_alloc(
	struct shim_pool *pool, CUstream stream, uint64_t size, CUdeviceptr *addressp);

/* Frees memory of a pool; that of cuMemAlloc too, as NVIDIA's cuSPARSE expects. */
CUresult shim_pool_free_async(CUdeviceptr address, CUstream stream);

/* Takes a block for no stream in particular: in a pool without streams all free blocks
 * are ready. */
CUresult shim_pool_take(struct shim_pool *pool, uint64_t size, CUdeviceptr *addressp);

/* Frees a block whose work is complete. Return: false where no block of a pool begins. */
bool shim_pool_free(CUdeviceptr address);

/* Returns: the pool that has a segment at an address, or NULL. */
struct shim_pool *shim_pool_of(CUdeviceptr address);

/* Finds the allocation that contains an address: what shim_range_find() finds, but a
 * block in use instead of a segment. */
bool shim_pool_find_range(CUdeviceptr address, struct shim_range *range);

/* Makes blocks ready whose work is known to be complete. */
void shim_pool_settle(struct shim_pool *pool);

/*
 * The program has waited for work: pools give back what they have beyond their thresholds
 * (CUDA Driver API, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD).
 */
void shim_pools_release(void);

static inline void shim_pools_note_wait(CUresult result)
{
	if (__builtin_expect(
		    __atomic_load_n(&shim_pools_in_surplus, __ATOMIC_RELAXED), 0) &&
		result == CUDA_SUCCESS)
		shim_pools_release();
}

/* Returns: how many blocks were freed so far. */
uint64_t shim_pools_n_frees(void);

/* The program has waited for all work of a context, after so many frees. */
void shim_pools_note_context_wait(
	CUresult result, struct shim_context *context, uint64_t n_frees);

/* All work of a context has ended; what a primary context allocated is free. */
void shim_pools_drop_context(struct shim_context *context);
