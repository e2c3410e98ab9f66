/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on virtual memory
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/right.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/memory/virtual.h"

/* Of all drivers that have one of these functions, each has all. */
static bool is_capable(const struct call *call)
{
	return call->driver->cuMemCreate && call->driver->cuMemAddressReserve;
}

static bool is_device(const struct call *call, int32_t device)
{
	return device >= 0 && device < call->session->n_devices;
}

/* A device, or the guest's processors. */
static bool has_rights(const struct call *call, int32_t device)
{
	return device == -1 || is_device(call, device);
}

CUresult handle_cuMemAddressReserve(struct call *call,
	const Vgpu__CuMemAddressReserveRequest *request,
	Vgpu__CuMemAddressReserveReply *reply)
{
	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->flags)
		return CUDA_ERROR_INVALID_VALUE;
	return virtual_reserve(
		call, request->size, request->alignment, request->addr, &reply->ptr);
}

CUresult handle_cuMemAddressFree(struct call *call,
	const Vgpu__CuMemAddressFreeRequest *request, Vgpu__CuMemAddressFreeReply *reply)
{
	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	return virtual_unreserve(call, request->ptr, request->size);
}

CUresult handle_cuMemCreate(struct call *call, const Vgpu__CuMemCreateRequest *request,
	Vgpu__CuMemCreateReply *reply)
{
	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!request->arena_address && !is_device(call, request->device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (request->flags || (request->arena_address && request->is_exportable))
		return CUDA_ERROR_INVALID_VALUE;
	if (request->arena_address)
		return virtual_create_host(
			call, request->size, request->arena_address, &reply->handle);
	return virtual_create(call, request->size, request->device,
		request->is_exportable, &reply->handle);
}

CUresult handle_cuMemExportToShareableHandle(struct call *call,
	const Vgpu__CuMemExportToShareableHandleRequest *request,
	Vgpu__CuMemExportToShareableHandleReply *reply)
{
	uint8_t *token;
	CUresult result;

	if (!is_capable(call) || !call->driver->cuMemExportToShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	token = scratch_alloc(&call->runner->scratch, CONTROL_TOKEN_SIZE);
	if (!token)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = virtual_export(call, request->handle, token);
	if (result == CUDA_SUCCESS) {
		reply->token.data = token;
		reply->token.len = CONTROL_TOKEN_SIZE;
	}
	return result;
}

CUresult handle_cuMemImportFromShareableHandle(struct call *call,
	const Vgpu__CuMemImportFromShareableHandleRequest *request,
	Vgpu__CuMemImportFromShareableHandleReply *reply)
{
	if (!is_capable(call) || !call->driver->cuMemImportFromShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->token.len != CONTROL_TOKEN_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return virtual_import(call, request->token.data, &reply->handle);
}

CUresult handle_cuMemRelease(struct call *call, const Vgpu__CuMemReleaseRequest *request,
	Vgpu__CuMemReleaseReply *reply)
{
	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	return virtual_release(call, request->handle);
}

CUresult handle_cuMemRetainAllocationHandle(struct call *call,
	const Vgpu__CuMemRetainAllocationHandleRequest *request,
	Vgpu__CuMemRetainAllocationHandleReply *reply)
{
	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	return virtual_retain(call, request->ptr, &reply->handle);
}

CUresult handle_cuMemMap(struct call *call, const Vgpu__CuMemMapRequest *request,
	Vgpu__CuMemMapReply *reply)
{
	bool is_exportable = false;
	CUdevice device = 0;
	CUresult result;

	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = virtual_map(call, request->ptr, request->size, request->offset,
		request->handle, &device, &is_exportable);
	reply->device = device;
	reply->is_exportable = is_exportable;
	return result;
}

CUresult handle_cuMemUnmap(struct call *call, const Vgpu__CuMemUnmapRequest *request,
	Vgpu__CuMemUnmapReply *reply)
{
	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	return virtual_unmap(call, request->ptr, request->size);
}

CUresult handle_cuMemSetAccess(struct call *call,
	const Vgpu__CuMemSetAccessRequest *request, Vgpu__CuMemSetAccessReply *reply)
{
	struct vgpu_right rights[VGPU_RIGHTS_MAX];
	size_t n = request->rights.len / sizeof(rights[0]);

	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!n || n > VGPU_RIGHTS_MAX || request->rights.len % sizeof(rights[0]))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(rights, request->rights.data, request->rights.len);
	for (size_t i = 0; i < n; i++)
		if (!has_rights(call, rights[i].device))
			return CUDA_ERROR_INVALID_DEVICE;
	return virtual_set_access(call, request->ptr, request->size, rights, n);
}

CUresult handle_cuMemGetAccess(struct call *call,
	const Vgpu__CuMemGetAccessRequest *request, Vgpu__CuMemGetAccessReply *reply)
{
	unsigned long long flags = 0;
	CUresult result;

	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!has_rights(call, request->device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = virtual_get_access(call, request->ptr, request->device, &flags);
	reply->flags = flags;
	return result;
}

CUresult handle_cuMemGetAllocationGranularity(struct call *call,
	const Vgpu__CuMemGetAllocationGranularityRequest *request,
	Vgpu__CuMemGetAllocationGranularityReply *reply)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		/* Memory of the host is mapped where memory of any device could be. */
		.location = { CU_MEM_LOCATION_TYPE_DEVICE,
			request->device == -1 ? 0 : request->device },
	};
	size_t granularity = 0;
	CUresult result;

	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!has_rights(call, request->device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = call->driver->cuMemGetAllocationGranularity(
		&granularity, &prop, (CUmemAllocationGranularity_flags)request->option);
	reply->granularity = granularity;
	return result;
}

CUresult handle_cuMemGetAllocationPropertiesFromHandle(struct call *call,
	const Vgpu__CuMemGetAllocationPropertiesFromHandleRequest *request,
	Vgpu__CuMemGetAllocationPropertiesFromHandleReply *reply)
{
	CUmemAllocationProp prop = {};
	CUresult result;

	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = virtual_properties(call, request->handle, &prop);
	reply->device = prop.location.id;
	reply->compression = prop.allocFlags.compressionType;
	reply->is_exportable = prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
	return result;
}
