/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams
 *
 * Two handles are not objects: NULL and 1 are the legacy stream of the current context, 2
 * is the default stream of the calling thread, which is an ordinary blocking stream that
 * is created when first used and destroyed with its context.
 */

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/capture.h"

static void stream_end(struct object *object)
{
	struct sched_stream *stream = ((CUstream)object)->sched;

	object_leave(object);
	capture_forget_stream(stream);
	sched_stream_end(stream);
}

static void stream_release(struct object *object)
{
	CUstream stream = (CUstream)object;

	sched_stream_unref(stream->sched);
	if (stream->green)
		object_unref(&stream->green->object);
}

CUresult stream_new(CUstream *streamp, CUcontext context, CUgreenCtx green,
	unsigned int flags, int priority, pid_t thread)
{
	bool is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
	CUstream stream;
	CUresult result;

	stream = object_new(OBJECT_STREAM, sizeof(*stream), context);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sched_stream_new(&stream->sched, &context->sched, is_blocking, priority)) {
		object_unref(&stream->object);
		return context_is_active(context) ? CUDA_ERROR_OUT_OF_MEMORY
						  : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	/* The first stream of a green context is its default stream. */
	if (green) {
		sched_stream_confine(stream->sched, &green->sms,
			green->stream ? green->stream->sched : NULL);
		stream->green = green->stream ? green : NULL;
		if (stream->green)
			object_ref(&green->object);
	}
	stream->object.release = stream_release;
	stream->object.end = stream_end;
	stream->sched->flags = flags;
	stream->thread = thread;
	result = event_gate(context, green, stream->sched);
	if (!result)
		result = context_add(&stream->object);
	if (result)
		object_end(&stream->object);
	else
		*streamp = stream;
	return result;
}

static CUstream stream_find_thread(CUcontext context, pid_t thread)
{
	struct object *object;
	CUstream found = NULL;

	pthread_mutex_lock(&context->lock);
	TAILQ_FOREACH(object, &context->objects, link) {
		CUstream stream = (CUstream)object;

		if (object->kind == OBJECT_STREAM && stream->thread == thread) {
			found = object_keep(object) ? stream : NULL;
			break;
		}
	}
	pthread_mutex_unlock(&context->lock);
	return found;
}

static CUresult stream_of_thread(CUcontext context, struct sched_stream **streamp)
{
	/* A generation and not an address of the context: addresses come back. */
	static __thread uint64_t cached_generation = UINT64_MAX;
	static __thread CUstream cached;
	static __thread pid_t thread;
	uint64_t generation = context_generation(context);
	CUresult result;

	if (!thread)
		thread = syscall(SYS_gettid);
	if (cached_generation != generation || !object_hold(cached, OBJECT_STREAM)) {
		cached_generation = UINT64_MAX;
		cached = stream_find_thread(context, thread);
		if (!cached) {
			result = stream_new(
				&cached, context, NULL, CU_STREAM_DEFAULT, 0, thread);
			if (result)
				return result;
			if (!object_hold(cached, OBJECT_STREAM))
				return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		}
		cached_generation = generation;
	}
	*streamp = cached->sched;
	return CUDA_SUCCESS;
}

CUcontext stream_context(const struct sched_stream *stream)
{
	return (CUcontext)((char *)stream->context - offsetof(struct CUctx_st, sched));
}

static CUresult why_not_found(CUstream handle)
{
	return object_is(handle, OBJECT_ORPHAN) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
						: CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_find(CUstream handle, struct sched_stream **streamp)
{
	CUcontext context;
	CUgreenCtx green;
	CUresult result;

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		result = device_check();
		if (result)
			return result;
		if (!object_hold(handle, OBJECT_STREAM))
			return why_not_found(handle);
		*streamp = handle->sched;
		return sched_context_fault(handle->sched->context);
	}
	result = context_current(&context);
	if (result)
		return result;
	green = stack_green();
	/* As cuStreamGetCtx_v2 documents. */
	if (handle == CU_STREAM_PER_THREAD)
		return green ? CUDA_ERROR_INVALID_HANDLE
			     : stream_of_thread(context, streamp);
	*streamp = green ? green->stream->sched : &context->sched.legacy;
	return CUDA_SUCCESS;
}

CUresult stream_get_work(CUstream handle, struct sched_stream **streamp)
{
	CUresult result;

	result = stream_find(handle, streamp);
	if (!result && (*streamp)->is_legacy)
		result = capture_refuse_legacy(stream_context(*streamp));
	return result;
}

CUresult stream_get(CUstream handle, struct sched_stream **streamp)
{
	CUresult result;

	result = stream_get_work(handle, streamp);
	return result ? result : capture_refuse(*streamp);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!phStream || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_new(phStream, context, stack_green(), flags, priority, 0);
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(hStream, OBJECT_STREAM) || !context_remove(&hStream->object))
		return why_not_found(hStream);
	object_end(&hStream->object);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream hStream)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_get(hStream, &stream);
	if (result) {
		print_flush_current();
		return result;
	}
	result = sched_stream_wait(stream);
	print_flush(stream_context(stream));
	return result;
}

CUresult cuStreamQuery(CUstream hStream)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_get(hStream, &stream);
	if (result)
		return result;
	if (!sched_stream_is_idle(stream))
		return CUDA_ERROR_NOT_READY;
	/* Looked at last: what a fault discards leaves the stream idle too. */
	return sched_context_fault(stream->context);
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = sched_stream_priority(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = stream->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	*streamId = stream->id;
	return CUDA_SUCCESS;
}

/* The green context of a stream that was found, or NULL. */
static CUgreenCtx green_of(CUstream handle)
{
	return handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD
		       ? handle->green
		       : stack_green();
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	API_CALL;
	struct sched_stream *stream;
	CUgreenCtx green;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	green = green_of(hStream);
	*pctx = green ? (CUcontext)&green->face : stream_context(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	if (!pCtx || !pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_find(hStream, &stream);
	if (result)
		return result;
	*pCtx = stream_context(stream);
	*pGreenCtx = green_of(hStream);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	if (!phCtx)
		return CUDA_ERROR_INVALID_VALUE;
	result = stream_find(hStream, &stream);
	if (!result)
		*phCtx = green_of(hStream);
	return result;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = stream_context(stream)->device;
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	API_CALL;
	struct sched_op op = { .kind = SCHED_WAIT };
	struct sched_stream *stream;
	CUresult result;

	result = stream_get_work(hStream, &stream);
	if (result)
		return result;
	if (!object_hold(hEvent, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (Flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_wait(stream, hEvent, Flags, &result))
		return result;
	/* The flag is for captures. */
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	op.mark = event_mark(hEvent);
	return op.mark ? (CUresult)sched_submit(stream, &op, false) : CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(
	CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	API_CALL;
	struct sched_stream *stream;
	unsigned int policy;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	memset(value, 0, sizeof(*value));
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		policy = __atomic_load_n(&stream->wait_policy, __ATOMIC_RELAXED);
		value->syncPolicy = policy ? policy : CU_SYNC_POLICY_AUTO;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		value->priority = sched_stream_priority(stream);
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		value->memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
		return CUDA_SUCCESS;
	/* One domain, no window of a cache, and no NVLink that a hint could be about. */
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* How the scheduler waits it decides itself, so that a policy is only remembered. */
CUresult cuStreamSetAttribute(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->syncPolicy < CU_SYNC_POLICY_AUTO ||
			value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			return CUDA_ERROR_INVALID_VALUE;
		__atomic_store_n(
			&stream->wait_policy, value->syncPolicy, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		sched_stream_set_priority(stream, value->priority);
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		if (value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT)
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		if (value->memSyncDomainMap.default_ || value->memSyncDomainMap.remote)
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return value->accessPolicyWindow.num_bytes ? CUDA_ERROR_INVALID_VALUE
							   : CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return value->nvlinkUtilCentricScheduling > 1 ? CUDA_ERROR_INVALID_VALUE
							      : CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	API_CALL;
	struct sched_stream *from, *to;
	CUresult result;

	result = stream_find(src, &from);
	if (!result)
		result = stream_find(dst, &to);
	if (result)
		return result;
	__atomic_store_n(&to->wait_policy,
		__atomic_load_n(&from->wait_policy, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	sched_stream_set_priority(to, sched_stream_priority(from));
	return CUDA_SUCCESS;
}
