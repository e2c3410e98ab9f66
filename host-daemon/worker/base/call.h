/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call, on whatever thread it runs
 *
 * What generated dispatch is given is in dispatch.h; this is what the dispatcher,
 * lanes and hand-written handlers need besides.
 */

#include "worker/base/objects.h"
#include "worker/handle/generated.h"

/*
 * Runs the call in a frame to its end: enters the context, dispatches, counts.
 *
 * @context:	handle of the lane's context when the call was submitted
 * @whyp:	on failure why the session must end
 *
 * Return: 0, or -EBADMSG where the guest broke the protocol.
 */
int call_run(struct session *session, struct runner *runner, struct lane *lane,
	uint64_t context, const struct vgpu_frame *frame, const char **whyp);

/* Prepares a call without running it, for those who look into a frame beforehand. */
void call_init(struct call *call, struct session *session, struct runner *runner,
	struct lane *lane, uint64_t context, const struct vgpu_frame *frame);

/* A callback that was refused, and nobody waits for the answer, goes back to the guest.
 */
void callback_give_back(struct call *call);

/* The call is about that context, too: a fault that it returns may be that one's. */
void call_names_context(struct call *call, struct context *context);

/* As object_get(), for handlers that need the worker's own entry. */
CUresult object_entry(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	struct object **objectp);

/* As object_add(), for an object that also goes away with `parent`. */
CUresult object_add_child(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, uint64_t *handlep);

/* Whether what the driver made for a call that failed then has to be destroyed. With its
 * context it has gone, or will go. */
static inline bool call_left_over(CUresult result)
{
	return result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* As object_add_like(), with contexts.lock. */
CUresult object_add_locked(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep);

/* The same for a kind whose entries have a state of their own: that of `like`. */
CUresult object_add_like(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep);

/* The stream of a handle, special ones included. */
CUresult stream_entry(struct call *call, uint64_t handle, struct stream **streamp);

/* Forgets what depends on a module or library that goes: functions, kernels, variables.
 */
void object_forget_children(struct call *call, const struct object *parent);
