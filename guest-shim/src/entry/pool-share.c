/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared pools
 */

#include <string.h>

#include "vgpu/checked.h"

#include "entry/pool-block.h"
#include "entry/pool-segment.h"
#include "entry/pool-share.h"
#include "entry/share.h"
#include "g-remote.h"
#include "memory/blocks.h"
#include "process/context.h"
#include "process/thread.h"

/* What is in CUmemPoolPtrExportData, which is opaque to programs. */
struct export_data {
	uint8_t pool[SHIM_TOKEN_SIZE];
	uint8_t segment[SHIM_TOKEN_SIZE];
	uint64_t segment_size;
	uint64_t offset; /* of the allocation in the segment */
	uint64_t size;
};

_Static_assert(
	sizeof(struct export_data) <= sizeof(CUmemPoolPtrExportData), "it fits in");

/* Return: whether an allocation of the pool begins there. */
static bool describe(
	struct shim_pool *pool, CUdeviceptr address, struct export_data *contents)
{
	const struct shim_pool_segment *segment;
	uint64_t base;

	SHIM_LOCKED(&pool->lock);
	segment = shim_pool_find_segment(pool, address);
	if (!segment ||
		!shim_blocks_find(pool->blocks, address, &base, &contents->size) ||
		base != address)
		return false;
	memcpy(contents->pool, pool->id, sizeof(contents->pool));
	memcpy(contents->segment, segment->token, sizeof(contents->segment));
	contents->segment_size = segment->size;
	contents->offset = address - segment->base;
	return true;
}

CUresult shim_pool_export(CUdeviceptr address, CUmemPoolPtrExportData *data)
{
	struct shim_pool *pool = shim_pool_of(address);
	struct export_data contents;

	if (!pool || !pool->is_exportable || !describe(pool, address, &contents))
		return CUDA_ERROR_INVALID_VALUE;
	memset(data, 0, sizeof(*data));
	memcpy(data, &contents, sizeof(contents));
	return CUDA_SUCCESS;
}

/* Marks the allocation as in use. Return: CUDA_ERROR_NOT_FOUND if its segment is not
 * mapped. */
static CUresult take(struct shim_pool *pool, const struct export_data *contents,
	const struct shim_context *context, CUdeviceptr *addressp)
{
	struct shim_pool_segment *segment;

	SHIM_LOCKED(&pool->lock);
	segment = shim_pool_find_token(pool, contents->segment);
	if (!segment)
		return CUDA_ERROR_NOT_FOUND;
	/* The data is another process's: it may be anything. */
	if (contents->offset % SHIM_BLOCK_UNIT ||
		!vgpu_range_within(contents->offset, contents->size, 0, segment->size) ||
		!shim_blocks_take_at(pool->blocks, segment->base + contents->offset,
			contents->size, context))
		return CUDA_ERROR_INVALID_VALUE;
	*addressp = segment->base + contents->offset;
	return CUDA_SUCCESS;
}

static CUresult map(struct shim_pool *pool, const struct export_data *contents)
{
	CUmemGenericAllocationHandle memory;
	CUresult result;

	result = shim_share_import(contents->segment, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_pool_map(pool, memory, contents->segment_size, contents->segment);
	shim_cuMemRelease(memory);
	return result;
}

CUresult shim_pool_import(
	struct shim_pool *pool, const CUmemPoolPtrExportData *data, CUdeviceptr *addressp)
{
	struct shim_context *context;
	struct export_data contents;
	CUresult result;

	memcpy(&contents, data, sizeof(contents));
	if (!pool->is_import || memcmp(contents.pool, pool->id, sizeof(contents.pool)))
		return CUDA_ERROR_INVALID_VALUE;
	context = shim_thread_context(shim_thread_get());
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = take(pool, &contents, context, addressp);
	if (result != CUDA_ERROR_NOT_FOUND)
		return result;
	result = map(pool, &contents);
	return result == CUDA_SUCCESS ? take(pool, &contents, context, addressp) : result;
}
