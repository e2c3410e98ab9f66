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

/* No call refers to more contexts; faults of any further ones are not noted. */
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
	/* The lane of the calling guest thread, and the runner of the executing host
	 * thread: the dispatcher or that lane. */
	struct lane *lane;
	struct runner *runner;
	/* Current context of that lane; NULL if none. Made current in the driver
	 * before dispatch_call() for calls that need one. */
	struct context *context;
	/* The context to enter: a green one whose home is `context`, or the same. */
	struct context *current;
	/* Identify that context as of the start of the call, see
	 * call_context_is_same(). */
	uint32_t context_generation;
	uint32_t context_life;
	/* Private copy of the frame. */
	const struct vgpu_frame *frame;
	/* For unpacked messages and for handlers; freed at the end of the call. */
	ProtobufCAllocator *allocator;

	/* Results, for the function that runs the call. */
	CUresult result;       /* of the driver, also of a call without a reply */
	struct stream *stream; /* resolved last: the stream of a stream-ordered call */
	/* Contexts that were resolved, directly or through a stream or event. */
	struct context *named[CALL_NAMED_MAX];
	uint32_t n_named;
	const char *reason; /* with CALL_E_VIOLATION */
	bool replied;
	bool is_large; /* a launch that needs a mark right after it */
	/* The guest library asks for something of its own: that there is none is no error
	 * of the program. */
	bool is_lookup;
};

/* Prepares a call without running it, to examine its frame. */
void call_init(struct call *call, struct session *session, struct runner *runner,
	struct lane *lane, uint64_t context, const struct vgpu_frame *frame);

/* Decodes the body of the frame. Return: the message, or NULL (reason is set). */
const ProtobufCMessage *call_unpack(
	struct call *call, const ProtobufCMessageDescriptor *descriptor);

/* Allocates zeroed memory, which is freed at the end of the call; NULL beyond
 * SCRATCH_SIZE. */
void *call_alloc(struct call *call, size_t size);

/* The guest broke the protocol. Return: CALL_E_VIOLATION. */
int call_violation(struct call *call, const char *reason);

/* Notes that the call involves that context, too: a fault that it returns may belong to
 * it. */
static inline void call_names_context(struct call *call, struct context *context)
{
	for (uint32_t i = 0; i < call->n_named; i++)
		if (call->named[i] == context)
			return;
	if (call->n_named < CALL_NAMED_MAX)
		call->named[call->n_named++] = context;
}

/*
 * With contexts.lock: whether the context of a call has not been destroyed or reset since
 * the call began. If it has, objects that the driver created for the call are destroyed
 * with the old context and must not be added to the new one.
 */
bool call_context_is_same(const struct call *call);

/* Whether a failed call must destroy the object that the driver created for it. Objects
 * of a destroyed context are destroyed by the driver. */
static inline bool call_left_over(CUresult result)
{
	return result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
