/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: pools of memory that is allocated in the order of streams
 *
 * Pools have memory of one device, or of the host. Those of other processes are in
 * entry-share.c.
 */

#include "entry/pool-block.h"
#include "entry/pool-segment.h"
#include "process/call.h"
#include "process/device.h"

/* The location of pools. Managed ones are for devices that migrate memory. */
static CUresult find_location(
	const CUmemLocation *location, CUmemAllocationType type, int *numberp)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return type == CU_MEM_ALLOCATION_TYPE_PINNED
		       ? shim_location_find_new(location, numberp)
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	CUresult result;
	int location;

	SHIM_CHECK_READY();
	if (!pool || !poolProps)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_location(&poolProps->location, poolProps->allocType, &location);
	if (result != CUDA_SUCCESS)
		return result;
	/* CUDA's manual: such a pool cannot be shared, whatever the type. */
	if (location == SHIM_LOCATION_HOST && poolProps->handleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->usage || (unsigned int)poolProps->handleTypes &
					~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (shim_location_is_host(location) && poolProps->handleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	return shim_pool_new(location, poolProps->maxSize,
		poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE, pool);
}

CUresult shim_cuMemPoolDestroy(CUmemoryPool pool)
{
	struct shim_pool *destroyed;

	SHIM_CHECK_READY();
	destroyed = shim_pool_destroy(pool);
	if (!destroyed)
		return CUDA_ERROR_INVALID_VALUE;
	shim_pool_trim(destroyed, 0);
	return CUDA_SUCCESS;
}

CUresult shim_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct shim_pool *found;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	shim_pool_settle(found);
	shim_pool_trim(found, minBytesToKeep);
	return CUDA_SUCCESS;
}

CUresult shim_cuMemPoolSetAttribute(
	CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct shim_pool *found;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	return found && value ? shim_pool_set_attribute(found, attr, value)
			      : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemPoolGetAttribute(
	CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct shim_pool *found;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	return found && value ? shim_pool_get_attribute(found, attr, value)
			      : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemPoolSetAccess(
	CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CUresult result = CUDA_SUCCESS;
	struct shim_pool *found;
	int location;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	if (!found || !map || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
		result = shim_location_find(&map[i].location, &location);
		if (result == CUDA_SUCCESS)
			result = shim_pool_set_access(found, location, map[i].flags);
	}
	return result;
}

CUresult shim_cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct shim_pool *found;
	CUresult result;
	int number;

	SHIM_CHECK_READY();
	found = shim_pool_find(memPool);
	if (!found || !flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_location_find(location, &number);
	return result == CUDA_SUCCESS ? shim_pool_get_access(found, number, flags)
				      : result;
}

/*
 * Pools of devices
 */

CUresult shim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	return shim_device_get(dev) ? shim_pool_get_default(dev, pool_out)
				    : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	return shim_device_get(dev) ? shim_pool_get_current(dev, pool)
				    : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	SHIM_CHECK_READY();
	return shim_device_get(dev) ? shim_pool_set_current(dev, pool)
				    : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result;
	int number;

	SHIM_CHECK_READY();
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_location(location, type, &number);
	return result == CUDA_SUCCESS ? shim_pool_get_default(number, pool_out) : result;
}

CUresult shim_cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result;
	int number;

	SHIM_CHECK_READY();
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_location(location, type, &number);
	return result == CUDA_SUCCESS ? shim_pool_get_current(number, pool) : result;
}

CUresult shim_cuMemSetMemPool(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result;
	int number;

	SHIM_CHECK_READY();
	result = find_location(location, type, &number);
	return result == CUDA_SUCCESS ? shim_pool_set_current(number, pool) : result;
}

/*
 * Memory
 */

CUresult shim_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	SHIM_CHECK_READY();
	if (!dptr || !bytesize)
		return CUDA_ERROR_INVALID_VALUE;
	return shim_pool_alloc(NULL, hStream, bytesize, dptr);
}

CUresult shim_cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	struct shim_pool *found;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	if (!dptr || !bytesize || !found || found->is_import)
		return CUDA_ERROR_INVALID_VALUE;
	return shim_pool_alloc(found, hStream, bytesize, dptr);
}

CUresult shim_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	SHIM_CHECK_READY();
	return shim_pool_free_async(dptr, hStream);
}
