/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* From frames to driver calls: small */

#include "vgpu/checked.h"
#include "vgpu/g-driver.h"
#include "vgpu/g-driver.pb-c.h"
#include "g-handlers.h"
#include "worker/handle/generated.h"

/* vgpuHello: Return the version of the host. */

int dispatch_vgpuHello(struct call *call)
{
	Vgpu__VgpuHelloReply reply = VGPU__VGPU_HELLO_REPLY__INIT;
	const Vgpu__VgpuHelloRequest *request;

	request = (const Vgpu__VgpuHelloRequest *)call_unpack(call,
		&vgpu__vgpu_hello_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_vgpuHello(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}

/* cuStreamGetPriority: Return the priority of a stream. */

static CUresult handle_cuStreamGetPriority(struct call *call,
	const Vgpu__CuStreamGetPriorityRequest *request,
	Vgpu__CuStreamGetPriorityReply *reply)
{
	void *hStream;
	int priority = 0;
	CUresult r;

	if (!call->driver->cuStreamGetPriority)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &hStream);
	if (r != CUDA_SUCCESS)
		return r;
	r = call->driver->cuStreamGetPriority(hStream, &priority);
	reply->priority = priority;
	return r;
}

int dispatch_cuStreamGetPriority(struct call *call)
{
	Vgpu__CuStreamGetPriorityReply reply = VGPU__CU_STREAM_GET_PRIORITY_REPLY__INIT;
	const Vgpu__CuStreamGetPriorityRequest *request;

	request = (const Vgpu__CuStreamGetPriorityRequest *)call_unpack(call,
		&vgpu__cu_stream_get_priority_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuStreamGetPriority(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}

/* cuMemsetD16Async: Fill device memory with 16-bit words in stream order. */

static CUresult handle_cuMemsetD16Async(struct call *call,
	const Vgpu__CuMemsetD16AsyncRequest *request, Vgpu__CuMemsetD16AsyncReply *reply)
{
	void *hStream;
	uint64_t n_bytes;
	CUresult r;

	if (!call->driver->cuMemsetD16Async)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &hStream);
	if (r != CUDA_SUCCESS)
		return r;
	if (!vgpu_mul_u64(request->n, 2, &n_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	r = access_check(call, request->dst_device, n_bytes);
	if (r != CUDA_SUCCESS)
		return r;
	return call->driver->cuMemsetD16Async(request->dst_device, request->us,
		request->n, hStream);
}

int dispatch_cuMemsetD16Async(struct call *call)
{
	Vgpu__CuMemsetD16AsyncReply reply = VGPU__CU_MEMSET_D16_ASYNC_REPLY__INIT;
	const Vgpu__CuMemsetD16AsyncRequest *request;

	request = (const Vgpu__CuMemsetD16AsyncRequest *)call_unpack(call,
		&vgpu__cu_memset_d16_async_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuMemsetD16Async(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}

/* cuMemAlloc_v2: Allocate linear device memory. */

int dispatch_cuMemAlloc_v2(struct call *call)
{
	Vgpu__CuMemAllocV2Reply reply = VGPU__CU_MEM_ALLOC_V2_REPLY__INIT;
	const Vgpu__CuMemAllocV2Request *request;

	request = (const Vgpu__CuMemAllocV2Request *)call_unpack(call,
		&vgpu__cu_mem_alloc_v2_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuMemAlloc_v2(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}

/* cuEventDestroy: Destroy an event. */

static CUresult handle_cuEventDestroy(struct call *call,
	const Vgpu__CuEventDestroyRequest *request, Vgpu__CuEventDestroyReply *reply)
{
	void *hEvent;
	CUresult r;

	if (!call->driver->cuEventDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = object_take(call, VGPU_HANDLE_EVENT, request->h_event, &hEvent);
	if (r != CUDA_SUCCESS)
		return r;
	return call->driver->cuEventDestroy(hEvent);
}

int dispatch_cuEventDestroy(struct call *call)
{
	Vgpu__CuEventDestroyReply reply = VGPU__CU_EVENT_DESTROY_REPLY__INIT;
	const Vgpu__CuEventDestroyRequest *request;

	request = (const Vgpu__CuEventDestroyRequest *)call_unpack(call,
		&vgpu__cu_event_destroy_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuEventDestroy(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}

/* cuEventQuery: Return whether an event has happened. */

static CUresult handle_cuEventQuery(struct call *call,
	const Vgpu__CuEventQueryRequest *request, Vgpu__CuEventQueryReply *reply)
{
	void *hEvent;
	CUresult r;

	if (!call->driver->cuEventQuery)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = object_get(call, VGPU_HANDLE_EVENT, request->h_event, false, &hEvent);
	if (r != CUDA_SUCCESS)
		return r;
	return call->driver->cuEventQuery(hEvent);
}

int dispatch_cuEventQuery(struct call *call)
{
	Vgpu__CuEventQueryReply reply = VGPU__CU_EVENT_QUERY_REPLY__INIT;
	const Vgpu__CuEventQueryRequest *request;

	request = (const Vgpu__CuEventQueryRequest *)call_unpack(call,
		&vgpu__cu_event_query_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuEventQuery(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}

/* cuFind: Find a thing by name and change how it counts. */

int dispatch_cuFind(struct call *call)
{
	Vgpu__CuFindReply reply = VGPU__CU_FIND_REPLY__INIT;
	const Vgpu__CuFindRequest *request;

	request = (const Vgpu__CuFindRequest *)call_unpack(call,
		&vgpu__cu_find_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuFind(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}
