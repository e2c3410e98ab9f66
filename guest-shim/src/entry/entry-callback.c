/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: callbacks
 */

#include "vgpu/g-driver.pb-c.h"

#include "entry/callback.h"
#include "process/call.h"
#include "process/callback.h"
#include "wait/capture.h"

/* A driver that lacks the call reports so at the first; after that no reply is needed. */
static CUresult send(struct shim_call *call, const ProtobufCMessage *request,
	CUstream stream, uint64_t cookie, bool *is_known)
{
	CUresult result;

	call->wants_result = !__atomic_load_n(is_known, __ATOMIC_RELAXED);
	result = shim_call_async(call, request, stream);
	if (result != CUDA_SUCCESS)
		shim_callback_withdraw(cookie);
	else if (call->wants_result)
		__atomic_store_n(is_known, true, __ATOMIC_RELAXED);
	return result;
}

static CUresult launch(const struct shim_callback *callback)
{
	Vgpu__CuLaunchHostFuncRequest request = VGPU__CU_LAUNCH_HOST_FUNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLaunchHostFunc);
	static bool is_known;
	CUresult result;

	result = shim_callback_add(callback, &request.cookie);
	if (result != CUDA_SUCCESS)
		return result;
	request.h_stream = (uint64_t)(uintptr_t)callback->stream;
	return send(&call, &request.base, callback->stream, request.cookie, &is_known);
}

CUresult shim_callback_launch(
	CUstream stream, CUhostFn function, CUhostFn released, void *data)
{
	const struct shim_callback callback = {
		.released = released,
		.host_function = function,
		.data = data,
		.stream = stream,
	};
	CUresult result = launch(&callback);

	if (result != CUDA_SUCCESS)
		released(data);
	return result;
}

CUresult shim_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLaunchHostFunc);
	struct shim_callback callback = {
		.host_function = fn,
		.data = userData,
		.stream = hStream,
	};
	CUresult result;

	result = shim_call_error(&call, fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	if (result != CUDA_SUCCESS)
		return result;
	if (shim_capture_is_active(hStream))
		callback.kind = SHIM_CALLBACK_OF_GRAPH;
	return launch(&callback);
}

CUresult shim_cuStreamAddCallback(
	CUstream hStream, CUstreamCallback function, void *userData, unsigned int flags)
{
	Vgpu__CuStreamAddCallbackRequest request =
		VGPU__CU_STREAM_ADD_CALLBACK_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamAddCallback);
	const struct shim_callback callback = {
		.stream_callback = function,
		.data = userData,
		.stream = hStream,
	};
	static bool is_known;
	CUresult result;

	result = shim_call_error(
		&call, function && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_callback_add(&callback, &request.cookie);
	if (result != CUDA_SUCCESS)
		return result;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	return send(&call, &request.base, hStream, request.cookie, &is_known);
}
