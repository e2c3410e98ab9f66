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
#include "worker/base/flight.h"
#include "worker/base/lane.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/handle/call-finish.h"
#include "worker/handle/copy.h"
#include "worker/run/call-run.h"
#include "worker/run/dispatch.h"
#include "worker/run/lane-thread.h"
#include "worker/run/recorded.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"
#include "worker/wait/meter.h"

#define LIBRARY_LANES_MAX 2u

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

/* Return: 0 or -ENOMEM. */
static int find_lane(struct session *session, const struct vgpu_frame *frame,
	struct lane **lanep, const char **whyp)
{
	*lanep = lane_get(session, frame->lane);
	if (*lanep)
		return 0;
	*whyp = "there is no memory for a lane";
	return vgpu_error_origin(-ENOMEM);
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
	r = find_lane(session, frame, &lane, whyp);
	if (r)
		return vgpu_error_trace(r);
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

	session->runner.gave_to_lane = true;
	/* It may wait for the work before it. */
	meter_flush(session, &session->runner);
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
	else if (session_is_recorded(session))
		recorded_wait(session, lane, frame);
	return r;
}

/* The guest library's own threads: for callbacks, and for notices. */
static bool is_of_library(const struct vgpu_frame *frame)
{
	return frame->call == VGPU_CALL_vgpuCallbackNext ||
	       frame->call == VGPU_CALL_vgpuNoticeNext;
}

/* Return: whether the lane is one of those that max-threads permits. */
static __attribute__((__noinline__)) bool admit(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame)
{
	if (frame->call == VGPU_CALL_vgpuLaneExit)
		return false;
	lane->is_of_library =
		is_of_library(frame) && session->n_library_lanes < LIBRARY_LANES_MAX;
	if (lane->is_of_library)
		session->n_library_lanes++;
	else if (session->n_lanes < session->lanes_max)
		session->n_lanes++;
	else
		return false;
	lane->is_admitted = true;
	return true;
}

/* After a guest thread has ended: while there are more than a lowered limit permits, no
 * other one gets its place. The host's thread of the lane stays, so there are never more
 * of these than the highest limit so far. */
static void dismiss(struct session *session, struct lane *lane)
{
	if (lane->is_of_library || session->n_lanes <= session->lanes_max)
		return;
	lane->is_admitted = false;
	session->n_lanes--;
}

/*
 * A call of a guest thread beyond max-threads. Work without a reply is not lost: it never
 * blocks, so it is run here, as is the question why the last call was refused.
 */
static __attribute__((__noinline__)) int run_unadmitted(struct session *session,
	struct lane *lane, const struct vgpu_frame *frame, const char **whyp)
{
	struct call call;

	if (!(frame->flags & VGPU_FRAME_REPLY) ||
		frame->call == VGPU_CALL_vgpuReasonFetch)
		return call_run(
			session, &session->runner, lane, lane->context, frame, whyp);
	session->runner.n_calls++;
	call_init(&call, session, &session->runner, lane, 0, frame);
	reason_say(VGPU_REPLY_REASON_LIMIT,
		"a process of this VM may have %u threads that use the GPU: max-threads "
		"= in vgpud.conf on the host sets that",
		session->lanes_max);
	copy_give_back(&call);
	flight_end(session, call.runner, CUDA_ERROR_OUT_OF_MEMORY);
	return call_finish(&call, NULL, CUDA_ERROR_OUT_OF_MEMORY);
}

/* Whether a stream is complete, and remains so until the dispatcher submits work: while
 * lanes run, they may submit some, and a callback in it would wait for the dispatcher. */
static bool is_at_rest(const struct call *call, const struct stream *stream)
{
	/* Partner: lane_main(). */
	if (__atomic_load_n(&call->session->debts->n_running, __ATOMIC_ACQUIRE))
		return false;
	return call->driver->cuStreamQuery &&
	       call->driver->cuStreamQuery(stream->object.driver) == CUDA_SUCCESS;
}

/*
 * Examines a call that is about to be queued to its lane. For a cuStreamSynchronize it
 * makes the mark that covers all earlier work, so that the guest may see the completion
 * before the reply.
 *
 * Return: true for a wait that does not block.
 */
static bool mark_and_query(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame)
{
	const Vgpu__CuStreamSynchronizeRequest *request;
	struct stream *stream;
	struct call call;
	bool never_blocks;

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
	never_blocks = is_at_rest(&call, stream);
	context_leave_green(session, call.runner);
	return never_blocks;
}

/* Those that only end something, or are about other things, as programs make them when
 * they have been idle. */
bool dispatch_uses_memory(const struct vgpu_frame *frame)
{
	switch (frame->call) {
	case VGPU_CALL_vgpuLaneExit:
	case VGPU_CALL_vgpuLaneContext:
	case VGPU_CALL_vgpuCallbackDone:
	case VGPU_CALL_vgpuCallbackNext:
	case VGPU_CALL_vgpuNoticeNext:
	case VGPU_CALL_vgpuReasonFetch:
	case VGPU_CALL_cuMemFree_v2:
	case VGPU_CALL_cuMemGetInfo_v2:
	case VGPU_CALL_cuCtxDestroy_v2:
	case VGPU_CALL_cuDevicePrimaryCtxRelease_v2:
	case VGPU_CALL_cuDevicePrimaryCtxReset_v2:
		return false;
	default:
		return true;
	}
}

int dispatch_refuse(struct session *session, const struct vgpu_frame *frame,
	CUresult result, const char **whyp)
{
	struct lane *lane;
	int r;

	r = check_frame(frame, whyp);
	if (r)
		return r;
	r = find_lane(session, frame, &lane, whyp);
	if (r)
		return vgpu_error_trace(r);
	return call_refuse(session, lane, frame, result, whyp);
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
	r = find_lane(session, frame, &lane, whyp);
	if (r)
		return vgpu_error_trace(r);
	if (__builtin_expect(!lane->is_admitted, 0) && !admit(session, lane, frame))
		return run_unadmitted(session, lane, frame, whyp);
	/* A wait for complete work does not block, and is cheaper than waking a lane. */
	if (needs_thread(session, lane, frame) ||
		(dispatch_goes_to_lane(frame) && !mark_and_query(session, lane, frame)))
		r = post(session, lane, frame, whyp);
	else
		r = call_run(session, &session->runner, lane, lane->context, frame, whyp);
	if (__builtin_expect(frame->call == VGPU_CALL_vgpuLaneExit, 0))
		dismiss(session, lane);
	return r;
}
