/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures of streams
 */

#include <stdint.h>

#include "vgpu/g-driver.pb-c.h"

#include "process/call.h"
#include "process/stream.h"
#include "wait/capture.h"

CUresult shim_capture_check_memory(void)
{
	Vgpu__VgpuCaptureCheckRequest request = VGPU__VGPU_CAPTURE_CHECK_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuCaptureCheck);

	if (!shim_channel_has_capture())
		return CUDA_SUCCESS;
	return shim_call_sync(
		&call, &request.base, &vgpu__vgpu_capture_check_reply__descriptor, NULL);
}

/* A stream that is not valid has no capture: the copy itself reports it. */
static CUstreamCaptureStatus status_of(CUstream stream)
{
	Vgpu__CuStreamIsCapturingRequest request =
		VGPU__CU_STREAM_IS_CAPTURING_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamIsCapturing);
	const ProtobufCMessage *reply;

	if (!shim_channel_has_capture() || shim_call_check(call.id) != CUDA_SUCCESS ||
		shim_stream_check(stream) != CUDA_SUCCESS)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	request.h_stream = (uint64_t)(uintptr_t)stream;
	if (shim_call_sync(&call, &request.base,
		    &vgpu__cu_stream_is_capturing_reply__descriptor,
		    &reply) != CUDA_SUCCESS)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return (CUstreamCaptureStatus)((const Vgpu__CuStreamIsCapturingReply *)reply)
		->capture_status;
}

bool shim_capture_is_active(CUstream stream)
{
	return status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static shim_capture_copier copier;

void shim_capture_set_copier(shim_capture_copier function)
{
	copier = function;
}

bool shim_capture_copy(CUstream stream, bool is_pageable, bool waits,
	const CUDA_MEMCPY3D *copy, CUresult *resultp)
{
	CUstreamCaptureStatus status;

	if (!is_pageable && !waits)
		return false;
	status = status_of(stream);
	if (status == CU_STREAM_CAPTURE_STATUS_NONE)
		return false;
	if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		*resultp = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (waits)
		/* A wait has the same error, and the same effect on the capture. */
		*resultp = shim_stream_synchronize(stream);
	else
		*resultp = copier(stream, copy);
	/* An invalid address may still be waited for: the copy itself reports it. */
	return *resultp != CUDA_SUCCESS || !waits;
}
