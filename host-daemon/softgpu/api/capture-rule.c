/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that captures forbid, and events by which streams join them
 */

#include <stdlib.h>

#include "api/capture-lane.h"

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool capture_is_any(void)
{
	return __atomic_load_n(&n_captures, __ATOMIC_ACQUIRE);
}

/* Return: INVALIDATED if the capture is already; else it is now, for that reason. */
static CUresult capture_spoil(struct capture *capture, CUresult reason)
{
	if (capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	capture->is_invalid = true;
	return reason;
}

CUresult capture_refuse(struct sched_stream *stream)
{
	struct capture_lane *lane;
	CUresult result = CUDA_SUCCESS;

	if (!stream_is_captured(stream))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	lane = capture_lane_of(stream);
	if (lane)
		result = capture_spoil(
			lane->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return graph_leave(result);
}

/* Spoils captures with a stream of the context. */
static CUresult capture_refuse_streams(
	CUcontext context, bool blocking_alone, CUresult reason)
{
	struct capture_lane *lane;
	struct capture *capture;
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&graph_lock);
	TAILQ_FOREACH(capture, &captures, link)
		TAILQ_FOREACH(lane, &capture->lanes, link)
			if (lane->stream && stream_context(lane->stream) == context &&
				(lane->stream->is_blocking || !blocking_alone)) {
				capture->is_invalid = true;
				result = reason;
			}
	return graph_leave(result);
}

CUresult capture_refuse_green(const struct sched_stream *legacy)
{
	struct capture_lane *lane;
	struct capture *capture;
	CUresult result = CUDA_SUCCESS;

	if (!capture_is_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	TAILQ_FOREACH(capture, &captures, link)
		TAILQ_FOREACH(lane, &capture->lanes, link)
			if (lane->stream && lane->stream->legacy == legacy) {
				capture->is_invalid = true;
				result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
	return graph_leave(result);
}

CUresult capture_refuse_legacy(CUcontext context)
{
	/* Partner: capture_lane_new(). */
	if (!__atomic_load_n(&context->n_captures, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	return capture_refuse_streams(context, true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult capture_refuse_context(CUcontext context)
{
	if (!capture_is_any())
		return CUDA_SUCCESS;
	return capture_refuse_streams(
		context, false, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* The table of modes in the CUDA manual, cuThreadExchangeStreamCaptureMode(). */
static bool capture_forbids_unsafe(const struct capture *capture)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
		capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return capture->thread == capture_thread() ||
	       (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
		       capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult capture_refuse_unsafe(void)
{
	struct capture *capture;
	CUresult result = CUDA_SUCCESS;

	if (!capture_is_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	TAILQ_FOREACH(capture, &captures, link)
		if (capture_forbids_unsafe(capture)) {
			capture->is_invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	return graph_leave(result);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	API_CALL;
	CUstreamCaptureMode before = thread_mode;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

/*
 * Events
 */

static struct capture_event *event_captured(const struct CUevent_st *event)
{
	/* Partner: capture_drop_event() and event_capture(). */
	return __atomic_load_n(&event->captured, __ATOMIC_ACQUIRE);
}

void capture_drop_event(CUevent event)
{
	struct capture_event *captured = event->captured;

	if (!captured)
		return;
	__atomic_store_n(&event->captured, NULL, __ATOMIC_RELEASE);
	capture_unref(captured->capture);
	free(captured->before.nodes);
	free(captured);
}

void capture_forget_event(CUevent event)
{
	if (!event_captured(event))
		return;
	pthread_mutex_lock(&graph_lock);
	capture_drop_event(event);
	pthread_mutex_unlock(&graph_lock);
}

void capture_end_event(CUevent event)
{
	pthread_mutex_lock(&graph_lock);
	/* A call of another thread may still have it, and shall not capture it now. */
	event->is_ended = true;
	capture_drop_event(event);
	pthread_mutex_unlock(&graph_lock);
}

CUresult capture_refuse_event(CUevent event)
{
	CUresult result = CUDA_SUCCESS;

	if (!event_captured(event))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	if (event->captured) {
		event->captured->capture->is_invalid = true;
		result = CUDA_ERROR_CAPTURED_EVENT;
	}
	return graph_leave(result);
}

/* The event is what the lane has come to. */
static CUresult event_capture(CUevent event, const struct capture_lane *lane)
{
	struct capture_event *captured;

	/* Partner: capture_end_event(). */
	if (event->is_ended)
		return CUDA_ERROR_INVALID_HANDLE;
	captured = calloc(1, sizeof(*captured));
	if (!captured || capture_list_copy(&captured->before, &lane->before)) {
		if (captured)
			free(captured->before.nodes);
		free(captured);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	captured->capture = lane->capture;
	captured->capture->n_refs++;
	capture_drop_event(event);
	__atomic_store_n(&event->captured, captured, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static CUresult lane_event_node(
	struct capture_lane *lane, CUevent event, CUgraphNodeType type)
{
	struct graph_work work;
	CUresult result;

	result = work_event(&work, type, event);
	if (result)
		return result;
	result = capture_lane_add(lane, &work);
	if (result)
		work_deinit(&work);
	return result;
}

static CUresult lane_record(struct capture_lane *lane, CUevent event, unsigned int flags)
{
	if (lane->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return lane_event_node(lane, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	return event_capture(event, lane);
}

bool capture_record(
	struct sched_stream *stream, CUevent event, unsigned int flags, CUresult *rp)
{
	struct capture_lane *lane;

	if (!stream_is_captured(stream))
		return false;
	pthread_mutex_lock(&graph_lock);
	lane = capture_lane_of(stream);
	if (lane)
		*rp = lane_record(lane, event, flags);
	pthread_mutex_unlock(&graph_lock);
	return lane;
}

/* A captured stream that waits: for its own capture, or for what is in none. */
static CUresult lane_wait(struct capture_lane *lane, CUevent event, unsigned int flags)
{
	struct capture_event *captured = event->captured;

	if (lane->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags & CU_EVENT_WAIT_EXTERNAL)
		return lane_event_node(lane, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	if (!captured || captured->capture->is_over)
		return capture_spoil(lane->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	if (captured->capture != lane->capture) {
		captured->capture->is_invalid = true;
		return capture_spoil(lane->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	return capture_list_join(
		&lane->before, captured->before.nodes, captured->before.n);
}

/* A stream that waits for a capture which it does not belong to: it does from now on. */
static CUresult stream_join(struct sched_stream *stream, CUevent event)
{
	struct capture_event *captured = event->captured;
	struct capture_lane *lane;
	CUresult result;

	if (captured->capture->is_over)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (captured->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->is_legacy)
		return capture_spoil(
			captured->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	result = capture_lane_new(&lane, captured->capture, stream);
	if (result)
		return result;
	result = capture_list_join(
		&lane->before, captured->before.nodes, captured->before.n);
	return result ? capture_spoil(captured->capture, result) : CUDA_SUCCESS;
}

bool capture_wait(
	struct sched_stream *stream, CUevent event, unsigned int flags, CUresult *rp)
{
	struct capture_lane *lane;
	bool takes_part;

	if (!stream_is_captured(stream) && !event_captured(event))
		return false;
	pthread_mutex_lock(&graph_lock);
	lane = capture_lane_of(stream);
	takes_part = lane || event->captured;
	if (lane)
		*rp = lane_wait(lane, event, flags);
	else if (takes_part)
		*rp = flags ? CUDA_ERROR_INVALID_VALUE : stream_join(stream, event);
	pthread_mutex_unlock(&graph_lock);
	return takes_part;
}

/*
 * Streams that go
 *
 * The nodes of a stream that took part stay, and have to be joined as before. Without its
 * origin a capture can never be ended.
 */

static void lane_forget(struct capture_lane *lane)
{
	if (lane == lane->capture->origin)
		capture_abandon(lane->capture);
	else
		capture_lane_leave(lane);
}

void capture_forget_stream(struct sched_stream *stream)
{
	struct capture_lane *lane;

	pthread_mutex_lock(&graph_lock);
	/* A call of another thread may still have it, and shall not capture it now. */
	stream->is_ended = true;
	lane = capture_lane_of(stream);
	if (lane)
		lane_forget(lane);
	pthread_mutex_unlock(&graph_lock);
}

static struct capture_lane *capture_find_lane(CUcontext context)
{
	struct capture_lane *lane;
	struct capture *capture;

	TAILQ_FOREACH(capture, &captures, link)
		TAILQ_FOREACH(lane, &capture->lanes, link)
			if (lane->stream && stream_context(lane->stream) == context)
				return lane;
	return NULL;
}

void capture_forget_context(CUcontext context)
{
	struct capture_lane *lane;

	if (!capture_is_any())
		return;
	pthread_mutex_lock(&graph_lock);
	while ((lane = capture_find_lane(context)))
		lane_forget(lane);
	pthread_mutex_unlock(&graph_lock);
}
