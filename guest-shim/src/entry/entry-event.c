/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: events, as far as they are not generated
 */

#include "vgpu/g-driver.pb-c.h"

#include "entry/pool-block.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "wait/event.h"
#include "wait/record.h"
#include "wire/channel.h"

#define EVENT_FLAGS                                                                      \
	(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

CUresult shim_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventCreate);
	CUresult result = shim_call_check(call.id);
	CUevent event;

	if (result != CUDA_SUCCESS)
		return result;
	if (!phEvent || Flags & ~(unsigned int)EVENT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	/* An event for other processes needs a handle to give them, and no timing. */
	if (Flags & CU_EVENT_INTERPROCESS)
		return Flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED
						       : CUDA_ERROR_INVALID_VALUE;
	event = shim_event_new(shim_thread_context(shim_thread_get()), Flags);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	request.flags = Flags;
	request.event = (uint64_t)(uintptr_t)event;
	result = shim_call_async(&call, &request.base, NULL);
	if (result == CUDA_SUCCESS)
		*phEvent = event;
	else
		shim_event_free(event);
	return result;
}

CUresult shim_cuEventDestroy_v2(CUevent hEvent)
{
	Vgpu__CuEventDestroyV2Request request = VGPU__CU_EVENT_DESTROY_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventDestroy_v2);
	CUresult result = shim_call_check(call.id);

	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_event_free(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	request.h_event = (uint64_t)(uintptr_t)hEvent;
	return shim_call_async(&call, &request.base, NULL);
}

/* Sends a record of an event, with the number for its word, if it has one. */
static CUresult send_record(struct shim_call *call, const ProtobufCMessage *request,
	struct shim_event *event, CUstream stream, uint64_t *wordp)
{
	uint64_t record = shim_event_record_begin(event);
	CUresult result;

	*wordp = shim_record_has_word(record) ? record : SHIM_RECORD_NONE;
	result = shim_call_async(call, request, stream);
	if (result == CUDA_SUCCESS)
		shim_event_record_done(event, record);
	else
		shim_record_give_unused(record);
	return result;
}

CUresult shim_cuEventRecord(CUevent hEvent, CUstream hStream)
{
	Vgpu__CuEventRecordRequest request = VGPU__CU_EVENT_RECORD_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventRecord);
	struct shim_event *event = shim_event_find(hEvent);

	if (!event)
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	request.h_event = (uint64_t)(uintptr_t)hEvent;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	return send_record(&call, &request.base, event, hStream, &request.record);
}

/* The only flag, of records and of waits, is one for captures, which the host checks. */
static bool has_legal_flags(unsigned int flags)
{
	return !flags || shim_channel_has_capture();
}

CUresult shim_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	Vgpu__CuEventRecordWithFlagsRequest request =
		VGPU__CU_EVENT_RECORD_WITH_FLAGS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventRecordWithFlags);
	struct shim_event *event = shim_event_find(hEvent);

	if (!event)
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	if (!has_legal_flags(flags))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.h_event = (uint64_t)(uintptr_t)hEvent;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	request.flags = flags;
	/* In a capture that makes a node of a graph. */
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		shim_event_note_graph(hEvent);
	return send_record(&call, &request.base, event, hStream, &request.record);
}

CUresult shim_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamWaitEvent);

	if (!has_legal_flags(Flags))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	return shim_remote_cuStreamWaitEvent(hStream, hEvent, Flags);
}

CUresult shim_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	CUresult result;

	result = shim_remote_cuCtxRecordEvent(hCtx, hEvent);
	if (result == CUDA_SUCCESS)
		shim_event_note_elsewhere(hEvent);
	return result;
}

CUresult shim_cuEventQuery(CUevent hEvent)
{
	return shim_event_query(hEvent);
}

CUresult shim_cuEventSynchronize(CUevent hEvent)
{
	CUresult result = shim_event_synchronize(hEvent);

	shim_pools_note_wait(result);
	return result;
}
