/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams
 *
 * Two handles are no objects: NULL and 1 are the legacy stream of the current
 * context, 2 is the default stream of the calling thread, which is an ordinary
 * blocking stream that is made when it is first used and goes with its context.
 */

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/capture.h"

static void stream_release(struct object *object)
{
	object_free(object);
}

static CUresult stream_new(CUstream *streamp, CUcontext context, bool is_blocking,
	unsigned int flags, int priority)
{
	CUstream stream;

	stream = object_new(OBJECT_STREAM, sizeof(*stream));
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sched_stream_new(&stream->sched, &context->sched, is_blocking, priority)) {
		object_free(&stream->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (event_gate(context, stream->sched)) {
		sched_stream_free(stream->sched);
		object_free(&stream->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->sched->flags = flags;
	stream->object.release = stream_release;
	context_add(context, &stream->object);
	*streamp = stream;
	return CUDA_SUCCESS;
}

static CUstream stream_find_thread(CUcontext context, pid_t thread)
{
	struct object *object;
	CUstream found = NULL;

	pthread_mutex_lock(&context->lock);
	TAILQ_FOREACH(object, &context->objects, link) {
		CUstream stream = (CUstream)object;

		if (object->kind == OBJECT_STREAM && stream->thread == thread) {
			found = stream;
			break;
		}
	}
	pthread_mutex_unlock(&context->lock);
	return found;
}

static CUresult stream_of_thread(CUcontext context, struct sched_stream **streamp)
{
	/* A context's id and not its address: addresses come back. */
	static __thread uint64_t cached_id = UINT64_MAX;
	static __thread struct sched_stream *cached;
	static __thread pid_t thread;
	CUstream stream;
	CUresult r;

	if (!thread)
		thread = syscall(SYS_gettid);
	if (cached_id != context->generation) {
		stream = stream_find_thread(context, thread);
		if (!stream) {
			r = stream_new(&stream, context, true, CU_STREAM_DEFAULT, 0);
			if (r)
				return r;
			stream->thread = thread;
		}
		cached = stream->sched;
		cached_id = context->generation;
	}
	*streamp = cached;
	return CUDA_SUCCESS;
}

CUcontext stream_context(const struct sched_stream *stream)
{
	return (CUcontext)((char *)stream->context - offsetof(struct CUctx_st, sched));
}

CUresult stream_find(CUstream handle, struct sched_stream **streamp)
{
	CUcontext context;
	CUresult r;

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		r = device_check();
		if (r)
			return r;
		if (!object_is(handle, OBJECT_STREAM))
			return CUDA_ERROR_INVALID_HANDLE;
		*streamp = handle->sched;
		return sched_context_fault(handle->sched->context);
	}
	r = context_current(&context);
	if (r)
		return r;
	if (handle == CU_STREAM_PER_THREAD)
		return stream_of_thread(context, streamp);
	*streamp = &context->sched.legacy;
	return CUDA_SUCCESS;
}

CUresult stream_get_work(CUstream handle, struct sched_stream **streamp)
{
	CUresult r;

	r = stream_find(handle, streamp);
	if (!r && (*streamp)->is_legacy)
		r = capture_refuse_legacy(stream_context(*streamp));
	return r;
}

CUresult stream_get(CUstream handle, struct sched_stream **streamp)
{
	CUresult r;

	r = stream_get_work(handle, streamp);
	return r ? r : capture_refuse(*streamp);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!phStream || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	/* There is one priority, so any other is clamped to it. */
	return stream_new(phStream, context, !(flags & CU_STREAM_NON_BLOCKING), flags, 0);
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	struct sched_stream *stream;
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!object_is(hStream, OBJECT_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	stream = hStream->sched;
	capture_forget_stream(stream);
	context_remove(&hStream->object);
	object_free(&hStream->object);
	sched_stream_free(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream hStream)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_get(hStream, &stream);
	if (r) {
		print_flush_current();
		return r;
	}
	r = sched_stream_wait(stream);
	print_flush(stream_context(stream));
	return r;
}

CUresult cuStreamQuery(CUstream hStream)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_get(hStream, &stream);
	if (r)
		return r;
	if (!sched_stream_is_idle(stream))
		return CUDA_ERROR_NOT_READY;
	/* Looked at last: what a fault discards leaves the stream idle too. */
	return sched_context_fault(stream->context);
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = stream->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = stream->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	*streamId = stream->id;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = stream_context(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	CUresult r;

	if (!pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuStreamGetCtx(hStream, pCtx);
	if (!r)
		*pGreenCtx = NULL;
	return r;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = stream_context(stream)->device;
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct sched_op op = { .kind = SCHED_WAIT };
	struct sched_stream *stream;
	CUresult r;

	r = stream_get_work(hStream, &stream);
	if (r)
		return r;
	if (!object_is(hEvent, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (Flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_wait(stream, hEvent, Flags, &r))
		return r;
	/* The flag is for captures. */
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	op.mark = event_mark(hEvent);
	return op.mark ? (CUresult)sched_submit(stream, &op, false) : CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(
	CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	memset(value, 0, sizeof(*value));
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		value->syncPolicy =
			stream->wait_policy ? stream->wait_policy : CU_SYNC_POLICY_AUTO;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		value->priority = stream->priority;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		value->memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* How the scheduler waits it decides itself, so that a policy is only remembered. */
CUresult cuStreamSetAttribute(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	struct sched_stream *stream;
	CUresult r;

	r = stream_find(hStream, &stream);
	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->syncPolicy < CU_SYNC_POLICY_AUTO ||
			value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			return CUDA_ERROR_INVALID_VALUE;
		stream->wait_policy = value->syncPolicy;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		/* There is one priority, so any other is clamped to it. */
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return value->memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct sched_stream *from, *to;
	CUresult r;

	r = stream_find(src, &from);
	if (!r)
		r = stream_find(dst, &to);
	if (r)
		return r;
	to->wait_policy = from->wait_policy;
	return CUDA_SUCCESS;
}
