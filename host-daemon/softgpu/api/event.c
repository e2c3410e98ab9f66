/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events
 *
 * An event refers to the mark of its latest record. Who waits for an event waits for
 * the mark that it finds then, whatever is recorded later.
 */

#include "api/api.h"

#define EVENT_FLAGS                                                                      \
	(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static void event_release(struct object *object)
{
	CUevent event = (CUevent)object;

	sched_mark_unref(event->mark);
	pthread_mutex_destroy(&event->lock);
	object_free(object);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	CUcontext context;
	CUevent event;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!phEvent || Flags & ~(unsigned int)EVENT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	event = object_new(OBJECT_EVENT, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = Flags;
	pthread_mutex_init(&event->lock, NULL);
	event->object.release = event_release;
	context_add(context, &event->object);
	*phEvent = event;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!object_is(hEvent, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	context_remove(&hEvent->object);
	event_release(&hEvent->object);
	return CUDA_SUCCESS;
}

/* Return: 0, or what is wrong with the handle or its context. */
static CUresult event_check(CUevent event)
{
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!object_is(event, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	return sched_context_fault(&event->object.context->sched);
}

/* Return: a reference to the mark of the latest record, NULL if there is none. */
static struct sched_mark *event_mark(CUevent event)
{
	struct sched_mark *mark = NULL;

	pthread_mutex_lock(&event->lock);
	if (event->mark)
		mark = sched_mark_ref(event->mark);
	pthread_mutex_unlock(&event->lock);
	return mark;
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct sched_op op = { .kind = SCHED_MARK };
	struct sched_stream *stream;
	struct sched_mark *before;
	CUresult r;

	r = stream_get(hStream, &stream);
	if (r)
		return r;
	if (!object_is(hEvent, OBJECT_EVENT) ||
		hEvent->object.context != stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	op.mark = sched_mark_new(&softgpu_device.sched);
	if (!op.mark)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&hEvent->lock);
	before = hEvent->mark;
	hEvent->mark = sched_mark_ref(op.mark);
	pthread_mutex_unlock(&hEvent->lock);
	sched_mark_unref(before);
	return sched_submit(stream, &op, false);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventQuery(CUevent hEvent)
{
	struct sched_mark *mark;
	CUresult r;

	r = event_check(hEvent);
	if (r)
		return r;
	mark = event_mark(hEvent);
	if (mark && !sched_mark_is_done(mark))
		r = CUDA_ERROR_NOT_READY;
	sched_mark_unref(mark);
	/* Looked at last: what a fault discards is done too. */
	return r ? r : event_check(hEvent);
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	struct sched_mark *mark;
	CUresult r;

	r = event_check(hEvent);
	if (r)
		return r;
	mark = event_mark(hEvent);
	if (mark)
		sched_mark_wait(mark);
	sched_mark_unref(mark);
	print_flush(hEvent->object.context);
	return event_check(hEvent);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	struct sched_mark *start, *end;
	CUresult r;

	r = event_check(hStart);
	if (!r)
		r = event_check(hEnd);
	if (r)
		return r;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if ((hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	start = event_mark(hStart);
	end = event_mark(hEnd);
	if (!start || !end)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!sched_mark_is_done(start) || !sched_mark_is_done(end))
		r = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (int64_t)(end->time_ns - start->time_ns) / 1e6f;
	sched_mark_unref(start);
	sched_mark_unref(end);
	return r;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
