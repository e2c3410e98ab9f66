/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of pools
 */

#include <stdlib.h>
#include <string.h>

#include "entry/pool-segment.h"
#include "entry/share.h"
#include "g-remote.h"
#include "memory/arena.h"
#include "memory/blocks.h"
#include "memory/range.h"
#include "process/device.h"
#include "process/shim.h"

/* Blocks that are smaller share segments of this size, as on current drivers, where
 * CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT shows it. */
#define SEGMENT_SIZE (32ull << 20)

/* The same on the host, where the arena grows by 64 MiB and is for others, too. */
#define HOST_SEGMENT_SIZE (8ull << 20)
#define HOST_UNIT 4096u /* pages of the arena */

/* Segments that are given back at once, without the lock. */
#define TRIM_MAX 16u

static CUmemAllocationProp prop_of(const struct shim_pool *pool)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = pool->is_exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = shim_location_public(pool->location),
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
	CUresult result = CUDA_SUCCESS;
	size_t granularity = HOST_UNIT;

	if (!shim_location_is_host(pool->location))
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

static void segment_free(const struct shim_pool *pool, uint64_t base, uint64_t size)
{
	struct shim_range range;

	if (shim_location_is_host(pool->location)) {
		shim_range_remove(base, SHIM_RANGE_MAPPED, &range);
		shim_arena_free((void *)(uintptr_t)base);
		return;
	}
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
static CUresult map(CUmemGenericAllocationHandle memory, uint64_t size, uint64_t *basep)
{
	CUdeviceptr base;
	CUresult result;

	result = shim_cuMemAddressReserve(&base, size, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_cuMemMap(base, size, 0, memory, 0);
	if (result != CUDA_SUCCESS)
		shim_cuMemAddressFree(base, size);
	*basep = base;
	return result;
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

/* What is mapped gets the rights that the pool has, and nobody changes these before it
 * is the pool's. */
static CUresult open_and_add(struct shim_pool *pool, uint64_t base, uint64_t size,
	const uint8_t token[SHIM_TOKEN_SIZE])
{
	CUresult result;

	SHIM_LOCKED(&pool->segments_lock);
	result = open_to_devices(pool, base, size);
	if (result != CUDA_SUCCESS)
		return result;
	return shim_range_set_owner(base, pool->handle) && add(pool, base, size, token)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether another thread has mapped memory with that token. */
static bool has_token(struct shim_pool *pool, const uint8_t token[SHIM_TOKEN_SIZE])
{
	SHIM_LOCKED(&pool->lock);
	return token && shim_pool_find_token(pool, token);
}

CUresult shim_pool_map(struct shim_pool *pool, CUmemGenericAllocationHandle memory,
	uint64_t size, const uint8_t token[SHIM_TOKEN_SIZE])
{
	CUresult result;
	uint64_t base;

	result = map(memory, size, &base);
	if (result != CUDA_SUCCESS)
		return result;
	result = open_and_add(pool, base, size, token);
	if (result == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	segment_free(pool, base, size);
	return has_token(pool, token) ? CUDA_SUCCESS : result;
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

/* A piece of the arena, which all devices reach. */
static CUresult add_host_segment(struct shim_pool *pool, uint64_t size)
{
	struct shim_range range = {
		.size = size,
		.kind = SHIM_RANGE_MAPPED,
		.device = SHIM_NO_DEVICE,
		.owner = pool->handle,
	};
	void *memory;

	if (!has_room(pool, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = shim_arena_alloc(size);
	range.base = (uintptr_t)memory;
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!shim_range_add(&range)) {
		shim_arena_free(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (add(pool, range.base, size, NULL))
		return CUDA_SUCCESS;
	segment_free(pool, range.base, size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_pool_grow(struct shim_pool *pool, uint64_t size)
{
	bool is_host = shim_location_is_host(pool->location);
	uint64_t usual = is_host ? HOST_SEGMENT_SIZE : SEGMENT_SIZE;
	CUresult (*add_one)(struct shim_pool *, uint64_t) =
		is_host ? add_host_segment : add_segment;
	CUresult result;

	result = round_up(pool, &size);
	if (result != CUDA_SUCCESS)
		return result;
	if (size < usual) {
		result = add_one(pool, usual);
		if (result != CUDA_ERROR_OUT_OF_MEMORY)
			return result;
	}
	return add_one(pool, size);
}

static uint32_t take_out(struct shim_pool *pool, uint64_t keep, uint64_t bases[TRIM_MAX],
	uint64_t sizes[TRIM_MAX])
{
	uint32_t n;

	shim_lock(&pool->segments_lock);
	shim_lock(&pool->lock);
	for (n = 0; n < TRIM_MAX; n++) {
		if (!shim_blocks_remove(pool->blocks, keep, &bases[n], &sizes[n]))
			break;
		forget(pool, bases[n]);
	}
	shim_pool_note_surplus(pool);
	shim_unlock(&pool->lock);
	shim_unlock(&pool->segments_lock);
	return n;
}

void shim_pool_trim(struct shim_pool *pool, uint64_t keep)
{
	uint64_t bases[TRIM_MAX], sizes[TRIM_MAX];
	uint32_t n;

	do {
		n = take_out(pool, keep, bases, sizes);
		for (uint32_t i = 0; i < n; i++)
			segment_free(pool, bases[i], sizes[i]);
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

/* With the lock of the segments: the other lock is not held during calls. */
static CUresult set_access_of_segments(
	struct shim_pool *pool, const CUmemAccessDesc *right)
{
	CUresult result = CUDA_SUCCESS;
	struct list list = {};

	shim_lock(&pool->lock);
	shim_blocks_each_segment(pool->blocks, note_segment, &list);
	shim_unlock(&pool->lock);
	if (list.is_short)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; result == CUDA_SUCCESS && i < list.n; i++)
		result = shim_cuMemSetAccess(list.all[i][0], list.all[i][1], right, 1);
	free(list.all);
	return result;
}

static CUresult set_device_access(
	struct shim_pool *pool, CUdevice device, CUmemAccess_flags flags)
{
	const CUmemAccessDesc right = { { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
	CUresult result;

	SHIM_LOCKED(&pool->segments_lock);
	result = set_access_of_segments(pool, &right);
	if (result == CUDA_SUCCESS) {
		shim_lock(&pool->lock);
		pool->access[device] = flags;
		shim_unlock(&pool->lock);
	}
	return result;
}

static bool is_access(CUmemAccess_flags flags)
{
	return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
	       flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
	       flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

static CUresult set_access_to_host(
	struct shim_pool *pool, int location, CUmemAccess_flags flags)
{
	if (!is_access(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (shim_location_is_host(location))
		return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	shim_lock(&pool->lock);
	pool->access[location] = flags;
	shim_unlock(&pool->lock);
	return CUDA_SUCCESS;
}

CUresult shim_pool_set_access(
	struct shim_pool *pool, int location, CUmemAccess_flags flags)
{
	CUresult result;
	int can_access = 0;

	if (shim_location_is_host(pool->location))
		return set_access_to_host(pool, location, flags);
	/* A device keeps the access to its own pools. */
	if (location == pool->location)
		return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	if (shim_location_is_host(location))
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_cuDeviceCanAccessPeer(&can_access, location, pool->location);
	if (result != CUDA_SUCCESS || !can_access)
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_DEVICE;
	return set_device_access(pool, location, flags);
}

CUresult shim_pool_get_access(
	struct shim_pool *pool, int location, CUmemAccess_flags *flagsp)
{
	SHIM_LOCKED(&pool->lock);
	if (!shim_location_is_host(location))
		*flagsp = pool->access[location];
	else if (shim_location_is_host(pool->location))
		*flagsp = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
