/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lane threads: run the calls of a guest thread that may block
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/lane.h"
#include "worker/base/scratch.h"
#include "worker/base/session.h"
#include "worker/base/trace.h"
#include "worker/run/call-run.h"
#include "worker/run/dispatcher.h"
#include "worker/run/lane-thread.h"
#include "worker/run/latency.h"
#include "worker/run/session-life.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"

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

/* Whether a call may submit work to streams, and its guest thread will send more calls
 * after the reply. Not so for the lanes that always wait for callbacks and notices. */
static bool gives_work(const struct vgpu_frame *frame)
{
	return frame->call != VGPU_CALL_vgpuCallbackNext &&
	       frame->call != VGPU_CALL_vgpuNoticeNext;
}

static int run(struct lane *lane, const struct lane_item *item, const char **whyp)
{
	struct session *session = lane->session;
	const bool is_traced = trace_is_on(session);
	int r;

	if (is_traced) {
		trace_call_number = item->number;
		trace_add(session, TRACE_RUN, item->frame, item->number, 0);
	}
	r = call_run(session, &lane->runner, lane, item->context, item->frame, whyp);
	if (is_traced) {
		trace_add(session, TRACE_RAN, item->frame, item->number, 0);
		trace_call_number = 0;
	}
	return r;
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
		lane->runner.number = item->number;
		r = run(lane, item, &why);
		if (gives_work(item->frame)) {
			latency_add_shared(session->latency, item->frame->call,
				latency_now() - item->began);
			__atomic_sub_fetch(
				&session->debts->n_running, 1, __ATOMIC_RELEASE);
			dispatcher_wake(session);
		}
		if (r)
			session_end(session, VGPU_REASON_PROTOCOL, why);
		if (item->ordered)
			marks_lane_done(session);
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

/* An item with memory for the frame. A second one is needed if the next call arrives
 * after the reply to the last one, but before the lane has released its item. */
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
	item->number = lane->session->runner.number;
	item->ordered = ordered;
	item->began = latency_now();
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
		marks_lane_begins(lane->session);
	/* Partner: debts_pay(), on this thread, and lane_main(). */
	if (gives_work(frame))
		__atomic_add_fetch(&lane->session->debts->n_running, 1, __ATOMIC_RELAXED);
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

int lane_wait(struct lane *lane, uint32_t ms)
{
	struct vgpu_nap nap = {};
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&lane->lock);
	while (!r && lane->n_done != lane->n_posted)
		r = vgpu_nap_cond_until(&nap, &lane->done, &lane->lock, &until);
	r = lane->n_done != lane->n_posted ? -ETIMEDOUT : 0;
	pthread_mutex_unlock(&lane->lock);
	return r;
}
