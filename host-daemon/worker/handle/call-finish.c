/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: how a call ends
 *
 * A reply is packed straight into the slot in shared memory: it is output only, so
 * what the guest does to the slot meanwhile can only spoil what the guest reads.
 */

#include <assert.h>
#include <limits.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/message.h"
#include "vgpu/pack.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/handle/call-finish.h"
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
	/* The guest sets waiting, then looks at sequence again; here it is the other
	 * way round, and whoever comes second sees the other. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&slot->waiting, __ATOMIC_RELAXED))
		return;
	if (call->session->interrupt < 0)
		vgpu_wake_shared_word(&slot->sequence, INT_MAX);
	else if (vgpu_wake_eventfd(call->session->interrupt))
		vgpu_log_debug("the guest cannot be interrupted");
}

/* A reply that is nothing but field 1, the result. */
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

	/* Nobody looks at it after a call that succeeded. */
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
	publish(call, slot, size);
}

/* Whether the driver says that a context is broken. */
static bool query_fault(struct call *call, struct context *context)
{
	const struct vgpu_driver *driver = call->driver;

	return driver->cuStreamQuery &&
	       context_enter(call->session, call->runner, context) == CUDA_SUCCESS &&
	       fault_is_sticky(driver->cuStreamQuery(NULL));
}

/* A fault may be of the context that is current, or of one that the call is about: where
 * these are several, the driver knows which. */
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
	/* To ask would spoil captures; then who asks for the context itself is told. */
	if (session_is_capturing(call->session))
		return;
	for (uint32_t i = 0; i < call->n_named; i++)
		if (query_fault(call, call->named[i]))
			fault_note(call->session, call->named[i], call->result);
}

int call_finish(struct call *call, const ProtobufCMessage *reply, CUresult result)
{
	call->result = result;
	/* Whoever is told of a fault has it from memory at the next call. */
	note_fault(call);
	/* A caller that was answered may destroy the stream, whose entry is then that
	 * of another. */
	if (vgpu_call_flags[call->frame->call] & VGPU_CALL_F_STREAM_ORDERED &&
		call->stream) {
		mark_count(call->session, call->runner, call->stream);
		if (call->is_large)
			mark_want(call->session, call->runner, call->stream);
	}
	if (call->frame->flags & VGPU_FRAME_REPLY || !call->runner->is_dispatcher)
		session_count_own(call->session, call->runner);
	if (call->frame->flags & VGPU_FRAME_REPLY) {
		/* Whoever waited for kernels finds what they printed. */
		if (vgpu_call_flags[call->frame->call] & VGPU_CALL_F_MAY_BLOCK)
			driver_output_collect();
		reply_with(call, reply, result);
	}
	/* What was said of a call that nobody waits for, or that succeeded all the same.
	 */
	reason_is_said = false;
	call->replied = true;
	return 0;
}
