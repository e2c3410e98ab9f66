/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: virtual memory
 *
 * What is mapped is noted among the ranges, for the attributes of pointers and for
 * copies. Memory on the host is a piece of the arena (memory/host-memory.h).
 */

#include <sys/mman.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/right.h"

#include "g-remote.h"
#include "memory/host-memory.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/device.h"
#include "process/location.h"
#include "wire/window.h"

/* Whether memory with such properties can be created, and where. */
static CUresult check_prop(const CUmemAllocationProp *prop, int *locationp)
{
	CUresult result;

	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_location_find_new(&prop->location, locationp);
	if (result != CUDA_SUCCESS)
		return result;
	/* CUDA's manual: that memory cannot be shared, whatever the type. */
	if (*locationp == SHIM_LOCATION_HOST && prop->requestedHandleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->allocFlags.usage || (unsigned int)prop->requestedHandleTypes &
					      ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return shim_location_is_host(*locationp) && prop->requestedHandleTypes
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_SUCCESS;
}

/* Asks the host for memory, for which a piece of the arena is there if it is on the host.
 */
static CUresult create(struct shim_call *call, Vgpu__CuMemCreateRequest *request,
	CUmemGenericAllocationHandle *handle)
{
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_call_sync(
		call, &request->base, &vgpu__cu_mem_create_reply__descriptor, &message);
	if (result == CUDA_SUCCESS)
		*handle = ((const Vgpu__CuMemCreateReply *)message)->handle;
	return result;
}

static CUresult create_on_host(struct shim_call *call, Vgpu__CuMemCreateRequest *request,
	int location, CUmemGenericAllocationHandle *handle)
{
	struct shim_host_piece *piece;
	CUresult result;

	if (!request->size)
		return shim_call_error(call, CUDA_ERROR_INVALID_VALUE);
	piece = shim_host_piece_new(request->size, location);
	if (!piece)
		return shim_call_error(call, CUDA_ERROR_OUT_OF_MEMORY);
	request->arena_address = (uintptr_t)piece->memory;
	shim_lock(&shim_host_memory_lock);
	result = create(call, request, handle);
	if (result == CUDA_SUCCESS)
		shim_host_piece_add(piece, *handle);
	else
		shim_host_piece_settle(piece);
	shim_unlock(&shim_host_memory_lock);
	return result;
}

CUresult shim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	Vgpu__CuMemCreateRequest request = VGPU__CU_MEM_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemCreate);
	CUresult result;
	int location;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = check_prop(prop, &location);
	if (result != CUDA_SUCCESS)
		return shim_call_error(&call, result);
	request.device = shim_location_to_host(location);
	request.size = size;
	request.flags = flags;
	request.is_exportable = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
	return shim_location_is_host(location)
		       ? create_on_host(&call, &request, location, handle)
		       : create(&call, &request, handle);
}

CUresult shim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct shim_host_piece *piece;
	CUresult result;

	SHIM_LOCKED(&shim_host_memory_lock);
	result = shim_remote_cuMemRelease(handle);
	piece = result == CUDA_SUCCESS ? shim_host_piece_find(handle) : NULL;
	if (piece) {
		piece->n_handles--;
		shim_host_piece_settle(piece);
	}
	return result;
}

/* Whether the memory at an address is part of a pool, where the program maps nothing. */
static bool is_of_pool(CUdeviceptr address)
{
	struct shim_range range;

	return shim_range_find(address, &range) && range.kind == SHIM_RANGE_MAPPED &&
	       range.owner;
}

/* If it is memory on the host, that has one handle more, or a first one again. */
static void note_retained(CUdeviceptr address, uint64_t handle)
{
	struct shim_host_piece *piece = NULL;
	struct shim_range range;

	if (shim_range_find(address, &range) && range.arena)
		piece = shim_host_piece_at(range.arena);
	if (!piece)
		return;
	piece->handle = handle;
	piece->n_handles++;
}

CUresult shim_cuMemRetainAllocationHandle(
	CUmemGenericAllocationHandle *handle, void *addr)
{
	Vgpu__CuMemRetainAllocationHandleRequest request =
		VGPU__CU_MEM_RETAIN_ALLOCATION_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemRetainAllocationHandle);
	const ProtobufCMessage *message;
	CUresult result;

	if (!handle || is_of_pool((uintptr_t)addr))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.ptr = (uintptr_t)addr;
	shim_lock(&shim_host_memory_lock);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_retain_allocation_handle_reply__descriptor, &message);
	if (result == CUDA_SUCCESS) {
		*handle =
			((const Vgpu__CuMemRetainAllocationHandleReply *)message)->handle;
		note_retained((uintptr_t)addr, *handle);
	}
	shim_unlock(&shim_host_memory_lock);
	return result;
}

/* Memory on the host is at the address for the program, too. Calls that are not
 * asynchronous wait for their work on it, as on pinned memory. */
static CUresult map_piece(struct shim_host_piece *piece, struct shim_range *range)
{
	if (shim_host_piece_map(piece, range->base, range->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->arena = (uintptr_t)piece->memory;
	range->syncs = true;
	if (!shim_range_add(range)) {
		shim_host_piece_unmap(range->base, range->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	piece->n_mappings++;
	return CUDA_SUCCESS;
}

/* With the lock of host memory, after the host. */
static CUresult note_mapped(uint64_t handle, struct shim_range *range)
{
	struct shim_host_piece *piece = shim_host_piece_find(handle);
	CUresult result;

	range->closed_to = UINT64_MAX >> (64 - shim_device_n());
	if (!piece) {
		/* Without memory the attributes of the pointer are unknown; copies ask
		 * the host. */
		shim_range_add(range);
		return CUDA_SUCCESS;
	}
	result = map_piece(piece, range);
	if (result != CUDA_SUCCESS)
		shim_remote_cuMemUnmap(range->base, range->size);
	return result;
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
	shim_lock(&shim_host_memory_lock);
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_mem_map_reply__descriptor, &message);
	if (result == CUDA_SUCCESS) {
		reply = (const Vgpu__CuMemMapReply *)message;
		range.device = shim_device_from_host(reply->device);
		range.is_exportable = reply->is_exportable;
		result = note_mapped(handle, &range);
	}
	shim_unlock(&shim_host_memory_lock);
	return result;
}

static void unmap_pieces(CUdeviceptr ptr, size_t size)
{
	struct shim_host_piece *piece;
	struct shim_range range;

	for (CUdeviceptr from = ptr; shim_range_find_on_host(from, ptr + size, &range);
		from = range.base + range.size) {
		shim_host_piece_unmap(range.base, range.size);
		piece = shim_host_piece_at(range.arena);
		if (!piece)
			continue;
		piece->n_mappings--;
		shim_host_piece_settle(piece);
	}
}

CUresult shim_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemUnmap);
	CUresult result;

	if (is_of_pool(ptr))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	/* Without the lock: of memory on the host this waits for work, which may wait for
	 * other threads. Nobody else uses the mappings now. */
	result = shim_remote_cuMemUnmap(ptr, size);
	if (result != CUDA_SUCCESS)
		return result;
	shim_lock(&shim_host_memory_lock);
	unmap_pieces(ptr, size);
	shim_range_drop_mapped(ptr, size);
	shim_unlock(&shim_host_memory_lock);
	return CUDA_SUCCESS;
}

/* Carries out a right that the host has noted. */
static CUresult note_right(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc)
{
	const int protection = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? PROT_NONE
			       : desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ
				       ? PROT_READ
				       : PROT_READ | PROT_WRITE;

	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return shim_window_protect(ptr, size, protection)
			       ? CUDA_ERROR_OUT_OF_MEMORY
			       : CUDA_SUCCESS;
	shim_range_set_access(ptr, size, 1ull << desc->location.id,
		desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	return CUDA_SUCCESS;
}

CUresult shim_cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	Vgpu__CuMemSetAccessRequest request = VGPU__CU_MEM_SET_ACCESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemSetAccess);
	struct vgpu_right rights[VGPU_RIGHTS_MAX];
	const ProtobufCMessage *message;
	CUresult result;
	int location;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	/* There are no more devices. */
	if (!desc || !count || count > VGPU_RIGHTS_MAX)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		result = shim_location_find(&desc[i].location, &location);
		if (result != CUDA_SUCCESS)
			return shim_call_error(&call, result);
		rights[i].device = shim_location_to_host(location);
		rights[i].flags = desc[i].flags;
	}
	request.ptr = ptr;
	request.size = size;
	request.rights.data = (uint8_t *)rights;
	request.rights.len = count * sizeof(rights[0]);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_set_access_reply__descriptor, &message);
	shim_lock(&shim_host_memory_lock);
	for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
		result = note_right(ptr, size, &desc[i]);
	shim_unlock(&shim_host_memory_lock);
	return result;
}

CUresult shim_cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	Vgpu__CuMemGetAccessRequest request = VGPU__CU_MEM_GET_ACCESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemGetAccess);
	const ProtobufCMessage *message;
	CUresult result;
	int number;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !location)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = shim_location_find(location, &number);
	if (result != CUDA_SUCCESS)
		return shim_call_error(&call, result);
	request.device = shim_location_to_host(number);
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
	int location;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!granularity)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = check_prop(prop, &location);
	if (result != CUDA_SUCCESS)
		return shim_call_error(&call, result);
	request.device = shim_location_to_host(location);
	request.option = option;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_get_allocation_granularity_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemGetAllocationGranularityReply *)message;
	*granularity = reply->granularity;
	return CUDA_SUCCESS;
}

/* Return: whether it is memory on the host, and its properties. */
static bool find_prop(uint64_t handle, CUmemAllocationProp *prop)
{
	const struct shim_host_piece *piece;

	SHIM_LOCKED(&shim_host_memory_lock);
	piece = shim_host_piece_find(handle);
	if (piece)
		*prop = (CUmemAllocationProp){
			.type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = shim_location_public(piece->location),
		};
	return piece;
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
	if (shim_is_ready() && find_prop(handle, prop))
		return CUDA_SUCCESS;
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
