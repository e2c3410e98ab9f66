/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on events
 *
 * A record may have a number, which the device writes to a word of the guest
 * (ring-layout.h) to show that the record is complete. The word is written before the
 * driver's own record, because a stream that waited for the event may be complete right
 * after it. Only for an event with timing it is written after the record, so that the
 * write does not add to the measured time.
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/uses.h"
#include "worker/wait/debts.h"
#include "worker/wait/words.h"

CUresult handle_cuEventCreate(struct call *call,
	const Vgpu__CuEventCreateRequest *request, Vgpu__CuEventCreateReply *reply)
{
	const struct event kept = {
		.has_timing = !(request->flags & CU_EVENT_DISABLE_TIMING),
	};
	CUresult result;
	CUevent event;

	result = call->driver->cuEventCreate(&event, request->flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add_at(
		call, VGPU_HANDLE_EVENT, request->event, event, &kept.object);
	if (call_left_over(result))
		call->driver->cuEventDestroy_v2(event);
	return result;
}

CUresult handle_cuEventDestroy_v2(struct call *call,
	const Vgpu__CuEventDestroyV2Request *request, Vgpu__CuEventDestroyV2Reply *reply)
{
	CUresult result;
	void *event;

	result = object_take(call, VGPU_HANDLE_EVENT, request->h_event, &event);
	return result == CUDA_SUCCESS ? use_destroy(call, VGPU_HANDLE_EVENT, event)
				      : result;
}

/* The arguments of both calls. */
struct event_record {
	uint64_t event;
	uint64_t stream;
	unsigned int flags;
	uint64_t number;
};

static CUresult record_in_driver(struct call *call, const struct event_record *record,
	CUevent event, CUstream stream)
{
	if (!record->flags)
		return call->driver->cuEventRecord(event, stream);
	if (!call->driver->cuEventRecordWithFlags)
		return CUDA_ERROR_NOT_SUPPORTED;
	return call->driver->cuEventRecordWithFlags(event, stream, record->flags);
}

static CUresult record_with_word(struct call *call, const struct event_record *record,
	const struct event *event, CUstream stream)
{
	CUresult result = CUDA_SUCCESS, written;

	if (event->has_timing)
		result = record_in_driver(call, record, event->object.driver, stream);
	if (result != CUDA_SUCCESS) {
		word_write_record_now(call->session, record->number);
		return result;
	}
	written = word_write_record(call->session, stream, record->number);
	debt_owe(call->session, call->stream);
	if (!event->has_timing)
		result = record_in_driver(call, record, event->object.driver, stream);
	return result == CUDA_SUCCESS ? written : result;
}

static CUresult record(struct call *call, const struct event_record *record)
{
	struct object *event;
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, record->stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = object_find(call, VGPU_HANDLE_EVENT, record->event, &event);
	if (result == CUDA_SUCCESS && record->number)
		return record_with_word(
			call, record, (const struct event *)event, stream);
	if (result == CUDA_SUCCESS)
		return record_in_driver(call, record, event->driver, stream);
	/* No stream will execute the record, so its word is written at once. */
	if (record->number)
		word_write_record_now(call->session, record->number);
	return result;
}

CUresult handle_cuEventRecord(struct call *call,
	const Vgpu__CuEventRecordRequest *request, Vgpu__CuEventRecordReply *reply)
{
	const struct event_record arguments = {
		.event = request->h_event,
		.stream = request->h_stream,
		.number = request->record,
	};

	return record(call, &arguments);
}

CUresult handle_cuEventRecordWithFlags(struct call *call,
	const Vgpu__CuEventRecordWithFlagsRequest *request,
	Vgpu__CuEventRecordWithFlagsReply *reply)
{
	const struct event_record arguments = {
		.event = request->h_event,
		.stream = request->h_stream,
		.flags = request->flags,
		.number = request->record,
	};

	return record(call, &arguments);
}
