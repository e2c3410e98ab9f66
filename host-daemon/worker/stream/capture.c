/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live captures of streams
 */

#include <stdlib.h>

#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/stream/capture.h"
#include "worker/stream/graph.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"

void captures_init(struct session *session)
{
	pthread_mutex_init(&session->captures->lock, NULL);
}

static void free_all(struct capture *capture)
{
	while (capture) {
		struct capture *next = capture->next;

		free(capture);
		capture = next;
	}
}

void captures_deinit(struct session *session)
{
	free_all(session->captures->first);
	pthread_mutex_destroy(&session->captures->lock);
}

/* With the lock. */
static void set_count(struct session *session, uint32_t n)
{
	struct vgpu_channel_control *control = session_control(session);

	/* Partner: the load in session_is_capturing(). */
	__atomic_store_n(&session->n_captures, n, __ATOMIC_SEQ_CST);
	/* Partner: the guest's acquire load, before each call. */
	__atomic_store_n(&control->n_captures, n, __ATOMIC_RELEASE);
}

/* With the lock: counts a capture for the threads that its mode concerns. */
static void note_mode(struct session *session, const struct capture *capture, uint32_t by)
{
	/* Partners: the loads in lane_is_forbidden_unsafe(). */
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		__atomic_add_fetch(&capture->lane->n_captures, by, __ATOMIC_SEQ_CST);
	if (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
		__atomic_add_fetch(&session->n_global_captures, by, __ATOMIC_SEQ_CST);
}

static void change_count(struct session *session, uint32_t by)
{
	struct captures *captures = session->captures;

	pthread_mutex_lock(&captures->lock);
	set_count(session, session->n_captures + by);
	pthread_mutex_unlock(&captures->lock);
}

void captures_hold(struct session *session)
{
	change_count(session, 1);
	/* Partners: marks_make_due() and debts_pay(), which read the count with their
	 * lock held. */
	pthread_mutex_lock(&session->marks->lock);
	pthread_mutex_unlock(&session->marks->lock);
	pthread_mutex_lock(&session->debts->lock);
	pthread_mutex_unlock(&session->debts->lock);
}

void captures_release(struct session *session)
{
	change_count(session, -1u);
	marks_kick(session);
}

bool capture_add(struct session *session, const struct capture *capture)
{
	struct captures *captures = session->captures;
	struct capture *added = malloc(sizeof(*added));

	if (!added)
		return false;
	*added = *capture;
	pthread_mutex_lock(&captures->lock);
	added->next = captures->first;
	captures->first = added;
	set_count(session, session->n_captures + 1);
	note_mode(session, added, 1);
	pthread_mutex_unlock(&captures->lock);
	return true;
}

void capture_note_graph(struct session *session, uint64_t id, CUgraph graph)
{
	struct capture *capture;

	pthread_mutex_lock(&session->captures->lock);
	for (capture = session->captures->first; capture; capture = capture->next)
		if (capture->id == id && !capture->is_to_graph)
			capture->graph = graph;
	pthread_mutex_unlock(&session->captures->lock);
}

/* Removes the captures that began in that stream, or in any stream of that context. */
static struct capture *take(struct session *session, const struct stream *stream,
	const struct context *context)
{
	struct captures *captures = session->captures;
	struct capture **nextp, *taken = NULL;

	pthread_mutex_lock(&captures->lock);
	for (nextp = &captures->first; *nextp;) {
		struct capture *capture = *nextp;

		if (capture->stream != stream && capture->stream->context != context) {
			nextp = &capture->next;
			continue;
		}
		*nextp = capture->next;
		capture->next = taken;
		taken = capture;
		set_count(session, session->n_captures - 1);
		note_mode(session, capture, -1u);
	}
	pthread_mutex_unlock(&captures->lock);
	return taken;
}

static void end(struct session *session, struct capture *taken, bool is_kept)
{
	struct capture *capture;

	for (capture = taken; capture && !is_kept; capture = capture->next)
		if (capture->graph)
			graph_forget(session, capture->graph);
	if (taken)
		marks_kick(session);
	free_all(taken);
}

void capture_remove(struct session *session, const struct stream *stream, bool is_kept)
{
	end(session, take(session, stream, NULL), is_kept);
}

void captures_forget_context(struct session *session, const struct context *context)
{
	end(session, take(session, NULL, context), false);
}

/* Copies a capture that no other thread may end. Return: false if there is none. */
static bool find_own(
	struct session *session, const struct lane *lane, struct capture *copy)
{
	struct capture *capture;

	pthread_mutex_lock(&session->captures->lock);
	for (capture = session->captures->first; capture; capture = capture->next)
		if (capture->lane == lane &&
			capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
			break;
	if (capture)
		*copy = *capture;
	pthread_mutex_unlock(&session->captures->lock);
	return capture;
}

static void end_capture(struct call *call, const struct capture *capture)
{
	struct stream *stream = capture->stream;
	CUgraph graph = NULL;

	if (context_enter(call->session, call->runner, stream->context) == CUDA_SUCCESS &&
		call->driver->cuStreamEndCapture(stream->object.driver, &graph) ==
			CUDA_SUCCESS &&
		graph && !capture->is_to_graph)
		call->driver->cuGraphDestroy(graph);
	capture_remove(call->session, stream, false);
}

void captures_leave_lane(struct call *call, struct lane *lane)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	struct capture capture;

	while (find_own(call->session, lane, &capture))
		end_capture(call, &capture);
	if (lane->capture_mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
		call->driver->cuThreadExchangeStreamCaptureMode(&mode);
	__atomic_store_n(
		&lane->capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL, __ATOMIC_RELAXED);
}

CUresult capture_ask(struct call *call, CUstream stream, struct capture_info *info)
{
	const struct vgpu_driver *driver = call->driver;

	*info = (struct capture_info){};
	if (driver->cuStreamGetCaptureInfo_v3)
		return driver->cuStreamGetCaptureInfo_v3(stream, &info->status, &info->id,
			&info->graph, &info->nodes, &info->edges, &info->n);
	if (driver->cuStreamGetCaptureInfo_v2)
		return driver->cuStreamGetCaptureInfo_v2(stream, &info->status, &info->id,
			&info->graph, &info->nodes, &info->n);
	if (!driver->cuStreamGetCaptureInfo)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuStreamGetCaptureInfo(stream, &info->status, &info->id);
}
