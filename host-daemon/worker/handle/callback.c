/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on callbacks
 */

#include "g-handlers.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/session.h"
#include "worker/handle/callback.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/capture.h"
#include "worker/stream/functions.h"

static bool is_captured(struct call *call, CUstream stream)
{
	CUstreamCaptureStatus status;

	return session_is_capturing(call->session) && call->driver->cuStreamIsCapturing &&
	       call->driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A captured function becomes a host node. */
static CUresult capture(struct call *call, CUstream stream, uint64_t cookie)
{
	struct capture_info info;
	CUresult result;
	void *token;

	if (!call->driver->cuLaunchHostFunc)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = function_add(call->session, cookie, &token);
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuLaunchHostFunc(stream, function_run, token);
	if (result != CUDA_SUCCESS) {
		function_withdraw(call->session, token);
		return result;
	}
	/* If the capture was spoilt meanwhile, the function stays until the session
	 * ends. */
	if (capture_ask(call, stream, &info) == CUDA_SUCCESS && info.graph)
		function_tie(call->session, info.graph, token);
	return CUDA_SUCCESS;
}

static CUresult submit(
	struct call *call, uint64_t handle, uint64_t cookie, bool is_host_function)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, handle, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (is_captured(call, stream) && is_host_function)
		return capture(call, stream, cookie);
	return callbacks_submit(
		call->session, stream, call->stream->context, cookie, is_host_function);
}

CUresult handle_cuLaunchHostFunc(struct call *call,
	const Vgpu__CuLaunchHostFuncRequest *request, Vgpu__CuLaunchHostFuncReply *reply)
{
	return submit(call, request->h_stream, request->cookie, true);
}

CUresult handle_cuStreamAddCallback(struct call *call,
	const Vgpu__CuStreamAddCallbackRequest *request,
	Vgpu__CuStreamAddCallbackReply *reply)
{
	return submit(call, request->h_stream, request->cookie, false);
}

/* For messages with a cookie. */
#define GIVE_BACK(_call, _type, _descriptor)                                             \
	do {                                                                             \
		const _type *request_ =                                                  \
			(const _type *)call_unpack(_call, &(_descriptor));               \
		if (request_)                                                            \
			callbacks_give_back((_call)->session, request_->cookie);         \
	} while (0)

void callback_give_back(struct call *call)
{
	switch (call->frame->call) {
	case VGPU_CALL_cuLaunchHostFunc:
		GIVE_BACK(call, Vgpu__CuLaunchHostFuncRequest,
			vgpu__cu_launch_host_func_request__descriptor);
		break;
	case VGPU_CALL_cuStreamAddCallback:
		GIVE_BACK(call, Vgpu__CuStreamAddCallbackRequest,
			vgpu__cu_stream_add_callback_request__descriptor);
		break;
	default:
		break;
	}
}

CUresult handle_vgpuCallbackNext(struct call *call,
	const Vgpu__VgpuCallbackNextRequest *request, Vgpu__VgpuCallbackNextReply *reply)
{
	struct callback_due due;
	CUresult result;

	result = callbacks_next(call->session, &due);
	if (result != CUDA_SUCCESS)
		return result;
	reply->token = due.token;
	reply->cookie = due.cookie;
	reply->status = due.status;
	reply->is_void = due.is_void;
	return CUDA_SUCCESS;
}

CUresult handle_vgpuCallbackDone(struct call *call,
	const Vgpu__VgpuCallbackDoneRequest *request, Vgpu__VgpuCallbackDoneReply *reply)
{
	return callbacks_done(call->session, request->token);
}
