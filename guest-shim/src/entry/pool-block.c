/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of pools
 *
 * A pool's lock is held while its blocks change hands, and never while the host is asked:
 * two threads that find a pool empty both add a segment.
 */

#include "vgpu/log.h"

#include "entry/graph-memory.h"
#include "entry/pool-block.h"
#include "entry/pool-segment.h"
#include "g-remote.h"
#include "memory/blocks.h"
#include "memory/range.h"
#include "process/context.h"
#include "process/stream.h"
#include "wire/channel.h"

static uint64_t n_frees; /* atomic: of blocks, in all pools */

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
	shim_pool_note_surplus(pool);
	return address;
}

/* Takes a block that is pending in a stream for which this one waits anyway, because of
 * the program's events. */
static uint64_t take_after(
	struct shim_pool *pool, struct shim_stream *stream, uint64_t size)
{
	struct shim_order order;
	uint64_t address;

	shim_stream_get_order(stream, &order);
	if (!order.n)
		return 0;
	shim_lock(&pool->lock);
	address = shim_blocks_take_after(pool->blocks, size, &order, stream->context);
	shim_pool_note_surplus(pool);
	shim_unlock(&pool->lock);
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
	shim_pool_note_surplus(pool);
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
	shim_pool_note_surplus(pool);
	shim_unlock(&pool->lock);
	if (address &&
		order_after(handle, (CUstream)(uintptr_t)point.handle) != CUDA_SUCCESS) {
		undo(pool, address, &point);
		address = 0;
	}
	return address;
}

/* Returns: a block of memory that is there already, or 0. */
static uint64_t find_block(struct shim_pool *pool, struct shim_stream *stream,
	CUstream handle, uint64_t size)
{
	uint64_t address = take(pool, stream, size);

	if (!address && pool->follows_events)
		address = take_after(pool, stream, size);
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
	uint32_t n = shim_pools_n();

	if (shim_channel_has_capture() || shim_cuCtxSynchronize() != CUDA_SUCCESS)
		return;
	for (uint32_t i = 0; i < n; i++)
		shim_pool_settle(shim_pool_at(i));
}

static bool has_same_memory(const struct shim_pool *pool, const struct shim_pool *other)
{
	return pool->location == other->location ||
	       (shim_location_is_host(pool->location) &&
		       shim_location_is_host(other->location));
}

/* Gives back what no pool of that memory uses. */
static void trim_all(const struct shim_pool *pool)
{
	uint32_t n = shim_pools_n();

	for (uint32_t i = 0; i < n; i++)
		if (has_same_memory(pool, shim_pool_at(i)))
			shim_pool_trim(shim_pool_at(i), 0);
}

/* Makes memory for a block, whatever it costs: the pool grows, waits for what is pending,
 * and grows from what all pools of that memory do not use. */
static CUresult make_block(struct shim_pool *pool, const struct shim_stream *stream,
	uint64_t size, uint64_t *addressp)
{
	CUresult result;

	result = shim_pool_grow(pool, size);
	if (result == CUDA_SUCCESS)
		*addressp = take(pool, stream, size);
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	wait_for_all();
	*addressp = take(pool, stream, size);
	if (*addressp)
		return CUDA_SUCCESS;
	trim_all(pool);
	result = shim_pool_grow(pool, size);
	if (result == CUDA_SUCCESS)
		*addressp = take(pool, stream, size);
	return result;
}

static CUresult find_capture(CUstream stream, bool *is_capturedp)
{
	CUstreamCaptureStatus status;
	CUresult result;

	*is_capturedp = false;
	if (!shim_channel_has_capture())
		return CUDA_SUCCESS;
	result = shim_cuStreamIsCapturing(stream, &status);
	if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	*is_capturedp = result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
	return result;
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

static CUresult get_block(struct shim_pool *pool, struct shim_stream *stream,
	CUstream handle, uint64_t size, CUdeviceptr *addressp)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t address;

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

CUresult shim_pool_alloc(
	struct shim_pool *pool, CUstream handle, uint64_t size, CUdeviceptr *addressp)
{
	struct shim_stream *stream;
	bool is_captured = false;
	CUresult result;

	result = shim_stream_find_checked(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = find_capture(handle, &is_captured);
	if (result != CUDA_SUCCESS)
		return result;
	if (is_captured && pool && shim_location_is_host(pool->location))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (is_captured)
		return shim_graph_memory_capture_alloc(handle,
			pool ? pool->location : stream->context->device, size, addressp);
	if (!pool)
		pool = shim_pool_current(stream->context->device);
	return pool ? get_block(pool, stream, handle, size, addressp)
		    : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_pool_take(struct shim_pool *pool, uint64_t size, CUdeviceptr *addressp)
{
	struct shim_stream *stream;
	CUresult result;

	result = shim_stream_find_checked(NULL, &stream);
	return result == CUDA_SUCCESS ? get_block(pool, stream, NULL, size, addressp)
				      : result;
}

/* Returns: the pool that a range is a segment of, or NULL. */
static struct shim_pool *pool_of(const struct shim_range *range)
{
	if (range->kind != SHIM_RANGE_MAPPED || !range->owner)
		return NULL;
	return shim_pool_at(vgpu_handle_index(range->owner));
}

struct shim_pool *shim_pool_of(CUdeviceptr address)
{
	struct shim_range range;

	return shim_range_find(address, &range) ? pool_of(&range) : NULL;
}

static bool give(struct shim_pool *pool, uint64_t address, struct shim_free_point *point)
{
	bool is_given;

	SHIM_LOCKED(&pool->lock);
	if (point)
		point->order = __atomic_fetch_add(&n_frees, 1, __ATOMIC_RELAXED);
	is_given = shim_blocks_give(pool->blocks, address, point);
	shim_pool_note_surplus(pool);
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
	pool = shim_pool_of(address);
	return pool && pool != likely && give(pool, address, point) ? pool : NULL;
}

static void trim_if_destroyed(struct shim_pool *pool)
{
	if (__builtin_expect(__atomic_load_n(&pool->is_destroyed, __ATOMIC_RELAXED), 0))
		shim_pool_trim(pool, 0);
}

/* Memory of cuMemAlloc, whose free waits anyway: here for the stream at least. */
static CUresult free_plain(CUdeviceptr address, CUstream handle)
{
	struct shim_range range;
	CUresult result;

	if (!shim_range_find(address, &range) || range.kind != SHIM_RANGE_DEVICE ||
		range.base != address)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_cuStreamSynchronize(handle);
	return result == CUDA_SUCCESS ? shim_cuMemFree_v2(address) : result;
}

CUresult shim_pool_free_async(CUdeviceptr address, CUstream handle)
{
	struct shim_free_point point;
	bool is_captured = false;
	struct shim_stream *stream;
	struct shim_pool *pool;
	CUresult result;

	result = shim_stream_find_checked(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = find_capture(handle, &is_captured);
	if (result == CUDA_SUCCESS && is_captured)
		return shim_graph_memory_capture_free(handle, address);
	/* As cuMemFree does with nothing; cuSPARSE expects it of this one too. */
	if (result == CUDA_SUCCESS && !address)
		return CUDA_SUCCESS;
	if (result == CUDA_SUCCESS &&
		shim_graph_memory_free(address, stream->context, &result))
		return result;
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
	pool = give_somewhere(
		shim_pool_current(stream->context->device), address, &point);
	if (!pool)
		return free_plain(address, handle);
	trim_if_destroyed(pool);
	return CUDA_SUCCESS;
}

bool shim_pool_free(CUdeviceptr address)
{
	struct shim_pool *pool = shim_pool_of(address);

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
	uint32_t n = shim_pools_n();

	if (shim_channel_has_capture())
		return;
	for (uint32_t i = 0; i < n; i++)
		release(shim_pool_at(i));
}

uint64_t shim_pools_n_frees(void)
{
	return __atomic_load_n(&n_frees, __ATOMIC_RELAXED);
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
	uint32_t n = shim_pools_n();

	__atomic_store_n(
		&context->n_frees_waited_for, shim_pools_n_frees(), __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < n; i++) {
		struct shim_pool *pool = shim_pool_at(i);

		SHIM_LOCKED(&pool->lock);
		shim_blocks_settle(pool->blocks, is_past, NULL);
		if (context->is_primary)
			shim_blocks_give_owned(pool->blocks, context);
		shim_pool_note_surplus(pool);
	}
}
