/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call, on whatever thread it runs
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "vgpu/cuda.h"
#include "vgpu/frame.h"

struct context;
struct lane;
struct runner;
struct session;
struct stream;
struct vgpu_driver;

/* No call names more contexts; of what is beyond, faults are not noted. */
#define CALL_NAMED_MAX 4u

enum {
	_CALL_E_SUCCESS,

	CALL_E_VIOLATION, /* the guest broke the protocol: its session has to end */
};

/*
 * One call in execution, by the dispatcher or by the lane of its guest thread. On the
 * stack of dispatch_frame(); nothing in it outlives the call.
 */
struct call {
	struct session *session;
	const struct vgpu_driver *driver;
	/* The lane of the guest thread that called, and what the thread that runs the
	 * call keeps: the dispatcher's, or that lane's. */
	struct lane *lane;
	struct runner *runner;
	/* Current context of that lane; NULL if none. Made current in the driver
	 * before dispatch_call() for calls that need one. */
	struct context *context;
	/* Which one it was when the call began, see call_context_is_same(). */
	uint32_t context_generation;
	uint32_t context_life;
	/* Private copy of the frame. */
	const struct vgpu_frame *frame;
	/* Memory of unpacked messages and of handlers, gone with the call. */
	ProtobufCAllocator *allocator;

	/* Results, for those who run the call. */
	CUresult result;       /* of the driver, also where no reply was asked for */
	struct stream *stream; /* resolved last: what a stream-ordered call went to */
	/* Contexts that were resolved, or whose stream or event was. */
	struct context *named[CALL_NAMED_MAX];
	uint32_t n_named;
	const char *reason; /* why the guest broke the protocol, with VIOLATION */
	bool replied;
	bool is_large; /* a launch after which the guest wants to see progress */
};

/* Prepares a call without running it, for those who look into a frame beforehand. */
void call_init(struct call *call, struct session *session, struct runner *runner,
	struct lane *lane, uint64_t context, const struct vgpu_frame *frame);

/* Decodes the body of the frame. Return: the message, or NULL (reason is set). */
const ProtobufCMessage *call_unpack(
	struct call *call, const ProtobufCMessageDescriptor *descriptor);

/* Memory that lives as long as the call, zeroed; NULL when the call asks too much. */
void *call_alloc(struct call *call, size_t size);

/* The guest broke the protocol. Return: CALL_E_VIOLATION. */
int call_violation(struct call *call, const char *reason);

/* The call is about that context, too: a fault that it returns may be that one's. */
static inline void call_names_context(struct call *call, struct context *context)
{
	for (uint32_t i = 0; i < call->n_named; i++)
		if (call->named[i] == context)
			return;
	if (call->n_named < CALL_NAMED_MAX)
		call->named[call->n_named++] = context;
}

/*
 * With contexts.lock: whether the context of a call has all the time been what it was
 * when the call began. If not, what the driver made for the call has gone or will go, and
 * is not to be noted as the context's.
 */
bool call_context_is_same(const struct call *call);

/* Whether what the driver made for a call that failed then has to be destroyed. With its
 * context it has gone, or will go. */
static inline bool call_left_over(CUresult result)
{
	return result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
