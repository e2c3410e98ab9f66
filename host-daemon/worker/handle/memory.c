/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on device memory
 */

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/memory/device-memory.h"

CUresult handle_cuMemAlloc_v2(struct call *call, const Vgpu__CuMemAllocV2Request *request,
	Vgpu__CuMemAllocV2Reply *reply)
{
	return device_memory_alloc(call, request->bytesize, &reply->dptr);
}

CUresult handle_cuMemAllocPitch_v2(struct call *call,
	const Vgpu__CuMemAllocPitchV2Request *request,
	Vgpu__CuMemAllocPitchV2Reply *reply)
{
	uint32_t element = request->element_size_bytes;
	uint64_t size;

	if (element != 4 && element != 8 && element != 16)
		return CUDA_ERROR_INVALID_VALUE;
	if (!vgpu_align_u64(
		    request->width_in_bytes, DEVICE_MEMORY_PITCH, &reply->p_pitch) ||
		!vgpu_mul_u64(reply->p_pitch, request->height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	return device_memory_alloc(call, size, &reply->dptr);
}

CUresult handle_cuMemFree_v2(struct call *call, const Vgpu__CuMemFreeV2Request *request,
	Vgpu__CuMemFreeV2Reply *reply)
{
	return device_memory_free(call, request->dptr);
}

CUresult handle_cuMemGetInfo_v2(struct call *call,
	const Vgpu__CuMemGetInfoV2Request *request, Vgpu__CuMemGetInfoV2Reply *reply)
{
	size_t free_size = 0, total = 0;
	CUresult result;

	result = device_memory_info(call, &free_size, &total);
	reply->free = free_size;
	reply->total = total;
	return result;
}
