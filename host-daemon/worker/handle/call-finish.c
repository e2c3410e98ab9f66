/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a call: its result and reply
 *
 * A reply is packed directly into the slot in shared memory: it is never read here, so a
 * guest that writes to the slot meanwhile harms only itself.
 */

#include <assert.h>
#include <limits.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/message.h"
#include "vgpu/pack.h"
#include "vgpu/reason.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/flight.h"
#include "worker/base/lane.h"
#include "worker/base/reason.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/handle/call-finish.h"
#include "worker/memory/mirror.h"
#include "worker/output/driver-output.h"
#include "worker/wait/faults.h"
#include "worker/wait/marks.h"

static struct vgpu_reply_slot *slot_of(struct call *call)
{
	struct vgpu_reply_slot *slots =
		(struct vgpu_reply_slot *)(call->session->area + VGPU_SLOTS_OFF);

	return &slots[call->lane->index];
}

static void publish(struct call *call, struct vgpu_reply_slot *slot, uint32_t size)
{
	__atomic_store_n(&slot->size, size, __ATOMIC_RELAXED);
	/* Partner: the guest's acquire load of its slot's sequence. */
	__atomic_store_n(&slot->sequence, call->frame->sequence, __ATOMIC_RELEASE);
	/* The guest sets `waiting`, then reads `sequence` again; here the order is
	 * reversed, so at least one of the two sees the other's store. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&slot->waiting, __ATOMIC_RELAXED))
		return;
	if (call->session->interrupt < 0)
		vgpu_wake_shared_word(&slot->sequence, INT_MAX);
	else if (vgpu_wake_eventfd(call->session->interrupt))
		vgpu_log_debug("the guest cannot be interrupted");
}

/* A reply with field 1, the result, only. */
static uint32_t pack_bare(uint8_t *body, CUresult result)
{
	uint32_t rest = result, size = 0;

	if (!rest)
		return 0;
	body[size++] = 1 << 3;
	for (; rest >= 0x80; rest >>= 7)
		body[size++] = rest | 0x80;
	body[size++] = rest;
	return size;
}

static void reply_with(struct call *call, const ProtobufCMessage *reply, CUresult result)
{
	const struct vgpu_packer *packer = &vgpu_reply_packer[call->frame->call];
	struct vgpu_reply_slot *slot = slot_of(call);
	size_t size;

	/* The guest reads it only after a failed call. */
	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		slot->reason = reason_settle(call, result);
	/* The description bounds every reply. */
	if (reply && packer->type == reply->descriptor) {
		assert(packer->bound(reply) <= VGPU_REPLY_MAX ||
			protobuf_c_message_get_packed_size(reply) <= VGPU_REPLY_MAX);
		size = packer->pack(reply, slot->body);
	} else if (reply) {
		assert(vgpu_message_bound(reply) <= VGPU_REPLY_MAX ||
			protobuf_c_message_get_packed_size(reply) <= VGPU_REPLY_MAX);
		size = vgpu_message_pack(reply, slot->body);
	} else {
		size = pack_bare(slot->body, result);
	}
	if (session_is_recorded(call->session))
		recorder_end(call->session, call->runner->number, call->frame, result,
			slot->body, size);
	publish(call, slot, size);
}

void call_finish_unknown(struct call *call)
{
	struct vgpu_reply_slot *slot = slot_of(call);
	uint32_t size;

	slot->reason = VGPU_REPLY_REASON_NONE;
	size = pack_bare(slot->body, CUDA_ERROR_NOT_SUPPORTED);
	flight_end(call->session, call->runner, CUDA_ERROR_NOT_SUPPORTED);
	if (session_is_recorded(call->session))
		recorder_end(call->session, call->runner->number, call->frame,
			CUDA_ERROR_NOT_SUPPORTED, slot->body, size);
	publish(call, slot, size);
	call->replied = true;
}

/* Enters a context and asks the driver whether it is broken. */
static bool query_fault(struct call *call, struct context *context)
{
	const struct vgpu_driver *driver = call->driver;

	return driver->cuStreamQuery &&
	       context_enter(call->session, call->runner, context) == CUDA_SUCCESS &&
	       fault_is_sticky(driver->cuStreamQuery(NULL));
}

/* A fault belongs to the current context or to one that the call involves: if there are
 * several, the driver is queried. */
static void note_fault(struct call *call)
{
	bool has_current = vgpu_call_flags[call->frame->call] & VGPU_CALL_F_CONTEXT;

	if (!fault_is_sticky(call->result))
		return;
	if (has_current && call->context)
		call_names_context(call, call->context);
	if (call->n_named == 1) {
		fault_note(call->session, call->named[0], call->result);
		return;
	}
	/* A query would invalidate captures. The fault is found by the next call that
	 * uses the context. */
	if (session_is_capturing(call->session))
		return;
	for (uint32_t i = 0; i < call->n_named; i++)
		if (query_fault(call, call->named[i]))
			fault_note(call->session, call->named[i], call->result);
}

/* A query of unfinished work does not fail. */
static bool has_failed(const struct call *call, CUresult result)
{
	return result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY &&
	       !call->is_lookup;
}

int call_finish(struct call *call, const ProtobufCMessage *reply, CUresult result)
{
	call->result = result;
	if (__builtin_expect(has_failed(call, result), 0))
		flight_note_error(call->session, call->frame->call, result);
	/* Before the reply: the guest checks the fault counter in memory at its next
	 * call. */
	note_fault(call);
	/* Before the reply: after it the guest may destroy the stream, whose entry can be
	 * reused then. */
	if (vgpu_call_flags[call->frame->call] & VGPU_CALL_F_STREAM_ORDERED &&
		call->stream) {
		mark_count(call->session, call->runner, call->stream);
		if (call->is_large)
			mark_want(call->session, call->runner, call->stream);
	}
	if (call->frame->flags & VGPU_FRAME_REPLY || !call->runner->is_dispatcher)
		session_count_own(call->session, call->runner);
	if (call->frame->flags & VGPU_FRAME_REPLY) {
		/* After a wait for kernels the guest finds their output. */
		if (vgpu_call_flags[call->frame->call] & VGPU_CALL_F_MAY_BLOCK)
			driver_output_collect();
		/* After waits and queries it finds its managed variables. */
		if (__builtin_expect(mirror_is_any(call->session), 0) &&
			result == CUDA_SUCCESS &&
			!(vgpu_call_flags[call->frame->call] &
				VGPU_CALL_F_STREAM_ORDERED))
			mirror_pull(call->session);
		reply_with(call, reply, result);
	} else if (session_is_recorded(call->session)) {
		recorder_end(call->session, call->runner->number, call->frame, result,
			NULL, 0);
	}
	/* Discards the reason of a call that has no reply, or that succeeded
	 * nevertheless. */
	reason_is_said = false;
	call->replied = true;
	return 0;
}
