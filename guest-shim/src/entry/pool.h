/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pools: memory of a device that streams allocate and free in their order
 *
 * A pool maps memory in segments, as a program may by cuMemCreate and cuMemMap, and hands
 * it out in blocks (memory/blocks.h). Only a pool without a fitting block talks to the
 * host.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "process/shim.h"

struct shim_context;
struct shim_pool;
struct shim_range;

/* Whether any pool has memory to give back; atomic. */
extern uint32_t shim_pools_in_surplus;

/* Makes a pool. @max_size: bytes, 0: no limit. */
CUresult shim_pool_new(CUdevice device, uint64_t max_size, CUmemoryPool *handlep);

/* Its memory is given back when its last block is free. A default pool stays: return
 * CUDA_ERROR_INVALID_VALUE. */
CUresult shim_pool_destroy(CUmemoryPool handle);

/* Returns: NULL for what is no pool, or no longer. Pools are never freed. */
struct shim_pool *shim_pool_find(CUmemoryPool handle);

/* The pool that a device began with, and the one that its streams allocate from. */
CUresult shim_pool_get_default(CUdevice device, CUmemoryPool *handlep);
CUresult shim_pool_get_current(CUdevice device, CUmemoryPool *handlep);
CUresult shim_pool_set_current(CUdevice device, CUmemoryPool handle);

/* @pool: NULL for the current one of the stream's device */
CUresult shim_pool_alloc(
	struct shim_pool *pool, CUstream stream, uint64_t size, CUdeviceptr *addressp);
CUresult shim_pool_free_async(CUdeviceptr address, CUstream stream);

/* Frees a block whose work is complete. Return: false where no block of a pool begins. */
bool shim_pool_free(CUdeviceptr address);

/* Finds the allocation that contains an address: what shim_range_find() finds, but a
 * block in use instead of a segment. */
bool shim_pool_find_range(CUdeviceptr address, struct shim_range *range);

/* Makes blocks ready whose work is known to be complete. */
void shim_pool_settle(struct shim_pool *pool);

/* Gives segments back that are not used, as long as the pool keeps so many bytes. */
void shim_pool_trim(struct shim_pool *pool, uint64_t keep);

CUresult shim_pool_set_attribute(
	struct shim_pool *pool, CUmemPool_attribute attribute, const void *value);
CUresult shim_pool_get_attribute(
	struct shim_pool *pool, CUmemPool_attribute attribute, void *value);

CUresult shim_pool_set_access(
	struct shim_pool *pool, CUdevice device, CUmemAccess_flags flags);
CUmemAccess_flags shim_pool_get_access(struct shim_pool *pool, CUdevice device);

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
