/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: one for each guest thread that calls
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/run/dispatcher.h"

static struct lane *lane_new(struct session *session, uint32_t index)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->session = session;
	lane->index = index;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->filled, NULL);
	pthread_cond_init(&lane->done, NULL);
	return lane;
}

void lane_free(struct lane *lane)
{
	uint32_t i;

	if (!lane || lane->started)
		return;
	for (i = 0; i < lane->n_streams; i++)
		free(lane->streams[i]);
	pthread_cond_destroy(&lane->filled);
	pthread_cond_destroy(&lane->done);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

struct lane *lane_get(struct session *session, uint32_t index)
{
	struct lane *lane = __atomic_load_n(&session->lanes[index], __ATOMIC_RELAXED);

	if (lane)
		return lane;
	lane = lane_new(session, index);
	/* Partner: the load in context_forget_contents(). */
	__atomic_store_n(&session->lanes[index], lane, __ATOMIC_RELEASE);
	return lane;
}

static struct lane_item *wait_item(struct lane *lane)
{
	struct lane_item *item;
	struct vgpu_nap nap = {};

	pthread_mutex_lock(&lane->lock);
	while (!lane->queue)
		vgpu_nap_cond(&nap, &lane->filled, &lane->lock);
	item = lane->queue;
	lane->queue = item->next;
	lane->n_queued--;
	pthread_mutex_unlock(&lane->lock);
	return item;
}

static void release_item(struct lane *lane, struct lane_item *item)
{
	if (item != &lane->first_item) {
		free(item->frame);
		free(item);
	}
	pthread_mutex_lock(&lane->lock);
	if (item == &lane->first_item)
		lane->first_busy = false;
	lane->n_done++;
	pthread_mutex_unlock(&lane->lock);
	vgpu_wake_one(&lane->done);
}

/* Whether a call may give streams work, and its guest thread has more to say when it is
 * answered. One lane waits for callbacks all the time. */
static bool gives_work(const struct vgpu_frame *frame)
{
	return frame->call != VGPU_CALL_vgpuCallbackNext;
}

static void *lane_main(void *data)
{
	struct lane *lane = data;
	struct session *session = lane->session;
	struct lane_item *item;
	const char *why;
	int r;

	for (;;) {
		item = wait_item(lane);
		r = call_run(
			session, &lane->runner, lane, item->context, item->frame, &why);
		if (gives_work(item->frame)) {
			__atomic_sub_fetch(
				&session->fences.n_running, 1, __ATOMIC_RELEASE);
			dispatcher_wake(session);
		}
		if (r)
			session_end(session, VGPU_REASON_PROTOCOL, why);
		if (item->ordered)
			fence_lane_done(session);
		release_item(lane, item);
	}
	return NULL;
}

static int start(struct lane *lane)
{
	int r;

	if (lane->started)
		return 0;
	if (!lane->first_frame)
		lane->first_frame = aligned_alloc(VGPU_FRAME_ALIGN, VGPU_FRAME_MAX);
	if (!lane->first_frame)
		return vgpu_error_origin(-ENOMEM);
	if (!lane->runner.scratch.block) {
		r = scratch_init(&lane->runner.scratch);
		if (r)
			return vgpu_error_trace(r);
	}
	r = -pthread_create(&lane->thread, NULL, lane_main, lane);
	if (r)
		return vgpu_error_origin(r);
	pthread_detach(lane->thread);
	lane->started = true;
	return 0;
}

/* An item with room for the frame. A second one is needed where the next call comes
 * before the lane is done with the last, whose caller has its reply already. */
static struct lane_item *take_item(struct lane *lane, uint32_t size)
{
	struct lane_item *item;

	if (!lane->first_busy) {
		lane->first_busy = true;
		lane->first_item.frame = (struct vgpu_frame *)lane->first_frame;
		return &lane->first_item;
	}
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->frame = malloc(size);
	if (!item->frame) {
		free(item);
		return NULL;
	}
	return item;
}

static int post_locked(struct lane *lane, const struct vgpu_frame *frame, bool ordered)
{
	struct lane_item *item, **nextp;

	if (lane->n_queued >= LANE_QUEUE_MAX)
		return LANE_E_FULL;
	item = take_item(lane, frame->size);
	if (!item)
		return vgpu_error_origin(-ENOMEM);
	item->next = NULL;
	item->context = lane->context;
	item->ordered = ordered;
	memcpy(item->frame, frame, frame->size);
	for (nextp = &lane->queue; *nextp; nextp = &(*nextp)->next)
		;
	*nextp = item;
	lane->n_queued++;
	lane->n_posted++;
	return 0;
}

int lane_post(struct lane *lane, const struct vgpu_frame *frame, bool ordered)
{
	int r;

	r = start(lane);
	if (r)
		return vgpu_error_trace(r);
	if (ordered)
		fence_lane_begins(lane->session);
	/* Partner: fence_pay(), on this thread, and lane_main(). */
	if (gives_work(frame))
		__atomic_add_fetch(&lane->session->fences.n_running, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lane->lock);
	r = post_locked(lane, frame, ordered);
	pthread_mutex_unlock(&lane->lock);
	if (!r)
		vgpu_wake_one(&lane->filled);
	return r;
}

int lane_run(struct lane *lane, const struct vgpu_frame *frame, bool ordered)
{
	struct vgpu_nap nap = {};
	int r;

	r = lane_post(lane, frame, ordered);
	if (r)
		return r < 0 ? vgpu_error_trace(r) : r;
	pthread_mutex_lock(&lane->lock);
	while (lane->n_done != lane->n_posted)
		vgpu_nap_cond(&nap, &lane->done, &lane->lock);
	pthread_mutex_unlock(&lane->lock);
	return 0;
}

static struct stream *find_stream(struct lane *lane, const struct context *context)
{
	/* Partner: the store in add_stream(). */
	uint32_t i, n = __atomic_load_n(&lane->n_streams, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++)
		if (lane->streams[i]->context == context)
			return lane->streams[i];
	return NULL;
}

/* An entry for one more context: one whose context is gone, or a new one. */
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

/* Gives a stream of the driver its place, unless its context has ended meanwhile. */
static CUresult keep_stream(struct call *call, CUstream made, struct stream **streamp)
{
	struct stream *stream = NULL;
	CUresult result = CUDA_ERROR_CONTEXT_IS_DESTROYED;

	pthread_mutex_lock(&call->session->contexts.lock);
	if (context_is_same(call)) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
		stream = add_stream(call->lane);
	}
	if (stream) {
		stream->has_word = false;
		stream->due = false;
		stream->owes = false;
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
		/* The context is current: this call is one that needs it. */
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
	*streamp = find_stream(lane, call->context);
	if (*streamp)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lane->lock);
	result = make_stream(call, streamp);
	pthread_mutex_unlock(&lane->lock);
	return result;
}

void lane_exit(struct lane *lane, struct runner *runner)
{
	struct session *session = lane->session;
	uint32_t i;

	for (i = 0; i < lane->n_streams; i++) {
		struct stream *stream = lane->streams[i];

		if (!stream->context)
			continue;
		fence_forget(session, stream);
		capture_remove(session, stream, false);
		if (context_enter(session, runner, stream->context) == CUDA_SUCCESS)
			session->driver->table.cuStreamDestroy_v2(stream->object.driver);
		stream->context = NULL;
	}
	lane->context = 0;
}

void lane_forget_context(struct lane *lane, const struct context *context)
{
	struct stream *stream = find_stream(lane, context);

	if (stream)
		stream->context = NULL;
}
