/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the guest's libcuda.so.1: small */

#include "g-stubs.h"

CUresult shim_cuNumberOf(const char *name, size_t *number)
{
	return shim_cuNumberOf_on(name, number, NULL);
}

CUresult shim_cuNumberOf_ptds(const char *name, size_t *number)
{
	return shim_cuNumberOf_on(name, number, CU_STREAM_PER_THREAD);
}

CUresult shim_cuNumber(const char *name, size_t *number)
{
	return shim_cuNumberOf(name, number);
}

/* Return the priority of a stream. */
CUresult shim_cuStreamGetPriority(CUstream hStream, int *priority)
{
	Vgpu__CuStreamGetPriorityRequest request =
		VGPU__CU_STREAM_GET_PRIORITY_REQUEST__INIT;
	const Vgpu__CuStreamGetPriorityReply *reply;
	const ProtobufCMessage *message;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamGetPriority);
	CUresult result;

	if (!priority)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_stream_get_priority_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuStreamGetPriorityReply *)message;
	*priority = reply->priority;
	return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetPriority_ptsz(CUstream hStream, int *priority)
{
	return shim_cuStreamGetPriority(per_thread(hStream), priority);
}

/* Fill device memory with 16-bit words in stream order. */
CUresult shim_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream)
{
	Vgpu__CuMemsetD16AsyncRequest request = VGPU__CU_MEMSET_D16_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemsetD16Async);
	uint64_t n_bytes;

	if (dstDevice % 2 || !vgpu_mul_u64(N, 2, &n_bytes) ||
		!shim_range_holds(dstDevice, n_bytes, &call.wants_result))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.dst_device = dstDevice;
	request.us = us;
	request.n = N;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	return shim_call_async(&call, &request.base, hStream);
}

CUresult shim_cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream)
{
	return shim_cuMemsetD16Async(dstDevice, us, N, per_thread(hStream));
}

CUresult shim_cuMemAlloc(unsigned int *dptr, unsigned int bytesize)
{
	return shim_call_refused(VGPU_CALL_cuMemAlloc,
		NULL);
}

/* Allocate linear device memory. */
CUresult shim_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	Vgpu__CuMemAllocV2Request request = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;
	const Vgpu__CuMemAllocV2Reply *reply;
	const ProtobufCMessage *message;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemAlloc_v2);
	CUresult result;

	if (!dptr)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.bytesize = bytesize;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_alloc_v2_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemAllocV2Reply *)message;
	*dptr = reply->dptr;
	return CUDA_SUCCESS;
}

/* Return whether an event has happened. */
CUresult shim_remote_cuEventQuery(CUevent hEvent)
{
	Vgpu__CuEventQueryRequest request = VGPU__CU_EVENT_QUERY_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventQuery);

	if (!shim_event_exists(hEvent))
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	request.h_event = (uint64_t)(uintptr_t)hEvent;
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_event_query_reply__descriptor, NULL);
}

/* Find a thing by name and change how it counts. */
CUresult shim_cuFind(size_t *found, const char *name, int *count)
{
	Vgpu__CuFindRequest request = VGPU__CU_FIND_REQUEST__INIT;
	const Vgpu__CuFindReply *reply;
	const ProtobufCMessage *message;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuFind);
	CUresult result;

	if (!name || strlen(name) > 100 || !count)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.name = (char *)name;
	request.count = *count;
	shim_function_forget_launches();
	result = shim_call_sync(&call, &request.base, &vgpu__cu_find_reply__descriptor,
		&message);
	shim_memo_forget(VGPU_REMEMBERS_SETTING);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuFindReply *)message;
	if (found)
		*found = reply->found;
	*count = reply->count;
	return CUDA_SUCCESS;
}
