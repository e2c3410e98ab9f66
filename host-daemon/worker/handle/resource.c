/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on the resources of devices and contexts
 *
 * A driver keeps its own data in a CUdevResource, so only the documented numbers leave
 * the host.
 */

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/session.h"

CUresult handle_cuDeviceGetDevResource(struct call *call,
	const Vgpu__CuDeviceGetDevResourceRequest *request,
	Vgpu__CuDeviceGetDevResourceReply *reply)
{
	CUdevResource resource = {};
	CUresult result;

	if (!call->driver->cuDeviceGetDevResource)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	result = call->driver->cuDeviceGetDevResource(
		request->device, &resource, CU_DEV_RESOURCE_TYPE_SM);
	reply->sm_count = resource.sm.smCount;
	reply->min_sm_partition_size = resource.sm.minSmPartitionSize;
	reply->sm_coscheduled_alignment = resource.sm.smCoscheduledAlignment;
	return result;
}

CUresult handle_cuCtxGetDevResource(struct call *call,
	const Vgpu__CuCtxGetDevResourceRequest *request,
	Vgpu__CuCtxGetDevResourceReply *reply)
{
	CUdevResource resource = {};
	struct context *context;
	CUresult result;

	if (!call->driver->cuCtxGetDevResource)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	context = context_find(call->session, request->h_ctx);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = context_enter(call->session, call->runner, context);
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuCtxGetDevResource(
		context->object.driver, &resource, CU_DEV_RESOURCE_TYPE_SM);
	reply->sm_count = resource.sm.smCount;
	reply->min_sm_partition_size = resource.sm.minSmPartitionSize;
	reply->sm_coscheduled_alignment = resource.sm.smCoscheduledAlignment;
	return result;
}
