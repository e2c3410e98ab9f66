/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: events, as far as they are not generated
 */

#include "vgpu/g-driver.pb-c.h"

#include "entry/event-order.h"
#include "entry/event-share.h"
#include "entry/pool-block.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "wait/event.h"
#include "wait/record.h"
#include "wire/channel.h"

#define EVENT_FLAGS                                                                      \
	(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/* Return: what an event shares with other processes, or NULL. */
static struct shim_event_share *share_of(CUevent handle)
{
	const struct shim_event *event = shim_event_find(handle);

	return event ? event->share : NULL;
}

/* Takes ownership of the state that is shared, or NULL. */
static CUresult create(
	CUevent *eventp, unsigned int flags, struct shim_event_share *share)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventCreate);
	CUevent event;
	CUresult result;

	event = shim_event_new(shim_thread_context(shim_thread_get()), flags, share);
	if (!event) {
		shim_event_share_free(share);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* The host's event of an interprocess one is never recorded. */
	request.flags = flags & ~(unsigned int)CU_EVENT_INTERPROCESS;
	request.event = (uint64_t)(uintptr_t)event;
	result = shim_call_async(&call, &request.base, NULL);
	if (result == CUDA_SUCCESS) {
		*eventp = event;
	} else {
		shim_event_free(event);
		shim_event_share_free(share);
	}
	return result;
}

CUresult shim_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	CUresult result = shim_call_check(VGPU_CALL_cuEventCreate);
	struct shim_event_share *share = NULL;

	if (result != CUDA_SUCCESS)
		return result;
	if (!phEvent || Flags & ~(unsigned int)EVENT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS) {
		if (!(Flags & CU_EVENT_DISABLE_TIMING))
			return CUDA_ERROR_INVALID_VALUE;
		result = shim_event_share_new(&share);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return create(phEvent, Flags, share);
}

CUresult shim_cuEventDestroy_v2(CUevent hEvent)
{
	Vgpu__CuEventDestroyV2Request request = VGPU__CU_EVENT_DESTROY_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventDestroy_v2);
	struct shim_event_share *share = share_of(hEvent);
	CUresult result = shim_call_check(call.id);

	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_event_free(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	shim_event_share_free(share);
	request.h_event = (uint64_t)(uintptr_t)hEvent;
	return shim_call_async(&call, &request.base, NULL);
}

/* Sends a record of an event, with the number for its word, if it has one. */
static CUresult send_record(struct shim_call *call, const ProtobufCMessage *request,
	struct shim_event *event, CUstream stream, uint64_t *wordp)
{
	uint64_t record = shim_event_record_begin(event);
	struct shim_event_order order;
	CUresult result;

	*wordp = shim_record_has_word(record) ? record : SHIM_RECORD_NONE;
	shim_event_order_begin_record(&order, event, stream);
	result = shim_call_async(call, request, stream);
	shim_event_order_end_record(&order, result);
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
	if (event->share)
		return shim_event_share_record(event->share, hStream);
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
	if (event->share)
		return shim_event_share_record(event->share, hStream);
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
	struct shim_event_share *share = share_of(hEvent);
	struct shim_event_order order;
	CUresult result;

	if (!has_legal_flags(Flags))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (share)
		return shim_event_share_wait(share, hStream);
	shim_event_order_begin_wait(&order, hEvent, hStream);
	result = shim_remote_cuStreamWaitEvent(hStream, hEvent, Flags);
	shim_event_order_end_wait(&order, result);
	return result;
}

CUresult shim_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct shim_event *event = shim_event_find(hEvent);
	CUresult result;

	if (share_of(hEvent))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (event)
		shim_event_forget_order(event);
	result = shim_remote_cuCtxRecordEvent(hCtx, hEvent);
	if (result == CUDA_SUCCESS)
		shim_event_note_elsewhere(hEvent);
	return result;
}

CUresult shim_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	return share_of(hEvent) ? CUDA_ERROR_NOT_SUPPORTED
				: shim_remote_cuCtxWaitEvent(hCtx, hEvent);
}

CUresult shim_cuEventQuery(CUevent hEvent)
{
	struct shim_event_share *share = share_of(hEvent);

	return share ? shim_event_share_query(share) : shim_event_query(hEvent);
}

CUresult shim_cuEventSynchronize(CUevent hEvent)
{
	struct shim_event_share *share = share_of(hEvent);
	CUresult result = share ? shim_event_share_synchronize(share)
				: shim_event_synchronize(hEvent);

	shim_pools_note_wait(result);
	return result;
}

/*
 * Other processes
 */

CUresult shim_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct shim_event_share *share = share_of(event);

	SHIM_CHECK_READY();
	if (!shim_event_exists(event))
		return CUDA_ERROR_INVALID_HANDLE;
	return pHandle && share ? shim_event_share_export(share, pHandle)
				: CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct shim_event_share *share;
	CUresult result;

	SHIM_CHECK_READY();
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_event_share_import(&handle, &share);
	return result == CUDA_SUCCESS
		       ? create(phEvent, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING,
				 share)
		       : result;
}
