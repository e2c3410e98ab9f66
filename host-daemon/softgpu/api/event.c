/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events
 *
 * An event refers to the mark of its latest record. Waiting for an event means waiting
 * for the mark of that moment, whatever is recorded later.
 */

#include "api/capture.h"

#define EVENT_FLAGS                                                                      \
	(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static void event_end(struct object *object)
{
	object_leave(object);
	capture_end_event((CUevent)object);
}

static void event_release(struct object *object)
{
	CUevent event = (CUevent)object;

	sched_mark_unref(event->mark);
	pthread_mutex_destroy(&event->lock);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	API_CALL;
	CUcontext context;
	CUevent event;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!phEvent || Flags & ~(unsigned int)EVENT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	event = object_new(OBJECT_EVENT, sizeof(*event), context);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = Flags;
	pthread_mutex_init(&event->lock, NULL);
	event->object.end = event_end;
	event->object.release = event_release;
	result = context_add(&event->object);
	if (result)
		object_unref(&event->object);
	else
		*phEvent = event;
	return result;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(hEvent, OBJECT_EVENT) || !context_remove(&hEvent->object))
		return CUDA_ERROR_INVALID_HANDLE;
	object_end(&hEvent->object);
	return CUDA_SUCCESS;
}

/* Return: 0, or what is wrong with the handle or its context. */
static CUresult event_check(CUevent event)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(event, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	return sched_context_fault(&event->object.context->sched);
}

/* The fault of the context, also where the event was destroyed since it was found. */
static CUresult event_fault(CUevent event)
{
	CUcontext context = event->object.context;
	CUresult result = sched_context_fault(&context->sched);

	/* A context that was reset has no fault any more, but has lost its events. */
	if (!result && event->object.generation != context_generation(context))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return result;
}

/* For what an event cannot be asked when its record is captured. */
static CUresult event_check_state(CUevent event)
{
	CUresult result;

	result = event_check(event);
	if (!result)
		result = capture_refuse_unsafe();
	return result ? result : capture_refuse_event(event);
}

struct sched_mark *event_mark(CUevent event)
{
	struct sched_mark *mark = NULL;

	pthread_mutex_lock(&event->lock);
	if (event->mark)
		mark = sched_mark_ref(event->mark);
	pthread_mutex_unlock(&event->lock);
	return mark;
}

CUresult event_check_untimed(CUevent event, struct sched_stream *stream)
{
	if (!object_hold(event, OBJECT_EVENT) ||
		event->object.context != stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	return event->flags & CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS
						      : CUDA_ERROR_INVALID_VALUE;
}

void event_set_mark(CUevent event, struct sched_mark *mark)
{
	struct sched_mark *before;

	pthread_mutex_lock(&event->lock);
	before = event->mark;
	event->mark = sched_mark_ref(mark);
	pthread_mutex_unlock(&event->lock);
	sched_mark_unref(before);
}

CUresult event_record(CUevent event, struct sched_stream *stream)
{
	struct sched_op op = { .kind = SCHED_MARK };
	struct sched_mark *mark;
	CUresult result;

	if (capture_record(stream, event, CU_EVENT_RECORD_DEFAULT, &result))
		return result;
	mark = sched_mark_new(&softgpu_device.sched);
	if (!mark)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.mark = sched_mark_ref(mark);
	result = sched_submit(stream, &op, false);
	/* Not earlier: if another thread makes this stream wait for the event, it would
	 * wait for work submitted after the wait. */
	if (!result) {
		capture_forget_event(event);
		event_set_mark(event, mark);
	}
	sched_mark_unref(mark);
	return result;
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_get_work(hStream, &stream);
	if (result)
		return result;
	if (!object_hold(hEvent, OBJECT_EVENT) ||
		hEvent->object.context != stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_record(stream, hEvent, flags, &result))
		return result;
	/* The flag is for captures. */
	return flags ? CUDA_ERROR_INVALID_VALUE : event_record(hEvent, stream);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventQuery(CUevent hEvent)
{
	API_CALL;
	struct sched_mark *mark;
	CUresult result;

	result = event_check_state(hEvent);
	if (result)
		return result;
	mark = event_mark(hEvent);
	if (mark && !sched_mark_is_done(mark))
		result = CUDA_ERROR_NOT_READY;
	sched_mark_unref(mark);
	/* Looked at last: what a fault discards is done too. */
	return result ? result : event_fault(hEvent);
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	API_CALL;
	struct sched_mark *mark;
	CUresult result;

	result = event_check_state(hEvent);
	if (result)
		return result;
	mark = event_mark(hEvent);
	if (mark)
		sched_mark_wait(mark);
	sched_mark_unref(mark);
	print_flush(hEvent->object.context);
	return event_fault(hEvent);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	API_CALL;
	struct sched_mark *start, *end;
	CUresult result;

	result = event_check(hStart);
	if (!result)
		result = event_check(hEnd);
	if (!result)
		result = capture_refuse_event(hStart);
	if (!result)
		result = capture_refuse_event(hEnd);
	if (result)
		return result;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if ((hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	start = event_mark(hStart);
	end = event_mark(hEnd);
	if (!start || !end)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if (!sched_mark_is_done(start) || !sched_mark_is_done(end))
		result = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (int64_t)(end->time_ns - start->time_ns) / 1e6f;
	sched_mark_unref(start);
	sched_mark_unref(end);
	return result;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/*
 * Events of whole contexts
 */

CUresult event_hold(struct sched_stream *stream, struct sched_mark *mark)
{
	struct sched_op op = { .kind = SCHED_WAIT, .mark = sched_mark_ref(mark) };

	return sched_submit(stream, &op, false);
}

/* Lets a stream wait for all that another one has now. */
CUresult event_join(struct sched_stream *stream, struct sched_stream *other)
{
	struct sched_op op = { .kind = SCHED_MARK };
	struct sched_mark *mark;
	CUresult result;

	mark = sched_mark_new(&softgpu_device.sched);
	if (!mark)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.mark = sched_mark_ref(mark);
	result = sched_submit(other, &op, false);
	if (!result)
		result = event_hold(stream, mark);
	sched_mark_unref(mark);
	return result;
}

static CUresult whole_check(CUcontext context, CUevent event)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(context, OBJECT_CONTEXT) || !context_is_active(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!object_hold(event, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	result = capture_refuse_context(context);
	return result ? result : (CUresult)sched_context_fault(&context->sched);
}

/* The event is recorded in a separate stream, which waits for all others. */
CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	API_CALL;
	struct sched_stream *stream;
	struct object *object;
	CUgreenCtx green;
	CUresult result;

	context_hold(hCtx, &green);
	if (green)
		return cuGreenCtxRecordEvent(green, hEvent);
	result = whole_check(hCtx, hEvent);
	if (result)
		return result;
	if (hEvent->object.context != hCtx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sched_stream_new(&stream, &hCtx->sched, false, 0))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&hCtx->lock);
	result = event_join(stream, &hCtx->sched.legacy);
	TAILQ_FOREACH(object, &hCtx->objects, link)
		if (!result && object->kind == OBJECT_STREAM)
			result = event_join(stream, ((CUstream)object)->sched);
	pthread_mutex_unlock(&hCtx->lock);
	if (!result)
		result = event_record(hEvent, stream);
	sched_stream_free(stream);
	return result;
}

/* They wait for this mark and for those before it. */
CUresult event_gate_add(
	CUcontext context, struct sched_mark **gatep, struct sched_mark *mark)
{
	struct sched_op op = { .kind = SCHED_MARK };
	struct sched_stream *stream;
	struct sched_mark *both;
	CUresult result = CUDA_SUCCESS;

	/* context_teardown() has dropped the gate. */
	if (!__atomic_load_n(&context->is_active, __ATOMIC_RELAXED))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	both = sched_mark_new(&softgpu_device.sched);
	if (!both || sched_stream_new(&stream, &context->sched, false, 0)) {
		sched_mark_unref(both);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (*gatep)
		result = event_hold(stream, *gatep);
	if (!result)
		result = event_hold(stream, mark);
	op.mark = sched_mark_ref(both);
	if (!result)
		result = sched_submit(stream, &op, false);
	else
		sched_mark_unref(op.mark);
	sched_mark_unref(*gatep);
	*gatep = both;
	sched_stream_free(stream);
	return result;
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	API_CALL;
	struct sched_mark *mark;
	struct object *object;
	CUgreenCtx green;
	CUresult result;

	context_hold(hCtx, &green);
	if (green)
		return cuGreenCtxWaitEvent(green, hEvent);
	result = whole_check(hCtx, hEvent);
	if (result)
		return result;
	mark = event_mark(hEvent);
	if (!mark)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&hCtx->lock);
	result = event_gate_add(hCtx, &hCtx->gate, mark);
	if (!result)
		result = event_hold(&hCtx->sched.legacy, mark);
	TAILQ_FOREACH(object, &hCtx->objects, link)
		if (!result && object->kind == OBJECT_STREAM)
			result = event_hold(((CUstream)object)->sched, mark);
	pthread_mutex_unlock(&hCtx->lock);
	sched_mark_unref(mark);
	return result;
}

CUresult event_gate(CUcontext context, CUgreenCtx green, struct sched_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&context->lock);
	if (context->gate && !sched_mark_is_done(context->gate))
		result = event_hold(stream, context->gate);
	if (!result && green && green->gate && !sched_mark_is_done(green->gate))
		result = event_hold(stream, green->gate);
	pthread_mutex_unlock(&context->lock);
	return result;
}
