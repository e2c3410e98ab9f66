/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools
 *
 * A pool's lock is held while its blocks change hands, and never while the host is asked:
 * two threads that find a pool empty both add a segment.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/log.h"

#include "entry/pool.h"
#include "g-remote.h"
#include "memory/blocks.h"
#include "memory/range.h"
#include "process/context.h"
#include "process/device.h"
#include "process/stream.h"
#include "process/thread.h"
#include "wire/channel.h"
#include "wire/lock.h"
#include "wire/table.h"

/* Blocks that are smaller share segments of this size, as on current drivers, where
 * CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT shows it. */
#define SEGMENT_SIZE (32ull << 20)

#define POOLS_MAX 1024u

/* Segments that are given back at once, without the lock. */
#define TRIM_MAX 16u

struct shim_pool {
	struct shim_lock lock;

	/* Constant in the pool's life. */
	uint64_t handle;
	CUdevice device;
	uint64_t max_size; /* 0: no limit */
	bool is_default;

	bool is_destroyed; /* atomic */

	/* Under the lock. */
	struct shim_blocks *blocks;
	bool is_in_surplus;
	uint64_t release_threshold;
	bool follows_events, is_opportunistic, adds_dependencies;
	CUmemAccess_flags access[VGPU_DEVICES_MAX];
};

uint32_t shim_pools_in_surplus;

static struct {
	struct shim_lock lock; /* guards what is not atomic */
	struct shim_table all;
	uint32_t n;				      /* atomic */
	struct shim_pool *defaults[VGPU_DEVICES_MAX]; /* atomic */
	struct shim_pool *current[VGPU_DEVICES_MAX];  /* atomic */
	uint64_t n_frees; /* atomic: of blocks, in all pools */
} pools;

static struct shim_pool *pool_at(uint32_t index)
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
	pool = pool_at(vgpu_handle_index(number));
	if (!pool || pool->handle != number ||
		__atomic_load_n(&pool->is_destroyed, __ATOMIC_RELAXED))
		return NULL;
	return pool;
}

/* Under the pool's lock, after a change. */
static void note_surplus(struct shim_pool *pool)
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
	struct shim_pool *pool, uint64_t handle, CUdevice device, uint64_t max_size)
{
	pool->handle = handle;
	pool->device = device;
	pool->max_size = max_size;
	pool->release_threshold = 0;
	pool->follows_events = true;
	pool->is_opportunistic = true;
	pool->adds_dependencies = true;
	memset(pool->access, 0, sizeof(pool->access));
	pool->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	shim_blocks_reset_reserved_high(pool->blocks);
	shim_blocks_reset_used_high(pool->blocks);
}

static struct shim_pool *make_locked(CUdevice device, uint64_t max_size)
{
	struct shim_pool *pool = calloc(1, sizeof(*pool));

	if (!pool || pools.n == POOLS_MAX)
		goto fail;
	pool->blocks = shim_blocks_new();
	if (!pool->blocks)
		goto fail;
	reset(pool, vgpu_handle_make(VGPU_HANDLE_POOL, pools.n, 1), device, max_size);
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
static struct shim_pool *reuse_locked(CUdevice device, uint64_t max_size)
{
	for (uint32_t i = 0; i < pools.n; i++) {
		struct shim_pool *pool = pool_at(i);
		uint32_t generation = vgpu_handle_generation(pool->handle);

		if (!pool->is_destroyed || shim_blocks_counts(pool->blocks)->reserved)
			continue;
		shim_lock(&pool->lock);
		reset(pool, vgpu_handle_make(VGPU_HANDLE_POOL, i, generation + 1), device,
			max_size);
		__atomic_store_n(&pool->is_destroyed, false, __ATOMIC_RELAXED);
		shim_unlock(&pool->lock);
		return pool;
	}
	return NULL;
}

CUresult shim_pool_new(CUdevice device, uint64_t max_size, CUmemoryPool *handlep)
{
	struct shim_pool *pool;

	shim_lock(&pools.lock);
	pool = reuse_locked(device, max_size);
	if (!pool)
		pool = make_locked(device, max_size);
	shim_unlock(&pools.lock);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handlep = public(pool);
	return CUDA_SUCCESS;
}

static struct shim_pool *get_default(CUdevice device)
{
	struct shim_pool *pool =
		__atomic_load_n(&pools.defaults[device], __ATOMIC_ACQUIRE);

	if (pool)
		return pool;
	shim_lock(&pools.lock);
	pool = pools.defaults[device];
	if (!pool)
		pool = make_locked(device, 0);
	if (pool) {
		pool->is_default = true;
		__atomic_store_n(&pools.defaults[device], pool, __ATOMIC_RELEASE);
	}
	shim_unlock(&pools.lock);
	return pool;
}

static struct shim_pool *get_current(CUdevice device)
{
	struct shim_pool *pool =
		__atomic_load_n(&pools.current[device], __ATOMIC_ACQUIRE);

	return pool ? pool : get_default(device);
}

CUresult shim_pool_get_default(CUdevice device, CUmemoryPool *handlep)
{
	const struct shim_pool *pool = get_default(device);

	*handlep = pool ? public(pool) : NULL;
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_pool_get_current(CUdevice device, CUmemoryPool *handlep)
{
	const struct shim_pool *pool = get_current(device);

	*handlep = pool ? public(pool) : NULL;
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_pool_set_current(CUdevice device, CUmemoryPool handle)
{
	struct shim_pool *pool = shim_pool_find(handle);

	if (!pool || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&pools.current[device], pool, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

CUresult shim_pool_destroy(CUmemoryPool handle)
{
	struct shim_pool *pool = shim_pool_find(handle);
	struct shim_pool *expected = pool;

	if (!pool || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	/* The device has its default pool again. */
	__atomic_compare_exchange_n(&pools.current[pool->device], &expected, NULL, false,
		__ATOMIC_RELEASE, __ATOMIC_RELAXED);
	shim_lock(&pool->lock);
	__atomic_store_n(&pool->is_destroyed, true, __ATOMIC_RELAXED);
	note_surplus(pool);
	shim_unlock(&pool->lock);
	shim_pool_trim(pool, 0);
	return CUDA_SUCCESS;
}

/*
 * Segments
 */

static CUmemAllocationProp prop_of(const struct shim_pool *pool)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, pool->device },
	};
}

static CUresult round_up(const struct shim_pool *pool, uint64_t *sizep)
{
	CUmemAllocationProp prop = prop_of(pool);
	size_t granularity;
	CUresult result;

	result = shim_cuMemGetAllocationGranularity(
		&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (result != CUDA_SUCCESS)
		return result;
	if (*sizep > UINT64_MAX - granularity)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*sizep = (*sizep + granularity - 1) / granularity * granularity;
	return CUDA_SUCCESS;
}

static void segment_free(uint64_t base, uint64_t size)
{
	shim_range_set_owner(base, 0);
	shim_cuMemUnmap(base, size);
	shim_cuMemAddressFree(base, size);
}

static CUresult open_to_devices(struct shim_pool *pool, uint64_t base, uint64_t size)
{
	CUmemAccessDesc rights[VGPU_DEVICES_MAX];
	size_t n = 0;

	shim_lock(&pool->lock);
	for (CUdevice i = 0; i < shim_device_n(); i++)
		if (pool->access[i])
			rights[n++] =
				(CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, i },
					pool->access[i] };
	shim_unlock(&pool->lock);
	return shim_cuMemSetAccess(base, size, rights, n);
}

static CUresult segment_new(struct shim_pool *pool, uint64_t size, uint64_t *basep)
{
	CUmemAllocationProp prop = prop_of(pool);
	CUmemGenericAllocationHandle memory;
	CUdeviceptr base;
	CUresult result;

	result = shim_cuMemAddressReserve(&base, size, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_cuMemCreate(&memory, size, &prop, 0);
	if (result != CUDA_SUCCESS)
		goto free_addresses;
	result = shim_cuMemMap(base, size, 0, memory, 0);
	/* Mapped memory stays as long as it is. */
	shim_cuMemRelease(memory);
	if (result != CUDA_SUCCESS)
		goto free_addresses;
	result = open_to_devices(pool, base, size);
	if (result != CUDA_SUCCESS || !shim_range_set_owner(base, pool->handle)) {
		segment_free(base, size);
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*basep = base;
	return CUDA_SUCCESS;

free_addresses:
	shim_cuMemAddressFree(base, size);
	return result;
}

static bool has_room(struct shim_pool *pool, uint64_t size)
{
	SHIM_LOCKED(&pool->lock);
	return !pool->max_size ||
	       (size <= pool->max_size && shim_blocks_counts(pool->blocks)->reserved <=
						  pool->max_size - size);
}

static CUresult add_segment(struct shim_pool *pool, uint64_t size)
{
	uint64_t base;
	CUresult result;
	bool is_added;

	if (!has_room(pool, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = segment_new(pool, size, &base);
	if (result != CUDA_SUCCESS)
		return result;
	shim_lock(&pool->lock);
	is_added = shim_blocks_add(pool->blocks, base, size);
	note_surplus(pool);
	shim_unlock(&pool->lock);
	if (!is_added)
		segment_free(base, size);
	return is_added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Adds a segment that a block fits in; if memory is short, one that it fills. */
static CUresult grow(struct shim_pool *pool, uint64_t size)
{
	CUresult result;

	result = round_up(pool, &size);
	if (result != CUDA_SUCCESS)
		return result;
	if (size < SEGMENT_SIZE) {
		result = add_segment(pool, SEGMENT_SIZE);
		if (result != CUDA_ERROR_OUT_OF_MEMORY)
			return result;
	}
	return add_segment(pool, size);
}

void shim_pool_trim(struct shim_pool *pool, uint64_t keep)
{
	uint64_t bases[TRIM_MAX], sizes[TRIM_MAX];
	uint32_t n;

	do {
		shim_lock(&pool->lock);
		for (n = 0; n < TRIM_MAX; n++)
			if (!shim_blocks_remove(pool->blocks, keep, &bases[n], &sizes[n]))
				break;
		note_surplus(pool);
		shim_unlock(&pool->lock);
		for (uint32_t i = 0; i < n; i++)
			segment_free(bases[i], sizes[i]);
	} while (n == TRIM_MAX);
}

/*
 * Blocks
 */

static bool is_past(const struct shim_free_point *point, void *data)
{
	const struct shim_context *context = point->context;

	/* Partner: the store in shim_pools_note_context_wait(). */
	if (point->order <
		__atomic_load_n(&context->n_frees_waited_for, __ATOMIC_ACQUIRE))
		return true;
	return shim_stream_progress((CUstream)(uintptr_t)point->handle, context,
		       point->stream, point->count) == SHIM_STREAM_PAST;
}

static bool may_wait(const struct shim_free_point *point, void *data)
{
	return point->context == data &&
	       shim_stream_progress((CUstream)(uintptr_t)point->handle, point->context,
		       point->stream, point->count) != SHIM_STREAM_ENDED;
}

void shim_pool_settle(struct shim_pool *pool)
{
	SHIM_LOCKED(&pool->lock);
	shim_blocks_settle(pool->blocks, is_past, NULL);
}

static uint64_t take(
	struct shim_pool *pool, const struct shim_stream *stream, uint64_t size)
{
	uint64_t address;

	SHIM_LOCKED(&pool->lock);
	address = shim_blocks_take(pool->blocks, size, stream->id, stream->context);
	note_surplus(pool);
	return address;
}

/* Lets a stream wait for another, or only puts a mark into one. */
static CUresult order_after(CUstream stream, CUstream other)
{
	CUresult result;
	CUevent event;

	result = shim_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_cuEventRecord(event, other);
	if (result == CUDA_SUCCESS && stream != other)
		result = shim_cuStreamWaitEvent(stream, event, 0);
	shim_cuEventDestroy_v2(event);
	return result;
}

static void undo(
	struct shim_pool *pool, uint64_t address, const struct shim_free_point *point)
{
	SHIM_LOCKED(&pool->lock);
	shim_blocks_give(pool->blocks, address, point);
	note_surplus(pool);
}

/* Takes a block that is pending in another stream, and lets this one wait for that. */
static uint64_t borrow(struct shim_pool *pool, const struct shim_stream *stream,
	CUstream handle, uint64_t size)
{
	struct shim_free_point point;
	uint64_t address;

	shim_lock(&pool->lock);
	address = shim_blocks_borrow(
		pool->blocks, size, stream->context, may_wait, stream->context, &point);
	note_surplus(pool);
	shim_unlock(&pool->lock);
	if (address &&
		order_after(handle, (CUstream)(uintptr_t)point.handle) != CUDA_SUCCESS) {
		undo(pool, address, &point);
		address = 0;
	}
	return address;
}

/* Returns: a block of memory that is there already, or 0. */
static uint64_t find_block(struct shim_pool *pool, const struct shim_stream *stream,
	CUstream handle, uint64_t size)
{
	uint64_t address = take(pool, stream, size);

	if (!address && pool->is_opportunistic) {
		shim_pool_settle(pool);
		address = take(pool, stream, size);
	}
	if (!address && pool->adds_dependencies)
		address = borrow(pool, stream, handle, size);
	return address;
}

/* Makes what is pending ready, in all pools. */
static void wait_for_all(void)
{
	uint32_t n = __atomic_load_n(&pools.n, __ATOMIC_ACQUIRE);

	if (shim_channel_has_capture() || shim_cuCtxSynchronize() != CUDA_SUCCESS)
		return;
	for (uint32_t i = 0; i < n; i++)
		shim_pool_settle(pool_at(i));
}

/* Gives back what no pool of the device uses. */
static void trim_device(CUdevice device)
{
	uint32_t n = __atomic_load_n(&pools.n, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (pool_at(i)->device == device)
			shim_pool_trim(pool_at(i), 0);
}

/* Makes memory for a block, whatever it costs: the pool grows, waits for what is pending,
 * and grows from what all pools of the device do not use. */
static CUresult make_block(struct shim_pool *pool, const struct shim_stream *stream,
	uint64_t size, uint64_t *addressp)
{
	CUresult result;

	result = grow(pool, size);
	if (result == CUDA_SUCCESS)
		*addressp = take(pool, stream, size);
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	wait_for_all();
	*addressp = take(pool, stream, size);
	if (*addressp)
		return CUDA_SUCCESS;
	trim_device(pool->device);
	result = grow(pool, size);
	if (result == CUDA_SUCCESS)
		*addressp = take(pool, stream, size);
	return result;
}

static CUresult check_capture(CUstream stream)
{
	CUstreamCaptureStatus status;
	CUresult result;

	if (!shim_channel_has_capture())
		return CUDA_SUCCESS;
	result = shim_cuStreamIsCapturing(stream, &status);
	if (result != CUDA_SUCCESS)
		return result;
	/* Nodes for memory are not remoted. */
	return status == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_SUCCESS
						       : CUDA_ERROR_NOT_SUPPORTED;
}

static bool is_full(struct shim_pool *pool)
{
	static uint8_t was_logged;
	bool is_full;

	shim_lock(&pool->lock);
	is_full = shim_blocks_counts(pool->blocks)->n_blocks == SHIM_BLOCKS_MAX;
	shim_unlock(&pool->lock);
	if (is_full && !__atomic_exchange_n(&was_logged, 1, __ATOMIC_RELAXED))
		vgpu_log_warning("a memory pool has reached its limit of %u blocks",
			SHIM_BLOCKS_MAX);
	return is_full;
}

CUresult shim_pool_alloc(
	struct shim_pool *pool, CUstream handle, uint64_t size, CUdeviceptr *addressp)
{
	struct shim_stream *stream;
	uint64_t address;
	CUresult result;

	result = shim_stream_find_checked(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = check_capture(handle);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pool)
		pool = get_current(stream->context->device);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	address = find_block(pool, stream, handle, size);
	/* Another thread may take what was made. */
	while (!address && result == CUDA_SUCCESS)
		result = is_full(pool) ? CUDA_ERROR_OUT_OF_MEMORY
				       : make_block(pool, stream, size, &address);
	if (result != CUDA_SUCCESS)
		return result;
	*addressp = address;
	return CUDA_SUCCESS;
}

/* Returns: the pool that a range is a segment of, or NULL. */
static struct shim_pool *pool_of(const struct shim_range *range)
{
	if (range->kind != SHIM_RANGE_MAPPED || !range->owner)
		return NULL;
	return pool_at(vgpu_handle_index(range->owner));
}

static struct shim_pool *find_pool(uint64_t address)
{
	struct shim_range range;

	return shim_range_find(address, &range) ? pool_of(&range) : NULL;
}

static bool give(struct shim_pool *pool, uint64_t address, struct shim_free_point *point)
{
	bool is_given;
	SHIM_LOCKED(&pool->lock);
	if (point)
		point->order = __atomic_fetch_add(&pools.n_frees, 1, __ATOMIC_RELAXED);
	is_given = shim_blocks_give(pool->blocks, address, point);
	note_surplus(pool);
	return is_given;
}

/* Frees a block of any pool, but looks first where most are. Return: its pool, or NULL.
 */
static struct shim_pool *give_somewhere(
	struct shim_pool *likely, uint64_t address, struct shim_free_point *point)
{
	struct shim_pool *pool;

	if (likely && give(likely, address, point))
		return likely;
	pool = find_pool(address);
	return pool && pool != likely && give(pool, address, point) ? pool : NULL;
}

static void trim_if_destroyed(struct shim_pool *pool)
{
	if (__builtin_expect(__atomic_load_n(&pool->is_destroyed, __ATOMIC_RELAXED), 0))
		shim_pool_trim(pool, 0);
}

CUresult shim_pool_free_async(CUdeviceptr address, CUstream handle)
{
	struct shim_free_point point;
	struct shim_stream *stream;
	struct shim_pool *pool;
	CUresult result;

	result = shim_stream_find_checked(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = check_capture(handle);
	/* The stream orders work of others, for which an operation has to be in it. */
	if (result == CUDA_SUCCESS && shim_stream_is_barrier(stream))
		result = order_after(handle, handle);
	if (result != CUDA_SUCCESS)
		return result;
	point = (struct shim_free_point){
		.stream = stream->id,
		.count = shim_stream_submitted(stream),
		.context = stream->context,
		.handle = (uint64_t)(uintptr_t)stream->handle,
	};
	pool = give_somewhere(get_current(stream->context->device), address, &point);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	trim_if_destroyed(pool);
	return CUDA_SUCCESS;
}

bool shim_pool_free(CUdeviceptr address)
{
	struct shim_pool *pool = find_pool(address);

	if (!pool || !give(pool, address, NULL))
		return false;
	trim_if_destroyed(pool);
	return true;
}

bool shim_pool_find_range(CUdeviceptr address, struct shim_range *range)
{
	struct shim_pool *pool;
	bool is_found;

	if (!shim_range_find(address, range))
		return false;
	pool = pool_of(range);
	if (!pool)
		return true;
	shim_lock(&pool->lock);
	is_found = shim_blocks_find(pool->blocks, address, &range->base, &range->size);
	shim_unlock(&pool->lock);
	return is_found;
}

/*
 * Waits
 */

static void release(struct shim_pool *pool)
{
	uint64_t keep;

	shim_lock(&pool->lock);
	keep = pool->is_destroyed ? 0 : pool->release_threshold;
	if (pool->is_in_surplus)
		shim_blocks_settle(pool->blocks, is_past, NULL);
	else
		keep = UINT64_MAX;
	shim_unlock(&pool->lock);
	shim_pool_trim(pool, keep);
}

void shim_pools_release(void)
{
	uint32_t n = __atomic_load_n(&pools.n, __ATOMIC_ACQUIRE);

	if (shim_channel_has_capture())
		return;
	for (uint32_t i = 0; i < n; i++)
		release(pool_at(i));
}

uint64_t shim_pools_n_frees(void)
{
	return __atomic_load_n(&pools.n_frees, __ATOMIC_RELAXED);
}

void shim_pools_note_context_wait(
	CUresult result, struct shim_context *context, uint64_t n_frees)
{
	if (result != CUDA_SUCCESS || !context)
		return;
	/* If two threads have waited, either number is true. Partner: is_past(). */
	__atomic_store_n(&context->n_frees_waited_for, n_frees, __ATOMIC_RELEASE);
	shim_pools_note_wait(result);
}

void shim_pools_drop_context(struct shim_context *context)
{
	uint32_t n = __atomic_load_n(&pools.n, __ATOMIC_ACQUIRE);

	__atomic_store_n(
		&context->n_frees_waited_for, shim_pools_n_frees(), __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < n; i++) {
		struct shim_pool *pool = pool_at(i);

		SHIM_LOCKED(&pool->lock);
		shim_blocks_settle(pool->blocks, is_past, NULL);
		if (context->is_primary)
			shim_blocks_give_owned(pool->blocks, context);
		note_surplus(pool);
	}
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
		note_surplus(pool);
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

/* A list of segments that is made under the lock. */
struct list {
	uint64_t (*all)[2];
	size_t n, max;
	bool is_short;
};

static void note_segment(uint64_t base, uint64_t size, void *data)
{
	struct list *list = data;

	if (list->n == list->max) {
		size_t max = list->max ? 2 * list->max : TRIM_MAX;
		void *all = realloc(list->all, max * sizeof(*list->all));

		list->is_short |= !all;
		if (!all)
			return;
		list->all = all;
		list->max = max;
	}
	list->all[list->n][0] = base;
	list->all[list->n++][1] = size;
}

CUresult shim_pool_set_access(
	struct shim_pool *pool, CUdevice device, CUmemAccess_flags flags)
{
	const CUmemAccessDesc right = { { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
	CUresult result = CUDA_SUCCESS;
	struct list list = {};
	int can_access = 0;

	/* A device keeps the access to its own pools. */
	if (device == pool->device)
		return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	result = shim_cuDeviceCanAccessPeer(&can_access, device, pool->device);
	if (result != CUDA_SUCCESS || !can_access)
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_DEVICE;
	shim_lock(&pool->lock);
	pool->access[device] = flags;
	shim_blocks_each_segment(pool->blocks, note_segment, &list);
	shim_unlock(&pool->lock);
	if (list.is_short)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; result == CUDA_SUCCESS && i < list.n; i++)
		result = shim_cuMemSetAccess(list.all[i][0], list.all[i][1], &right, 1);
	free(list.all);
	return result;
}

CUmemAccess_flags shim_pool_get_access(struct shim_pool *pool, CUdevice device)
{
	SHIM_LOCKED(&pool->lock);
	return pool->access[device];
}
