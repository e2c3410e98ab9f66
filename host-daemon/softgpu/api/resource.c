/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources of devices and contexts
 *
 * A context always has all multiprocessors of its device, so these cannot be partitioned;
 * and they are not scheduled in clusters.
 */

#include "api/api.h"

static CUresult answer(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	int n;

	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &n))
		return CUDA_ERROR_UNKNOWN;
	*resource = (CUdevResource){
		.type = CU_DEV_RESOURCE_TYPE_SM,
		.sm.smCount = (unsigned int)n,
		.sm.minSmPartitionSize = (unsigned int)n,
		.sm.smCoscheduledAlignment = 1,
	};
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(
	CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	API_CALL;
	CUresult result;

	result = device_get(device);
	if (result)
		return result;
	return answer(device, resource, type);
}

CUresult cuCtxGetDevResource(
	CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(hCtx, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return answer(hCtx->device, resource, type);
}
