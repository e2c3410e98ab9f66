/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, on whatever thread it runs
 */

#include <string.h>

#include "vgpu/unpack.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/scratch.h"
#include "worker/base/session.h"

void call_init(struct call *call, struct session *session, struct runner *runner,
	struct lane *lane, uint64_t context, const struct vgpu_frame *frame)
{
	scratch_reset(&runner->scratch);
	/* Field by field: clearing the whole structure costs more than the rest of this
	 * function. Elements of `named` beyond n_named are never read. */
	call->session = session;
	call->driver = &session->driver->table;
	call->lane = lane;
	call->runner = runner;
	call->current = context ? context_find(session, context) : NULL;
	call->context = context_home(call->current);
	call->context_generation =
		call->context ? __atomic_load_n(&call->context->object.generation,
					__ATOMIC_RELAXED)
			      : 0;
	call->context_life =
		call->context ? __atomic_load_n(&call->context->life, __ATOMIC_RELAXED)
			      : 0;
	call->frame = frame;
	call->allocator = &runner->scratch.allocator;
	call->result = CUDA_SUCCESS;
	call->stream = NULL;
	call->n_named = 0;
	call->reason = NULL;
	call->replied = false;
	call->is_large = false;
	call->is_lookup = false;
}

int call_violation(struct call *call, const char *reason)
{
	call->reason = reason;
	return CALL_E_VIOLATION;
}

const ProtobufCMessage *call_unpack(
	struct call *call, const ProtobufCMessageDescriptor *descriptor)
{
	const struct vgpu_frame *frame = call->frame;
	const ProtobufCMessage *message = vgpu_unpack(&vgpu_request_unpacker[frame->call],
		descriptor, call->allocator, frame->size - sizeof(*frame), frame->body);

	if (!message)
		call_violation(call, "a message does not unpack");
	return message;
}

void *call_alloc(struct call *call, size_t size)
{
	void *memory = call->allocator->alloc(call->allocator->allocator_data, size);

	return memory ? memset(memory, 0, size) : NULL;
}

bool call_context_is_same(const struct call *call)
{
	const struct context *context = call->context;

	return context && context->life == call->context_life && !context->is_leaving &&
	       context->object.generation == call->context_generation;
}
