/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts
 *
 * A green context holds the primary context of its device, in whose list it is, and so
 * are its streams: they are the streams of the primary context that are confined to its
 * multiprocessors. Its default stream is the legacy stream of these. The CUcontext of it
 * is a part of the object, so that no call takes one for the other by mistake.
 */

#include <stddef.h>

#include "api/capture.h"
#include "api/resource.h"

static CUgreenCtx green_of_face(CUcontext handle)
{
	return (CUgreenCtx)((char *)handle - offsetof(struct CUgreenCtx_st, face));
}

CUcontext context_hold(CUcontext handle, CUgreenCtx *greenp)
{
	*greenp = NULL;
	if (object_hold(handle, OBJECT_CONTEXT))
		return handle;
	if (!object_hold(handle, OBJECT_GREEN_CONTEXT))
		return NULL;
	*greenp = green_of_face(handle);
	return (*greenp)->object.context;
}

uint32_t green_current_sms(void)
{
	CUgreenCtx green = stack_green();

	return green ? green->n_sms : softgpu_device.n_threads;
}

/*
 * Life
 */

/* Takes a stream out of the primary context. Return: NULL if there is none left. */
static CUstream take_stream(CUgreenCtx green)
{
	CUcontext context = green->object.context;
	CUstream found = NULL;
	struct object *object;

	pthread_mutex_lock(&context->lock);
	TAILQ_FOREACH(object, &context->objects, link) {
		CUstream stream = (CUstream)object;

		if (object->kind == OBJECT_STREAM &&
			(stream->green == green || stream == green->stream)) {
			TAILQ_REMOVE(&context->objects, object, link);
			object->is_listed = false;
			found = stream;
			break;
		}
	}
	pthread_mutex_unlock(&context->lock);
	return found;
}

/*
 * A stream that the program has left in a green context can be neither used nor destroyed
 * any more, as CUDA documents. It stays until the primary context ends.
 */
static void leave_behind(CUstream stream)
{
	CUcontext context = stream->object.context;
	bool is_kept;

	object_leave(&stream->object);
	capture_forget_stream(stream->sched);
	sched_stream_end(stream->sched);
	pthread_mutex_lock(&context->lock);
	is_kept = context->is_active && context->generation == stream->object.generation;
	stream->object.kind = OBJECT_ORPHAN;
	is_kept = is_kept && !object_enter(&stream->object);
	if (is_kept) {
		TAILQ_INSERT_TAIL(&context->objects, &stream->object, link);
		stream->object.is_listed = true;
	}
	pthread_mutex_unlock(&context->lock);
	if (!is_kept)
		object_end(&stream->object);
}

static void green_end(struct object *object)
{
	CUgreenCtx green = (CUgreenCtx)object;
	CUstream stream;

	object_leave(&green->face);
	object_leave(object);
	while ((stream = take_stream(green)))
		if (stream == green->stream)
			object_end(&stream->object);
		else
			leave_behind(stream);
	/* The end of the primary context ends it with device.lock, and drops what it
	 * held, unless the program has released that, too. */
	if (!green->is_destroyed && object->context->n_retains)
		object->context->n_retains--;
}

static void green_release(struct object *object)
{
	CUgreenCtx green = (CUgreenCtx)object;

	/* Not in green_end(): another thread's cuGreenCtxWaitEvent() may still set it. */
	sched_mark_unref(green->gate);
	if (green->stream)
		object_unref(&green->stream->object);
}

static uint64_t next_id(void)
{
	uint64_t id;

	pthread_mutex_lock(&softgpu_device.lock);
	id = softgpu_device.next_context_id++;
	pthread_mutex_unlock(&softgpu_device.lock);
	return id;
}

/* The primary context is held by the caller. */
static CUresult green_new(
	CUgreenCtx *greenp, CUcontext context, const struct sched_sms *sms)
{
	CUgreenCtx green;
	CUstream stream;
	CUresult result;

	green = object_new(OBJECT_GREEN, sizeof(*green), context);
	if (!green)
		return CUDA_ERROR_OUT_OF_MEMORY;
	green->object.end = green_end;
	green->object.release = green_release;
	green->face.kind = OBJECT_GREEN_CONTEXT;
	green->face.whole = &green->object;
	green->face.context = context;
	green->sms = *sms;
	green->n_sms = sched_sms_count(sms);
	green->id = next_id();
	/* Until it is in the list of the primary context, only the caller can end it. */
	green->is_destroyed = true;
	result = stream_new(&stream, context, green, CU_STREAM_DEFAULT, 0, 0);
	if (!result) {
		object_ref(&stream->object);
		green->stream = stream;
		result = object_enter(&green->face) ? CUDA_ERROR_OUT_OF_MEMORY
						    : CUDA_SUCCESS;
	}
	green->is_destroyed = result;
	if (!result)
		result = context_add(&green->object);
	if (result) {
		green->is_destroyed = true;
		object_end(&green->object);
		return result;
	}
	*greenp = green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	API_CALL;
	struct sched_sms sms;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM ||
		!resource_desc_get(desc, dev, &sms))
		return CUDA_ERROR_INVALID_VALUE;
	result = cuDevicePrimaryCtxRetain(&context, dev);
	if (result)
		return result;
	result = green_new(phCtx, context, &sms);
	if (result)
		cuDevicePrimaryCtxRelease_v2(dev);
	return result;
}

static CUresult green_get(CUgreenCtx handle)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	return object_hold(handle, OBJECT_GREEN) ? CUDA_SUCCESS
						 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	API_CALL;
	CUdevice device;
	CUresult result;

	result = green_get(hCtx);
	if (result)
		return result;
	if (!context_remove(&hCtx->object))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	device = hCtx->object.context->device;
	hCtx->is_destroyed = true;
	object_end(&hCtx->object);
	return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	API_CALL;
	CUresult result;

	result = green_get(hCtx);
	if (result)
		return result;
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	*pContext = (CUcontext)&hCtx->face;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!greenCtx)
		greenCtx = stack_green();
	result = green_get(greenCtx);
	if (result)
		return result;
	if (!greenCtxId)
		return CUDA_ERROR_INVALID_VALUE;
	*greenCtxId = greenCtx->id;
	return CUDA_SUCCESS;
}

/*
 * Streams
 */

CUresult cuGreenCtxStreamCreate(
	CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	API_CALL;
	CUresult result;

	result = green_get(greenCtx);
	if (!result)
		result = sched_context_fault(&greenCtx->object.context->sched);
	if (result)
		return result;
	if (!phStream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_new(
		phStream, greenCtx->object.context, greenCtx, flags, priority, 0);
}

CUresult green_join(CUgreenCtx green, struct sched_stream *stream)
{
	struct object *object;
	CUresult result;

	result = event_join(stream, green->stream->sched);
	TAILQ_FOREACH(object, &green->object.context->objects, link)
		if (!result && object->kind == OBJECT_STREAM &&
			((CUstream)object)->green == green)
			result = event_join(stream, ((CUstream)object)->sched);
	return result;
}

/* Makes a separate stream that waits for all work. */
static CUresult gather(CUgreenCtx green, struct sched_stream **streamp)
{
	CUcontext context = green->object.context;
	CUresult result;

	if (sched_stream_new(streamp, &context->sched, false, 0))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&context->lock);
	result = green_join(green, *streamp);
	pthread_mutex_unlock(&context->lock);
	if (result)
		sched_stream_free(*streamp);
	return result;
}

CUresult green_synchronize(CUgreenCtx green)
{
	struct sched_stream *stream;
	CUresult result;

	result = capture_refuse_green(green->stream->sched);
	if (!result)
		result = gather(green, &stream);
	if (result)
		return result;
	result = sched_stream_wait(stream);
	sched_stream_free(stream);
	print_flush(green->object.context);
	return result;
}

static CUresult check_event(CUgreenCtx green, CUevent event)
{
	CUresult result;

	if (!object_hold(event, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	result = capture_refuse_green(green->stream->sched);
	return result ? result
		      : (CUresult)sched_context_fault(&green->object.context->sched);
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = green_get(hCtx);
	if (!result)
		result = check_event(hCtx, hEvent);
	if (result)
		return result;
	if (hEvent->object.context != hCtx->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gather(hCtx, &stream);
	if (result)
		return result;
	result = event_record(hEvent, stream);
	sched_stream_free(stream);
	return result;
}

/* With context.lock. */
static CUresult hold_all(CUgreenCtx green, struct sched_mark *mark)
{
	struct object *object;
	CUresult result;

	result = event_gate_add(green->object.context, &green->gate, mark);
	if (!result)
		result = event_hold(green->stream->sched, mark);
	TAILQ_FOREACH(object, &green->object.context->objects, link)
		if (!result && object->kind == OBJECT_STREAM &&
			((CUstream)object)->green == green)
			result = event_hold(((CUstream)object)->sched, mark);
	return result;
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	API_CALL;
	struct sched_mark *mark;
	CUcontext context;
	CUresult result;

	result = green_get(hCtx);
	if (!result)
		result = check_event(hCtx, hEvent);
	if (!result)
		result = capture_refuse_event(hEvent);
	if (result)
		return result;
	mark = event_mark(hEvent);
	if (!mark)
		return CUDA_SUCCESS;
	context = hCtx->object.context;
	pthread_mutex_lock(&context->lock);
	result = hold_all(hCtx, mark);
	pthread_mutex_unlock(&context->lock);
	sched_mark_unref(mark);
	return result;
}

CUresult cuGreenCtxGetDevResource(
	CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	API_CALL;
	CUresult result;

	result = green_get(hCtx);
	if (result)
		return result;
	return resource_get(hCtx->object.context->device, &hCtx->sms, resource, type);
}
