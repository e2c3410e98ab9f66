/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of pools
 */

#include <stdlib.h>
#include <string.h>

#include "entry/pool-segment.h"
#include "entry/share.h"
#include "g-remote.h"
#include "memory/blocks.h"
#include "memory/range.h"
#include "process/device.h"
#include "process/shim.h"

/* Blocks that are smaller share segments of this size, as on current drivers, where
 * CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT shows it. */
#define SEGMENT_SIZE (32ull << 20)

/* Segments that are given back at once, without the lock. */
#define TRIM_MAX 16u

static CUmemAllocationProp prop_of(const struct shim_pool *pool)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = pool->is_exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, pool->device },
	};
}

/*
 * Segments of shared pools
 */

struct shim_pool_segment *shim_pool_find_segment(
	const struct shim_pool *pool, uint64_t address)
{
	struct shim_pool_segment *segment = pool->segments;

	while (segment && address - segment->base >= segment->size)
		segment = segment->next;
	return segment;
}

struct shim_pool_segment *shim_pool_find_token(
	const struct shim_pool *pool, const uint8_t token[SHIM_TOKEN_SIZE])
{
	struct shim_pool_segment *segment = pool->segments;

	while (segment && memcmp(segment->token, token, SHIM_TOKEN_SIZE))
		segment = segment->next;
	return segment;
}

static void forget(struct shim_pool *pool, uint64_t base)
{
	struct shim_pool_segment **link = &pool->segments, *segment;

	while (*link && (*link)->base != base)
		link = &(*link)->next;
	segment = *link;
	if (segment)
		*link = segment->next;
	free(segment);
}

/*
 * Mapped memory
 */

static CUresult round_up(const struct shim_pool *pool, uint64_t *sizep)
{
	CUmemAllocationProp prop = prop_of(pool);
	size_t granularity;
	CUresult result;

	result = shim_cuMemGetAllocationGranularity(
		&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (result != CUDA_SUCCESS)
		return result;
	/* The driver's number. */
	if (!granularity || *sizep > UINT64_MAX - granularity)
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

/* Maps memory at addresses that are the pool's. */
static CUresult map(struct shim_pool *pool, CUmemGenericAllocationHandle memory,
	uint64_t size, uint64_t *basep)
{
	CUdeviceptr base;
	CUresult result;

	result = shim_cuMemAddressReserve(&base, size, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_cuMemMap(base, size, 0, memory, 0);
	if (result != CUDA_SUCCESS) {
		shim_cuMemAddressFree(base, size);
		return result;
	}
	result = open_to_devices(pool, base, size);
	if (result != CUDA_SUCCESS || !shim_range_set_owner(base, pool->handle)) {
		segment_free(base, size);
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*basep = base;
	return CUDA_SUCCESS;
}

/* Notes the token of a segment. Return: false without memory, or if another thread has
 * mapped that memory in between. */
static bool note_token(struct shim_pool *pool, uint64_t base, uint64_t size,
	const uint8_t token[SHIM_TOKEN_SIZE])
{
	struct shim_pool_segment *segment = malloc(sizeof(*segment));

	if (!segment || shim_pool_find_token(pool, token)) {
		free(segment);
		return false;
	}
	*segment = (struct shim_pool_segment){ pool->segments, base, size, {} };
	memcpy(segment->token, token, SHIM_TOKEN_SIZE);
	pool->segments = segment;
	return true;
}

/* Adds what is mapped to the blocks. @token: NULL if the pool is not shared. */
static bool add(struct shim_pool *pool, uint64_t base, uint64_t size,
	const uint8_t token[SHIM_TOKEN_SIZE])
{
	SHIM_LOCKED(&pool->lock);
	if (token && !note_token(pool, base, size, token))
		return false;
	if (!shim_blocks_add(pool->blocks, base, size)) {
		forget(pool, base);
		return false;
	}
	shim_pool_note_surplus(pool);
	return true;
}

CUresult shim_pool_map(struct shim_pool *pool, CUmemGenericAllocationHandle memory,
	uint64_t size, const uint8_t token[SHIM_TOKEN_SIZE])
{
	CUresult result;
	uint64_t base;

	result = map(pool, memory, size, &base);
	if (result == CUDA_SUCCESS && !add(pool, base, size, token)) {
		segment_free(base, size);
		shim_lock(&pool->lock);
		result = token && shim_pool_find_token(pool, token)
				 ? CUDA_SUCCESS
				 : CUDA_ERROR_OUT_OF_MEMORY;
		shim_unlock(&pool->lock);
	}
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
	CUmemAllocationProp prop = prop_of(pool);
	CUmemGenericAllocationHandle memory;
	uint8_t token[SHIM_TOKEN_SIZE];
	CUresult result;

	if (!has_room(pool, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_cuMemCreate(&memory, size, &prop, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (pool->is_exportable)
		result = shim_share_export(memory, token);
	if (result == CUDA_SUCCESS)
		result = shim_pool_map(
			pool, memory, size, pool->is_exportable ? token : NULL);
	/* Mapped memory stays as long as it is. */
	shim_cuMemRelease(memory);
	return result;
}

CUresult shim_pool_grow(struct shim_pool *pool, uint64_t size)
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
		for (n = 0; n < TRIM_MAX; n++) {
			if (!shim_blocks_remove(pool->blocks, keep, &bases[n], &sizes[n]))
				break;
			forget(pool, bases[n]);
		}
		shim_pool_note_surplus(pool);
		shim_unlock(&pool->lock);
		for (uint32_t i = 0; i < n; i++)
			segment_free(bases[i], sizes[i]);
	} while (n == TRIM_MAX);
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
