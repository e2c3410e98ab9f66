/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatch: from the ring to the driver, in ring order
 *
 * A call without a reply never blocks in the driver and is run here, at once, in the
 * order of submission. A call with a reply that may block goes to the lane of its
 * guest thread; that thread waits, so nothing can depend on the call's place in
 * the order yet. That is the whole of the ordering rule.
 *
 * Stream capture would change it: while a capture is live, each call would have to be
 * issued by its own lane's thread while the dispatcher waits. Calls that begin a
 * capture are refused, so goes_to_lane() need not know.
 *
 * While calls flow the dispatcher looks at the ring without sleeping. It sleeps after
 * SPIN_NS without a call, by the ring's sleep protocol, on the channel's doorbell;
 * a guest that rings for nothing is listened to at a limited rate only. Without
 * doorbells it looks again after pauses that grow.
 *
 * The clock is read once per call: the end of one is the start of the next.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "worker/call.h"
#include "worker/handle-stream.h"
#include "vgpu/rate.h"
#include "worker/session.h"

/* A wake-up costs a caller more than ten microseconds. */
#define SPIN_NS 50000u
/* How many looks at the ring between two looks at the clock. */
#define SPIN_LOOKS 64u
/* Frames taken between two publications of the ring's head. */
#define RELEASE_EVERY 16u
#define SLOW_CALL_NS 1000000u
/* Pauses without doorbells: from this to that, doubling. */
#define PAUSE_MIN_NS 50000u
#define PAUSE_MAX_NS 4000000u
/* Rings for nothing in a row that are believed, and the pause for each one more. */
#define EMPTY_WAKES 16u
#define EMPTY_WAKE_NS 1000000u

/* What the loop remembers; the dispatcher's alone. */
struct loop {
	struct session *session;
	uint64_t now;	     /* when the last call ended */
	uint64_t idle_since; /* when the ring was found empty; 0: it was not */
	uint64_t pause;
	uint32_t n_taken;
	uint32_t n_looks;
	uint32_t n_empty_wakes;
	bool can_spin;
};

/* Whether a guest can write while we look: constant once prepared. */
static bool can_spin;

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
}

static void pause_for(uint64_t ns)
{
	struct timespec time = { ns / 1000000000u, ns % 1000000000u };

	nanosleep(&time, NULL);
}

/* Calls about the lane itself are the dispatcher's business in any case. */
static bool goes_to_lane(const struct vgpu_frame *frame)
{
	if (!(frame->flags & VGPU_FRAME_REPLY))
		return false;
	switch (frame->call) {
	case VGPU_CALL_vgpuLaneContext:
	case VGPU_CALL_vgpuLaneExit:
	case VGPU_CALL_vgpuStreamWord:
		return false;
	default:
		return vgpu_call_flags[frame->call] &
		       (VGPU_CALL_F_MAY_BLOCK | VGPU_CALL_F_ASYNC);
	}
}

static int check_frame(const struct vgpu_frame *frame, const char **whyp)
{
	if (frame->call >= _VGPU_CALL_N ||
		!(vgpu_call_flags[frame->call] & VGPU_CALL_F_REMOTED))
		*whyp = "a frame names a call that does not travel";
	else if (frame->lane >= VGPU_SLOTS_MAX)
		*whyp = "a frame names a reply slot that does not exist";
	else if (!(frame->flags & VGPU_FRAME_REPLY) &&
		 !(vgpu_call_flags[frame->call] & VGPU_CALL_F_ASYNC))
		*whyp = "a frame asks for no reply to a call that has one";
	else
		return 0;
	return -EBADMSG;
}

static int post(struct session *session, struct lane *lane,
	const struct vgpu_frame *frame, const char **whyp)
{
	bool ordered = vgpu_call_flags[frame->call] & VGPU_CALL_F_STREAM_ORDERED;
	int r;

	r = lane_post(lane, frame, ordered);
	if (r == LANE_E_FULL) {
		*whyp = "a thread has more calls under way than a thread can make";
		return -EBADMSG;
	}
	if (r)
		*whyp = "there is no memory for a lane";
	return r;
}

int dispatch_frame(
	struct session *session, const struct vgpu_frame *frame, const char **whyp)
{
	struct lane *lane;
	int r;

	r = check_frame(frame, whyp);
	if (r)
		return r;
	lane = lane_get(session, frame->lane);
	if (!lane) {
		*whyp = "there is no memory for a lane";
		return -ENOMEM;
	}
	/* A wait for work that is done does not block, and waking a lane costs more. */
	if (goes_to_lane(frame) && !stream_wait_is_over(session, lane, frame))
		return post(session, lane, frame, whyp);
	return call_run(session, &session->runner, lane, lane->context, frame, whyp);
}

static void note_time(struct loop *loop, const struct vgpu_frame *frame)
{
	static struct rate rate;
	uint64_t before = loop->now;

	loop->now = clock_now();
	/* Where a lane runs the call, what passed here was the scheduler's. */
	if (loop->now - before < SLOW_CALL_NS || goes_to_lane(frame))
		return;
	session_count(loop->session, slow_calls, 1);
	if (rate_allows(&rate))
		vgpu_log_info("VM %s: %s held the dispatcher for %llu us.",
			loop->session->vm, vgpu_call_name(frame->call),
			(unsigned long long)(loop->now - before) / 1000);
}

static void take(struct loop *loop, const struct vgpu_frame *frame)
{
	struct session *session = loop->session;
	const char *why = NULL;
	char text[160];
	int r;

	/* The wait for this frame is no part of its call. */
	if (loop->idle_since)
		loop->now = clock_now();
	r = dispatch_frame(session, frame, &why);
	if (r == -EBADMSG) {
		snprintf(text, sizeof(text), "%s (call %u, %s, lane %u)", why,
			frame->call, vgpu_call_name(frame->call), frame->lane);
		session_end(session, VGPU_REASON_PROTOCOL, text);
	}
	if (r)
		session_end(session, VGPU_REASON_HOST, why);
	note_time(loop, frame);
	loop->idle_since = 0;
	loop->n_looks = 0;
	loop->n_empty_wakes = 0;
	loop->pause = PAUSE_MIN_NS;
	if (++loop->n_taken % RELEASE_EVERY)
		return;
	vgpu_ring_release(&session->consumer);
	fence_run_due(session, &session->runner);
}

static void wait_for_doorbell(struct loop *loop)
{
	struct pollfd fd = { .fd = loop->session->doorbell, .events = POLLIN };
	uint64_t count;

	if (loop->n_empty_wakes > EMPTY_WAKES)
		pause_for(EMPTY_WAKE_NS);
	poll(&fd, 1, -1);
	if (read(fd.fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		session_end(
			loop->session, VGPU_REASON_HOST, "the doorbell cannot be read");
	loop->n_empty_wakes++;
}

static void sleep_until_called(struct loop *loop)
{
	struct session *session = loop->session;

	if (session->poll) {
		pause_for(loop->pause);
		if (loop->pause < PAUSE_MAX_NS)
			loop->pause *= 2;
		return;
	}
	/* A lane that made marks possible rings only while it knows of any: look again
	 * after announcing sleep, as with frames. Partner: fence_lane_done(). */
	if (vgpu_ring_prepare_sleep(&session->consumer) && !fence_has_due(session))
		wait_for_doorbell(loop);
	vgpu_ring_awake(&session->consumer);
}

static void idle(struct loop *loop)
{
	struct session *session = loop->session;

	if (!loop->n_looks)
		vgpu_ring_release(&session->consumer);
	fence_run_due(session, &session->runner);
	if (loop->can_spin && ++loop->n_looks % SPIN_LOOKS) {
		__builtin_ia32_pause();
		return;
	}
	loop->now = clock_now();
	if (!loop->idle_since)
		loop->idle_since = loop->now;
	if (loop->can_spin && loop->now - loop->idle_since < SPIN_NS)
		return;
	sleep_until_called(loop);
	/* After a ring for nothing it sleeps again at once. */
	loop->idle_since = loop->n_empty_wakes > 1 ? 1 : 0;
}

void dispatch_prepare(void)
{
	can_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

void *dispatch_main(void *data)
{
	struct session *session = data;
	struct loop loop = {
		.session = session,
		.now = clock_now(),
		.pause = PAUSE_MIN_NS,
		.can_spin = can_spin,
	};
	const struct vgpu_frame *frame;
	int r;

	for (;;) {
		r = vgpu_ring_next(&session->consumer, &frame);
		if (!r)
			take(&loop, frame);
		else if (r == VGPU_RING_E_EMPTY)
			idle(&loop);
		else
			session_end(
				session, VGPU_REASON_PROTOCOL, session->consumer.reason);
	}
	return NULL;
}
