/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools
 */

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "entry/pool.h"
#include "memory/blocks.h"
#include "process/device.h"
#include "wire/table.h"

#define POOLS_MAX 1024u

uint32_t shim_pools_in_surplus;

static struct {
	struct shim_lock lock; /* guards what is not atomic */
	struct shim_table all;
	uint32_t n;				      /* atomic */
	struct shim_pool *defaults[SHIM_LOCATIONS_N]; /* atomic */
	struct shim_pool *current[SHIM_LOCATIONS_N];  /* atomic */
} pools;

struct shim_pool *shim_pool_at(uint32_t index)
{
	return shim_table_get(&pools.all, index);
}

static CUmemoryPool public(const struct shim_pool *pool)
{
	return (CUmemoryPool)(uintptr_t)pool->handle;
}

struct shim_pool *shim_pool_find(CUmemoryPool handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	struct shim_pool *pool;

	if (vgpu_handle_kind(number) != VGPU_HANDLE_POOL)
		return NULL;
	pool = shim_pool_at(vgpu_handle_index(number));
	if (!pool || pool->handle != number ||
		__atomic_load_n(&pool->is_destroyed, __ATOMIC_RELAXED))
		return NULL;
	return pool;
}

uint32_t shim_pools_n(void)
{
	return __atomic_load_n(&pools.n, __ATOMIC_ACQUIRE);
}

void shim_pool_note_surplus(struct shim_pool *pool)
{
	const struct shim_blocks_counts *counts = shim_blocks_counts(pool->blocks);
	uint64_t threshold = pool->is_destroyed ? 0 : pool->release_threshold;
	bool is_in_surplus =
		counts->reserved > threshold && counts->reserved > counts->used;

	if (__builtin_expect(is_in_surplus == pool->is_in_surplus, 1))
		return;
	pool->is_in_surplus = is_in_surplus;
	if (is_in_surplus)
		__atomic_add_fetch(&shim_pools_in_surplus, 1, __ATOMIC_RELAXED);
	else
		__atomic_sub_fetch(&shim_pools_in_surplus, 1, __ATOMIC_RELAXED);
}

/*
 * Pools
 */

/* What the manual says a pool begins with. */
static void reset(
	struct shim_pool *pool, uint64_t handle, int location, uint64_t max_size)
{
	pool->handle = handle;
	pool->location = location;
	pool->max_size = max_size;
	pool->release_threshold = 0;
	pool->follows_events = true;
	pool->is_opportunistic = true;
	pool->adds_dependencies = true;
	memset(pool->access, 0, sizeof(pool->access));
	if (!shim_location_is_host(location))
		pool->access[location] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	pool->is_exportable = pool->is_import = false;
	shim_blocks_reset_reserved_high(pool->blocks);
	shim_blocks_reset_used_high(pool->blocks);
}

static struct shim_pool *make_locked(int location, uint64_t max_size)
{
	struct shim_pool *pool = calloc(1, sizeof(*pool));

	if (!pool || pools.n == POOLS_MAX)
		goto fail;
	pool->blocks = shim_blocks_new();
	if (!pool->blocks)
		goto fail;
	reset(pool, vgpu_handle_make(VGPU_HANDLE_POOL, pools.n, 1), location, max_size);
	if (!shim_table_set(&pools.all, pools.n, pool))
		goto fail;
	__atomic_store_n(&pools.n, pools.n + 1, __ATOMIC_RELEASE);
	return pool;

fail:
	if (pool)
		shim_blocks_free(pool->blocks);
	free(pool);
	return NULL;
}

/* A structure of a destroyed pool without memory is used again. */
static struct shim_pool *reuse_locked(int location, uint64_t max_size)
{
	for (uint32_t i = 0; i < pools.n; i++) {
		struct shim_pool *pool = shim_pool_at(i);
		uint32_t generation = vgpu_handle_generation(pool->handle);

		if (!pool->is_destroyed || shim_blocks_counts(pool->blocks)->reserved)
			continue;
		shim_lock(&pool->lock);
		reset(pool, vgpu_handle_make(VGPU_HANDLE_POOL, i, generation + 1),
			location, max_size);
		__atomic_store_n(&pool->is_destroyed, false, __ATOMIC_RELAXED);
		shim_unlock(&pool->lock);
		return pool;
	}
	return NULL;
}

static struct shim_pool *new_pool(int location, uint64_t max_size)
{
	struct shim_pool *pool;

	SHIM_LOCKED(&pools.lock);
	pool = reuse_locked(location, max_size);
	return pool ? pool : make_locked(location, max_size);
}

CUresult shim_pool_new(
	int location, uint64_t max_size, bool is_exportable, CUmemoryPool *handlep)
{
	uint8_t id[SHIM_TOKEN_SIZE];
	struct shim_pool *pool;

	if (is_exportable && getrandom(id, sizeof(id), 0) != sizeof(id))
		return CUDA_ERROR_OPERATING_SYSTEM;
	pool = new_pool(location, max_size);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->is_exportable = is_exportable;
	if (is_exportable)
		memcpy(pool->id, id, sizeof(id));
	*handlep = public(pool);
	return CUDA_SUCCESS;
}

CUresult shim_pool_new_import(
	int location, const uint8_t id[SHIM_TOKEN_SIZE], CUmemoryPool *handlep)
{
	struct shim_pool *pool = new_pool(location, 0);

	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->is_import = true;
	memcpy(pool->id, id, sizeof(pool->id));
	*handlep = public(pool);
	return CUDA_SUCCESS;
}

static struct shim_pool *get_default(int location)
{
	struct shim_pool *pool =
		__atomic_load_n(&pools.defaults[location], __ATOMIC_ACQUIRE);

	if (pool)
		return pool;
	shim_lock(&pools.lock);
	pool = pools.defaults[location];
	if (!pool)
		pool = make_locked(location, 0);
	if (pool) {
		pool->is_default = true;
		__atomic_store_n(&pools.defaults[location], pool, __ATOMIC_RELEASE);
	}
	shim_unlock(&pools.lock);
	return pool;
}

struct shim_pool *shim_pool_current(int location)
{
	struct shim_pool *pool =
		__atomic_load_n(&pools.current[location], __ATOMIC_ACQUIRE);

	return pool ? pool : get_default(location);
}

CUresult shim_pool_get_default(int location, CUmemoryPool *handlep)
{
	const struct shim_pool *pool = get_default(location);

	*handlep = pool ? public(pool) : NULL;
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_pool_get_current(int location, CUmemoryPool *handlep)
{
	const struct shim_pool *pool = shim_pool_current(location);

	*handlep = pool ? public(pool) : NULL;
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_pool_set_current(int location, CUmemoryPool handle)
{
	struct shim_pool *pool = shim_pool_find(handle);

	if (!pool || pool->location != location || pool->is_import)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&pools.current[location], pool, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

struct shim_pool *shim_pool_destroy(CUmemoryPool handle)
{
	struct shim_pool *pool = shim_pool_find(handle);
	struct shim_pool *expected = pool;

	if (!pool || pool->is_default)
		return NULL;
	/* The location has its default pool again. */
	__atomic_compare_exchange_n(&pools.current[pool->location], &expected, NULL,
		false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	shim_lock(&pool->lock);
	__atomic_store_n(&pool->is_destroyed, true, __ATOMIC_RELAXED);
	shim_pool_note_surplus(pool);
	shim_unlock(&pool->lock);
	return pool;
}

/*
 * Attributes
 */

CUresult shim_pool_set_attribute(
	struct shim_pool *pool, CUmemPool_attribute attribute, const void *value)
{
	uint64_t size;

	SHIM_LOCKED(&pool->lock);
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		pool->follows_events = *(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		pool->is_opportunistic = *(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->adds_dependencies = *(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		memcpy(&pool->release_threshold, value, sizeof(size));
		shim_pool_note_surplus(pool);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		/* High marks can only be reset. */
		memcpy(&size, value, sizeof(size));
		if (size)
			return CUDA_ERROR_INVALID_VALUE;
		if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			shim_blocks_reset_used_high(pool->blocks);
		else
			shim_blocks_reset_reserved_high(pool->blocks);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult shim_pool_get_attribute(
	struct shim_pool *pool, CUmemPool_attribute attribute, void *value)
{
	const struct shim_blocks_counts *counts = shim_blocks_counts(pool->blocks);

	SHIM_LOCKED(&pool->lock);
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		*(int *)value = pool->follows_events;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		*(int *)value = pool->is_opportunistic;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->adds_dependencies;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		memcpy(value, &pool->release_threshold, sizeof(uint64_t));
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		memcpy(value, &counts->reserved, sizeof(uint64_t));
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		memcpy(value, &counts->reserved_high, sizeof(uint64_t));
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		memcpy(value, &counts->used, sizeof(uint64_t));
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		memcpy(value, &counts->used_high, sizeof(uint64_t));
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
