/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Dispatch: from a frame to its driver call
 *
 * This is the whole interface between the worker and generated code (g-dispatch*.c,
 * g-attributes.c). Generated code decodes the message of a call, resolves its handles,
 * checks its ranges, calls the driver or a hand-written handler, and packs the reply. All
 * state is accessed through the functions below.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "vgpu/cuda.h"
#include "vgpu/frame.h"
#include "vgpu/handle.h"

struct context;
struct lane;
struct object;
struct runner;
struct session;
struct stream;
struct vgpu_driver;

/* No call names more contexts; of what is beyond, faults are not noted. */
#define CALL_NAMED_MAX 4u

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
	/* Which one it was when the call began, see context_is_same(). */
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
	const char *reason; /* why the guest broke the protocol, with -EBADMSG */
	bool replied;
	bool is_large; /* a launch after which the guest wants to see progress */
};

/*
 * Runs one call (generated: a table of all remoted calls).
 *
 * Return: 0 once the call was executed, whatever the driver said; -EBADMSG where
 *	   the guest broke the protocol and the session must end: no such call, a
 *	   message that does not unpack.
 */
int dispatch_call(struct call *call);

/*
 * The value of a device attribute for guests, if the description replaces the driver's
 * (generated).
 *
 * Return: whether *valuep was set.
 */
bool attribute_answer(CUdevice_attribute attribute, int *valuep);

/* Decodes the body of the frame. Return: the message, or NULL (reason is set). */
const ProtobufCMessage *call_unpack(
	struct call *call, const ProtobufCMessageDescriptor *descriptor);

/*
 * Ends a call: notes the result and, where a reply was asked for, packs `reply`
 * into the caller's slot and wakes the caller. `reply` may be NULL for calls
 * whose reply is a bare result.
 *
 * Return: 0 (what dispatch_call() returns).
 */
int call_finish(struct call *call, const ProtobufCMessage *reply, CUresult result);

/* Memory that lives as long as the call, zeroed; NULL when the call asks too much. */
void *call_alloc(struct call *call, size_t size);

/* The guest broke the protocol. Return: -EBADMSG. */
int call_violation(struct call *call, const char *reason);

/*
 * Handles. The driver's object for a guest's handle of that kind.
 *
 * VGPU_HANDLE_FUNCTION also accepts kernels. VGPU_HANDLE_STREAM accepts 0, 1 (the
 * context's legacy stream) and 2 (the lane's per-thread stream). With null_ok, handle 0
 * of any other kind gives NULL.
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE (contexts: _INVALID_CONTEXT, graphs and
 * their parts: _INVALID_VALUE).
 */
CUresult object_get(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	bool null_ok, void **driver_handlep);

/*
 * Allocates a handle for a new driver object. It belongs to the lane's current context
 * (libraries, kernels and contexts: to none). An object that has a handle already keeps
 * it, because functions and kernels are looked up repeatedly.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY beyond the session's limits: the
 * caller then destroys the driver object.
 */
CUresult object_add(struct call *call, enum vgpu_handle_kind kind, void *driver_handle,
	uint64_t *handlep);

/* As object_add(), under a handle that the guest chose, with the state of `like`. */
CUresult object_add_at(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver_handle, const struct object *like);

/*
 * Takes an object out of its table, whatever the driver will say to its destruction.
 *
 * Return: as object_get().
 */
CUresult object_take(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void **driver_handlep);

/*
 * Ranges. Whether [address, address + size) is within one live allocation of device
 * memory or within the channel's arena.
 *
 * Return: CUDA_SUCCESS or CUDA_ERROR_INVALID_VALUE.
 */
CUresult range_check(struct call *call, uint64_t address, uint64_t size);

/* Whether the call of a checked frame is for the lane of its guest thread: that waits for
 * it, and it may block. */
bool dispatch_goes_to_lane(const struct vgpu_frame *frame);

/*
 * One frame, as the dispatcher does it: checks it, and runs the call or hands it to its
 * lane.
 *
 * Return: 0, or -errno with the reason for the session's end.
 */
int dispatch_frame(
	struct session *session, const struct vgpu_frame *frame, const char **whyp);
