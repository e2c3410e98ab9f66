/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: the multiprocessors of devices and contexts
 *
 * The driver's bytes in a CUdevResource stay on the host: only calls that are not remoted
 * read them.
 */

#include "vgpu/g-driver.pb-c.h"

#include "g-remote.h"
#include "process/call.h"
#include "process/device.h"

static CUresult check(
	struct shim_call *call, const CUdevResource *resource, CUdevResourceType type)
{
	if (!resource)
		return shim_call_error(call, CUDA_ERROR_INVALID_VALUE);
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return shim_call_error(call, CUDA_ERROR_INVALID_RESOURCE_TYPE);
	return shim_call_check(call->id);
}

/* The replies of both calls have the same fields. */
#define SET_RESOURCE(_resource, _reply)                                                  \
	do {                                                                             \
		*(_resource) = (CUdevResource){                                          \
			.type = CU_DEV_RESOURCE_TYPE_SM,                                 \
			.sm.smCount = (_reply)->sm_count,                                \
			.sm.minSmPartitionSize = (_reply)->min_sm_partition_size,        \
			.sm.smCoscheduledAlignment = (_reply)->sm_coscheduled_alignment, \
		};                                                                       \
	} while (0)

CUresult shim_cuDeviceGetDevResource(
	CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	Vgpu__CuDeviceGetDevResourceRequest request =
		VGPU__CU_DEVICE_GET_DEV_RESOURCE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDeviceGetDevResource);
	const ProtobufCMessage *message;
	CUresult result;

	result = check(&call, resource, type);
	if (result != CUDA_SUCCESS)
		return result;
	request.device = shim_device_to_host(device);
	request.type = type;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_device_get_dev_resource_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	SET_RESOURCE(resource, (const Vgpu__CuDeviceGetDevResourceReply *)message);
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxGetDevResource(
	CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	Vgpu__CuCtxGetDevResourceRequest request =
		VGPU__CU_CTX_GET_DEV_RESOURCE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxGetDevResource);
	const ProtobufCMessage *message;
	CUresult result;

	result = check(&call, resource, type);
	if (result != CUDA_SUCCESS)
		return result;
	request.h_ctx = (uint64_t)(uintptr_t)hCtx;
	request.type = type;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_ctx_get_dev_resource_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	SET_RESOURCE(resource, (const Vgpu__CuCtxGetDevResourceReply *)message);
	return CUDA_SUCCESS;
}
