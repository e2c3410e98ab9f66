/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatch: from a frame to the thread that runs it
 *
 * A call without a reply never blocks in the driver and is run at once, in the order of
 * submission. A call with a reply that may block is queued to the lane of its guest
 * thread; that thread waits, so no other call can depend on its order yet. There is no
 * other ordering rule.
 *
 * While a capture of a stream is live, each call is issued by its own lane's thread,
 * because the driver distinguishes threads then. The guest requests a reply to each call
 * meanwhile; if a call has none, the dispatcher waits until the lane has run it.
 */

#include <errno.h>

#include "g-handlers.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/handle/call-finish.h"
#include "worker/run/call-run.h"
#include "worker/run/dispatch.h"
#include "worker/run/lane-thread.h"
#include "worker/wait/marks.h"

/* Calls about the lane itself, which do not call the driver. */
static bool is_of_dispatcher(const struct vgpu_frame *frame)
{
	switch (frame->call) {
	case VGPU_CALL_vgpuLaneContext:
	case VGPU_CALL_vgpuStreamWord:
	case VGPU_CALL_vgpuCallbackDone:
		return true;
	default:
		return false;
	}
}

bool dispatch_goes_to_lane(const struct vgpu_frame *frame)
{
	return frame->flags & VGPU_FRAME_REPLY && !is_of_dispatcher(frame) &&
	       frame->call != VGPU_CALL_vgpuLaneExit &&
	       vgpu_call_flags[frame->call] & (VGPU_CALL_F_MAY_BLOCK | VGPU_CALL_F_ASYNC);
}

/* Whether the driver must identify the guest thread: during captures, and to reset the
 * capture mode of a thread that ends. */
static bool needs_thread(const struct session *session, const struct lane *lane,
	const struct vgpu_frame *frame)
{
	if (session_is_capturing(session))
		return !is_of_dispatcher(frame);
	return frame->call == VGPU_CALL_vgpuLaneExit &&
	       __atomic_load_n(&lane->capture_mode, __ATOMIC_RELAXED) !=
		       CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool dispatch_knows(const struct vgpu_frame *frame)
{
	return frame->call < _VGPU_CALL_N &&
	       vgpu_call_flags[frame->call] & VGPU_CALL_F_REMOTED;
}

/* Without a reply the guest would never learn that its work was not done. */
static int check_unknown(const struct vgpu_frame *frame, const char **whyp)
{
	if (!frame->call)
		*whyp = "a frame names no call";
	else if (frame->lane >= VGPU_SLOTS_MAX)
		*whyp = "a frame names a reply slot that does not exist";
	else if (!(frame->flags & VGPU_FRAME_REPLY))
		*whyp = "a frame asks for no reply to a call that this host does not "
			"know";
	else
		return 0;
	return CALL_E_VIOLATION;
}

/* A guest of a later release may make calls that this host does not know. */
static __attribute__((__noinline__)) int refuse_unknown(
	struct session *session, const struct vgpu_frame *frame, const char **whyp)
{
	static struct rate rate;
	struct lane *lane;
	struct call call;
	int r;

	r = check_unknown(frame, whyp);
	if (r)
		return r;
	lane = lane_get(session, frame->lane);
	if (!lane) {
		*whyp = "there is no memory for a lane";
		return vgpu_error_origin(-ENOMEM);
	}
	session->runner.n_calls++;
	call_init(&call, session, &session->runner, lane, 0, frame);
	call_finish_unknown(&call);
	if (rate_allows(&rate))
		vgpu_log_info("the guest makes call %u, which this host does not know: "
			      "the guest's release is a later one",
			frame->call);
	return 0;
}

static int check_frame(const struct vgpu_frame *frame, const char **whyp)
{
	if (frame->lane >= VGPU_SLOTS_MAX)
		*whyp = "a frame names a reply slot that does not exist";
	else if (!(frame->flags & VGPU_FRAME_REPLY) &&
		 !(vgpu_call_flags[frame->call] & VGPU_CALL_F_ASYNC))
		*whyp = "a frame asks for no reply to a call that has one";
	else
		return 0;
	return CALL_E_VIOLATION;
}

static int post(struct session *session, struct lane *lane,
	const struct vgpu_frame *frame, const char **whyp)
{
	bool ordered = vgpu_call_flags[frame->call] & VGPU_CALL_F_STREAM_ORDERED;
	int r;

	/* The session may end after the reply, which is the lane's. */
	session_count_own(session, &session->runner);
	/* Calls without a reply must keep ring order, so wait here. */
	if (frame->flags & VGPU_FRAME_REPLY)
		r = lane_post(lane, frame, ordered);
	else
		r = lane_run(lane, frame, ordered);
	if (r == LANE_E_FULL) {
		*whyp = "a thread has more calls under way than a thread can make";
		return CALL_E_VIOLATION;
	}
	if (r)
		*whyp = "there is no memory for a lane";
	return r;
}

/*
 * Examines a call that is about to be queued to its lane. For a cuStreamSynchronize it
 * makes the mark that covers all earlier work, so that the guest may see the completion
 * before the reply.
 *
 * Return: true for a wait for a stream that is complete.
 */
static bool mark_and_query(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame)
{
	const Vgpu__CuStreamSynchronizeRequest *request;
	struct stream *stream;
	struct call call;
	bool is_complete;

	if (frame->call != VGPU_CALL_cuStreamSynchronize)
		return false;
	call_init(&call, session, &session->runner, lane, lane->context, frame);
	if (context_enter(session, call.runner, call.current) != CUDA_SUCCESS)
		return false;
	request = (const Vgpu__CuStreamSynchronizeRequest *)call_unpack(
		&call, &vgpu__cu_stream_synchronize_request__descriptor);
	/* Errors are returned when the call is run. */
	if (!request ||
		object_find_stream(&call, request->h_stream, &stream) != CUDA_SUCCESS)
		return false;
	mark_cover(session, stream, request->target);
	mark_stream(session, call.runner, stream);
	is_complete = call.driver->cuStreamQuery &&
		      call.driver->cuStreamQuery(stream->object.driver) == CUDA_SUCCESS;
	context_leave_green(session, call.runner);
	return is_complete;
}

int dispatch_frame(
	struct session *session, const struct vgpu_frame *frame, const char **whyp)
{
	struct lane *lane;
	int r;

	if (__builtin_expect(!dispatch_knows(frame), 0))
		return refuse_unknown(session, frame, whyp);
	r = check_frame(frame, whyp);
	if (r)
		return r;
	lane = lane_get(session, frame->lane);
	if (!lane) {
		*whyp = "there is no memory for a lane";
		return vgpu_error_origin(-ENOMEM);
	}
	/* A wait for complete work does not block, and is cheaper than waking a lane. */
	if (needs_thread(session, lane, frame) ||
		(dispatch_goes_to_lane(frame) && !mark_and_query(session, lane, frame)))
		return post(session, lane, frame, whyp);
	return call_run(session, &session->runner, lane, lane->context, frame, whyp);
}
