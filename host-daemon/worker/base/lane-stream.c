/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lane streams: the per-thread default streams of each guest thread
 */

#include <stdlib.h>

#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane-stream.h"
#include "worker/base/lane.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"

static struct stream *find_stream(struct lane *lane, const struct context *context)
{
	/* Partner: the store in add_stream(). */
	uint32_t i, n = __atomic_load_n(&lane->n_streams, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++)
		if (lane->streams[i]->context == context)
			return lane->streams[i];
	return NULL;
}

/* An entry for another context: that of a destroyed context, or a new one. */
static struct stream *add_stream(struct lane *lane)
{
	struct stream *stream = find_stream(lane, NULL);

	if (stream || lane->n_streams == LANE_STREAMS_MAX)
		return stream;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return NULL;
	lane->streams[lane->n_streams] = stream;
	/* Partner: the load in find_stream(). */
	__atomic_store_n(&lane->n_streams, lane->n_streams + 1, __ATOMIC_RELEASE);
	return stream;
}

/* Adds a stream of the driver to the lane, unless its context was destroyed meanwhile. */
static CUresult keep_stream(struct call *call, CUstream made, struct stream **streamp)
{
	struct stream *stream = NULL;
	CUresult result = CUDA_ERROR_CONTEXT_IS_DESTROYED;

	pthread_mutex_lock(&call->session->contexts.lock);
	if (call_context_is_same(call)) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
		stream = add_stream(call->lane);
	}
	if (stream) {
		stream->has_word = false;
		stream->due = false;
		stream->owes = false;
		stream->batch = NULL;
		stream->waits = false;
		stream->object.driver = made;
		stream->context = call->context;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&call->session->contexts.lock);
	*streamp = stream;
	return result;
}

static CUresult make_stream(struct call *call, struct stream **streamp)
{
	struct stream *stream = find_stream(call->lane, call->context);
	CUstream made;
	CUresult result;

	if (!stream) {
		/* The context is current: calls with a stream enter it. */
		result = call->driver->cuStreamCreate(&made, CU_STREAM_DEFAULT);
		if (result == CUDA_SUCCESS) {
			result = keep_stream(call, made, &stream);
			if (call_left_over(result))
				call->driver->cuStreamDestroy_v2(made);
		}
		if (result != CUDA_SUCCESS)
			return result;
	}
	*streamp = stream;
	return CUDA_SUCCESS;
}

CUresult lane_stream(struct call *call, struct stream **streamp)
{
	struct lane *lane = call->lane;
	CUresult result;

	if (!call->context)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* As cuStreamGetCtx_v2 documents. */
	if (call->current != call->context)
		return CUDA_ERROR_INVALID_HANDLE;
	*streamp = find_stream(lane, call->context);
	if (*streamp)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lane->lock);
	result = make_stream(call, streamp);
	pthread_mutex_unlock(&lane->lock);
	return result;
}

void lane_forget_context(struct lane *lane, const struct context *context)
{
	struct stream *stream = find_stream(lane, context);

	if (stream)
		stream->context = NULL;
}
