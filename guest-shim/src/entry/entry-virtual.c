/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: virtual memory
 *
 * Memory is created on devices only, which is all that is advertised. What is mapped is
 * noted among the ranges, for the attributes of pointers and for copies.
 */

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/right.h"

#include "g-remote.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/device.h"

/* Whether a place is a device, and which. */
static CUresult find_device(const CUmemLocation *location, int32_t *numberp)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (!shim_device_get(location->id))
			return CUDA_ERROR_INVALID_DEVICE;
		*numberp = shim_device_to_host(location->id);
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Whether memory with such properties can be created, and where. */
static CUresult check_prop(const CUmemAllocationProp *prop, int32_t *numberp)
{
	CUresult result;

	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_device(&prop->location, numberp);
	if (result != CUDA_SUCCESS)
		return result;
	if (prop->allocFlags.usage || (unsigned int)prop->requestedHandleTypes &
					      ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	Vgpu__CuMemCreateRequest request = VGPU__CU_MEM_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemCreate);
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = check_prop(prop, &request.device);
	if (result != CUDA_SUCCESS)
		return shim_call_error(&call, result);
	request.size = size;
	request.flags = flags;
	request.is_exportable = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_mem_create_reply__descriptor, &message);
	if (result == CUDA_SUCCESS)
		*handle = ((const Vgpu__CuMemCreateReply *)message)->handle;
	return result;
}

/* Whether the memory at an address is part of a pool, where the program maps nothing. */
static bool is_of_pool(CUdeviceptr address)
{
	struct shim_range range;

	return shim_range_find(address, &range) && range.kind == SHIM_RANGE_MAPPED &&
	       range.owner;
}

CUresult shim_cuMemRetainAllocationHandle(
	CUmemGenericAllocationHandle *handle, void *addr)
{
	Vgpu__CuMemRetainAllocationHandleRequest request =
		VGPU__CU_MEM_RETAIN_ALLOCATION_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemRetainAllocationHandle);
	const Vgpu__CuMemRetainAllocationHandleReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!handle || is_of_pool((uintptr_t)addr))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.ptr = (uintptr_t)addr;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_retain_allocation_handle_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemRetainAllocationHandleReply *)message;
	*handle = reply->handle;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	Vgpu__CuMemMapRequest request = VGPU__CU_MEM_MAP_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemMap);
	struct shim_range range = {
		.base = ptr,
		.size = size,
		.kind = SHIM_RANGE_MAPPED,
	};
	const Vgpu__CuMemMapReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	request.ptr = ptr;
	request.size = size;
	request.offset = offset;
	request.handle = handle;
	request.flags = flags;
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_mem_map_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemMapReply *)message;
	range.device = shim_device_from_host(reply->device);
	range.is_exportable = reply->is_exportable;
	range.closed_to = UINT64_MAX >> (64 - shim_device_n());
	/* Without memory the attributes of the pointer are unknown; copies ask the
	 * host. */
	shim_range_add(&range);
	return CUDA_SUCCESS;
}

CUresult shim_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemUnmap);
	CUresult result;

	if (is_of_pool(ptr))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = shim_remote_cuMemUnmap(ptr, size);
	if (result == CUDA_SUCCESS)
		shim_range_drop_mapped(ptr, size);
	return result;
}

CUresult shim_cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	Vgpu__CuMemSetAccessRequest request = VGPU__CU_MEM_SET_ACCESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemSetAccess);
	struct vgpu_right rights[VGPU_RIGHTS_MAX];
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	/* There are no more devices. */
	if (!desc || !count || count > VGPU_RIGHTS_MAX)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		result = find_device(&desc[i].location, &rights[i].device);
		if (result != CUDA_SUCCESS)
			return shim_call_error(&call, result);
		rights[i].flags = desc[i].flags;
	}
	request.ptr = ptr;
	request.size = size;
	request.rights.data = (uint8_t *)rights;
	request.rights.len = count * sizeof(rights[0]);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_set_access_reply__descriptor, &message);
	for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
		shim_range_set_access(ptr, size, 1ull << desc[i].location.id,
			desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	return result;
}

CUresult shim_cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	Vgpu__CuMemGetAccessRequest request = VGPU__CU_MEM_GET_ACCESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemGetAccess);
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !location)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = find_device(location, &request.device);
	if (result != CUDA_SUCCESS)
		return shim_call_error(&call, result);
	request.ptr = ptr;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_get_access_reply__descriptor, &message);
	if (result == CUDA_SUCCESS)
		*flags = ((const Vgpu__CuMemGetAccessReply *)message)->flags;
	return result;
}

CUresult shim_cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	Vgpu__CuMemGetAllocationGranularityRequest request =
		VGPU__CU_MEM_GET_ALLOCATION_GRANULARITY_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemGetAllocationGranularity);
	const Vgpu__CuMemGetAllocationGranularityReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!granularity)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = check_prop(prop, &request.device);
	if (result != CUDA_SUCCESS)
		return shim_call_error(&call, result);
	request.option = option;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_get_allocation_granularity_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemGetAllocationGranularityReply *)message;
	*granularity = reply->granularity;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	Vgpu__CuMemGetAllocationPropertiesFromHandleRequest request =
		VGPU__CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuMemGetAllocationPropertiesFromHandle);
	const Vgpu__CuMemGetAllocationPropertiesFromHandleReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!prop)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.handle = handle;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_get_allocation_properties_from_handle_reply__descriptor,
		&message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemGetAllocationPropertiesFromHandleReply *)message;
	*prop = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = reply->is_exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE,
			shim_device_from_host(reply->device) },
		.allocFlags.compressionType = (unsigned char)reply->compression,
	};
	return CUDA_SUCCESS;
}
