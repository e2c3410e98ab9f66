/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a call from its frame to its reply
 */

#include <assert.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/flight.h"
#include "worker/base/lane.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"
#include "worker/handle/call-finish.h"
#include "worker/handle/callback.h"
#include "worker/handle/copy.h"
#include "worker/handle/generated.h"
#include "worker/memory/mirror.h"
#include "worker/run/call-run.h"
#include "worker/wait/faults.h"
#include "worker/wait/meter.h"

static CUresult enter(struct call *call, uint64_t context)
{
	if (context && !call->current)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return context_enter(call->session, call->runner, call->current);
}

/* Refused calls without a reply are counted and logged. */
static void note_result(struct call *call)
{
	static struct rate rate;

	if (call->result == CUDA_SUCCESS || fault_is_sticky(call->result) ||
		call->frame->flags & VGPU_FRAME_REPLY)
		return;
	session_count(call->session, refused_async, 1);
	if (rate_allows(&rate))
		vgpu_log_warning("%s was refused with %d, and has no reply",
			vgpu_call_name(call->frame->call), call->result);
}

/* Runs a call, or ends it with a result without running it. */
static int run(struct session *session, struct runner *runner, struct lane *lane,
	uint64_t context, const struct vgpu_frame *frame, CUresult result,
	const char **whyp)
{
	uint32_t flags = vgpu_call_flags[frame->call];
	struct call call;
	int r;

	runner->n_calls++;
	if (__builtin_expect(session->stream_fn != NULL, 0))
		meter_admit(session, runner, frame->call);
	if (session_is_recorded(session))
		recorder_run(session, runner->number, frame);
	call_init(&call, session, runner, lane, context, frame);
	if (__builtin_expect(mirror_is_any(session), 0))
		mirror_push(session);
	if (result == CUDA_SUCCESS && flags & VGPU_CALL_F_CONTEXT)
		result = enter(&call, context);
	if (result == CUDA_SUCCESS) {
		r = dispatch_call(&call);
	} else {
		copy_give_back(&call);
		r = call_finish(&call, NULL, result);
	}
	if (__builtin_expect(session->stream_fn != NULL, 0))
		meter_submitted(runner);
	flight_end(session, runner, call.result);
	uses_end(&call);
	context_leave_green(session, runner);
	if (!r && call.result != CUDA_SUCCESS && !(frame->flags & VGPU_FRAME_REPLY))
		callback_give_back(&call);
	if (r) {
		*whyp = call.reason ? call.reason : "a call cannot be decoded";
		return r;
	}
	assert(call.replied);
	note_result(&call);
	return 0;
}

int call_run(struct session *session, struct runner *runner, struct lane *lane,
	uint64_t context, const struct vgpu_frame *frame, const char **whyp)
{
	return run(session, runner, lane, context, frame, CUDA_SUCCESS, whyp);
}

int call_refuse(struct session *session, struct lane *lane,
	const struct vgpu_frame *frame, CUresult result, const char **whyp)
{
	return run(session, &session->runner, lane, lane->context, frame, result, whyp);
}
