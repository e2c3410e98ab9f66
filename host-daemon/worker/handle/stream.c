/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on streams
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"
#include "worker/stream/capture.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"
#include "worker/wait/meter.h"
#include "worker/wait/words.h"

CUresult handle_cuStreamCreateWithPriority(struct call *call,
	const Vgpu__CuStreamCreateWithPriorityRequest *request,
	Vgpu__CuStreamCreateWithPriorityReply *reply)
{
	const struct vgpu_driver *driver = call->driver;
	CUresult result;
	CUstream stream;

	if (driver->cuStreamCreateWithPriority)
		result = driver->cuStreamCreateWithPriority(
			&stream, request->flags, request->priority);
	else
		result = driver->cuStreamCreate(&stream, request->flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add(call, VGPU_HANDLE_STREAM, stream, &reply->ph_stream);
	if (call_left_over(result))
		driver->cuStreamDestroy_v2(stream);
	return result;
}

CUresult handle_cuStreamDestroy_v2(struct call *call,
	const Vgpu__CuStreamDestroyV2Request *request,
	Vgpu__CuStreamDestroyV2Reply *reply)
{
	struct object *object;
	CUresult result;
	void *stream;

	/* The special streams cannot be destroyed. */
	if (vgpu_handle_kind(request->h_stream) != VGPU_HANDLE_STREAM)
		return CUDA_ERROR_INVALID_HANDLE;
	result = object_find(call, VGPU_HANDLE_STREAM, request->h_stream, &object);
	if (result != CUDA_SUCCESS)
		return result;
	capture_remove(call->session, (struct stream *)object, false);
	result = object_take(call, VGPU_HANDLE_STREAM, request->h_stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	/* The generation is cleared by now: a lane that finishes a call at the same time
	 * adds no mark or debt, or it is removed here. */
	marks_forget(call->session, (struct stream *)object);
	debts_forget(call->session, (struct stream *)object);
	meter_leave_stream(call->session, call->runner, (struct stream *)object);
	return use_destroy(call, VGPU_HANDLE_STREAM, stream);
}

CUresult handle_cuStreamGetCtx(struct call *call,
	const Vgpu__CuStreamGetCtxRequest *request, Vgpu__CuStreamGetCtxReply *reply)
{
	const struct context *context;
	struct stream *stream;
	CUresult result;

	result = object_find_stream(call, request->h_stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	/* Another thread may have just destroyed the context of a per-thread default
	 * stream. */
	context = stream->green ? stream->green
				: __atomic_load_n(&stream->context, __ATOMIC_RELAXED);
	if (!context)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	reply->pctx = object_handle(&call->session->contexts.table, &context->object);
	return CUDA_SUCCESS;
}

/* Attributes of streams with scalar values. Devices report no access-policy windows, so
 * only an empty one is valid. */
static bool is_attribute(int32_t attribute)
{
	switch (attribute) {
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return true;
	default:
		return false;
	}
}

CUresult handle_cuStreamGetAttribute(struct call *call,
	const Vgpu__CuStreamGetAttributeRequest *request,
	Vgpu__CuStreamGetAttributeReply *reply)
{
	CUstreamAttrValue value = {};
	CUresult result;
	void *stream;

	if (!call->driver->cuStreamGetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!is_attribute(request->attr))
		return CUDA_ERROR_INVALID_VALUE;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result =
			call->driver->cuStreamGetAttribute(stream, request->attr, &value);
	memcpy(&reply->number, &value, sizeof(reply->number));
	return result;
}

CUresult handle_cuStreamSetAttribute(struct call *call,
	const Vgpu__CuStreamSetAttributeRequest *request,
	Vgpu__CuStreamSetAttributeReply *reply)
{
	CUstreamAttrValue value = {};
	CUresult result;
	void *stream;

	if (!call->driver->cuStreamSetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!is_attribute(request->attr))
		return CUDA_ERROR_INVALID_VALUE;
	if (request->attr != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
		memcpy(&value, &request->number, sizeof(request->number));
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuStreamSetAttribute(stream, request->attr, &value);
}

CUresult handle_cuStreamSynchronize(struct call *call,
	const Vgpu__CuStreamSynchronizeRequest *request,
	Vgpu__CuStreamSynchronizeReply *reply)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	return result == CUDA_SUCCESS ? call->driver->cuStreamSynchronize(stream)
				      : result;
}

CUresult handle_cuStreamQuery(struct call *call,
	const Vgpu__CuStreamQueryRequest *request, Vgpu__CuStreamQueryReply *reply)
{
	struct stream *stream;
	CUresult result;

	result = object_find_stream(call, request->h_stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	/* Programs poll: after this mark the guest finds the answer in the stream's
	 * word. */
	if (call->runner->is_dispatcher) {
		mark_cover(call->session, stream, request->target);
		mark_stream(call->session, call->runner, stream);
		result = context_enter(call->session, call->runner, call->current);
	}
	return result == CUDA_SUCCESS ? call->driver->cuStreamQuery(stream->object.driver)
				      : result;
}

CUresult handle_vgpuStreamMark(struct call *call,
	const Vgpu__VgpuStreamMarkRequest *request, Vgpu__VgpuStreamMarkReply *reply)
{
	struct stream *stream;
	CUresult result;

	result = object_find_stream(call, request->stream, &stream);
	if (result == CUDA_SUCCESS)
		result = context_enter(call->session, call->runner, stream->context);
	if (result != CUDA_SUCCESS)
		return result;
	debt_owe(call->session, stream);
	return word_write(
		call->session, stream->object.driver, request->word, request->value);
}
