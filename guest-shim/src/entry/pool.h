/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pools: memory of a device or the host that streams allocate and free in their order
 *
 * A pool maps memory in segments (pool-segment.h), as a program may by cuMemCreate and
 * cuMemMap, and hands it out in blocks (pool-block.h). Segments on the host are pieces of
 * the arena. Only a pool without a fitting block talks to the host.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"

#include "memory/token-file.h"
#include "process/location.h"
#include "wire/lock.h"

struct shim_blocks;

struct shim_pool {
	struct shim_lock lock;

	/* Constant in the pool's life. */
	uint64_t handle;
	int location;	   /* process/location.h */
	uint64_t max_size; /* 0: no limit */
	bool is_default;

	bool is_destroyed; /* atomic */

	/* Held while a segment gets its rights and becomes the pool's, while a segment is
	 * taken out, and while all segments get other rights; before the other lock. */
	struct shim_lock segments_lock;

	/* Under the lock. */
	struct shim_blocks *blocks;
	bool is_in_surplus;
	uint64_t release_threshold;
	bool follows_events, is_opportunistic, adds_dependencies;
	CUmemAccess_flags access[VGPU_DEVICES_MAX];
	struct shim_pool_segment *segments; /* of a pool that is shared */

	/* Constant in the pool's life: see pool-share.h. */
	bool is_exportable, is_import;
	uint8_t id[SHIM_TOKEN_SIZE];
};

/* How many pools have memory to give back; atomic. */
extern uint32_t shim_pools_in_surplus;

/* Makes a pool. @max_size: bytes, 0: no limit. @is_exportable: to other processes. */
CUresult shim_pool_new(
	int location, uint64_t max_size, bool is_exportable, CUmemoryPool *handlep);

/* Makes a pool for allocations of another process. */
CUresult shim_pool_new_import(
	int location, const uint8_t id[SHIM_TOKEN_SIZE], CUmemoryPool *handlep);

/* Its memory is to be given back when its last block is free. Return: the pool; NULL for
 * what is none, or a default one, which stays. */
struct shim_pool *shim_pool_destroy(CUmemoryPool handle);

/* Returns: NULL for what is no pool, or no longer. Pools are never freed. */
struct shim_pool *shim_pool_find(CUmemoryPool handle);

/* All pools by their indices, destroyed ones too. */
uint32_t shim_pools_n(void);
struct shim_pool *shim_pool_at(uint32_t index);

/* The pool that a location began with, and its current one, which streams of a device
 * allocate from. */
CUresult shim_pool_get_default(int location, CUmemoryPool *handlep);
CUresult shim_pool_get_current(int location, CUmemoryPool *handlep);
CUresult shim_pool_set_current(int location, CUmemoryPool handle);

/* The same, without its handle. Return: NULL without memory. */
struct shim_pool *shim_pool_current(int location);

/* Under the pool's lock, when its blocks or its threshold have changed. */
void shim_pool_note_surplus(struct shim_pool *pool);

CUresult shim_pool_set_attribute(
	struct shim_pool *pool, CUmemPool_attribute attribute, const void *value);
CUresult shim_pool_get_attribute(
	struct shim_pool *pool, CUmemPool_attribute attribute, void *value);
