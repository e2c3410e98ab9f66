/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: pools of memory that is allocated in the order of streams
 *
 * Pools have memory of one device. Those of other processes are in entry-share.c.
 */

#include "entry/pool-block.h"
#include "entry/pool-segment.h"
#include "process/call.h"
#include "process/device.h"

/* The device of a place that pools may be of. */
static CUresult find_device(
	const CUmemLocation *location, CUmemAllocationType type, CUdevice *devicep)
{
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*devicep = location->id;
		return shim_device_get(location->id) ? CUDA_SUCCESS
						     : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult shim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	CUdevice device;
	CUresult result;

	SHIM_CHECK_READY();
	if (!pool || !poolProps)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_device(&poolProps->location, poolProps->allocType, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (poolProps->usage || (unsigned int)poolProps->handleTypes &
					~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return shim_pool_new(device, poolProps->maxSize,
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

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	if (!found || !map || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (!shim_device_get(map[i].location.id))
			result = CUDA_ERROR_INVALID_DEVICE;
		else
			result = shim_pool_set_access(
				found, map[i].location.id, map[i].flags);
	}
	return result;
}

CUresult shim_cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct shim_pool *found;

	SHIM_CHECK_READY();
	found = shim_pool_find(memPool);
	if (!found || !flags || !location ||
		location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!shim_device_get(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = shim_pool_get_access(found, location->id);
	return CUDA_SUCCESS;
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
	CUdevice device;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_device(location, type, &device);
	return result == CUDA_SUCCESS ? shim_cuDeviceGetDefaultMemPool(pool_out, device)
				      : result;
}

CUresult shim_cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUdevice device;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_device(location, type, &device);
	return result == CUDA_SUCCESS ? shim_cuDeviceGetMemPool(pool, device) : result;
}

CUresult shim_cuMemSetMemPool(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUdevice device;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_device(location, type, &device);
	return result == CUDA_SUCCESS ? shim_pool_set_current(device, pool) : result;
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
