/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: the guest's names for objects of the driver
 */

#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane-stream.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/ranges.h"
#include "worker/base/reason.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"

/* Streams that are not objects: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. */
#define STREAM_NULL 0u
#define STREAM_LEGACY 1u
#define STREAM_PER_THREAD 2u

static CUresult no_such(enum vgpu_handle_kind kind)
{
	switch (kind) {
	case VGPU_HANDLE_CONTEXT:
	case VGPU_HANDLE_GREEN:
		return CUDA_ERROR_INVALID_CONTEXT;
	/* The only error that CUDA documents for them. */
	case VGPU_HANDLE_GRAPH:
	case VGPU_HANDLE_GRAPH_NODE:
	case VGPU_HANDLE_GRAPH_EXEC:
	case VGPU_HANDLE_ALLOCATION:
	case VGPU_HANDLE_USER_OBJECT:
	case VGPU_HANDLE_CONDITION:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_HANDLE;
	}
}

static struct object_table *table_of(struct call *call, enum vgpu_handle_kind kind)
{
	return kind == VGPU_HANDLE_CONTEXT ? &call->session->contexts.table
					   : &call->session->objects[kind];
}

static CUresult find_stream(struct call *call, uint64_t handle, struct stream **streamp)
{
	if (handle == STREAM_PER_THREAD)
		return lane_stream(call, streamp);
	if (handle > STREAM_PER_THREAD) {
		*streamp = (struct stream *)object_table_find(
			table_of(call, VGPU_HANDLE_STREAM), handle);
		return *streamp ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	if (!call->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*streamp = &call->current->legacy;
	/* Set at the first use, before the stream can have marks or debts. */
	if (!(*streamp)->context)
		(*streamp)->context = call->current;
	return CUDA_SUCCESS;
}

CUresult object_find_stream(struct call *call, uint64_t handle, struct stream **streamp)
{
	CUresult result = find_stream(call, handle, streamp);

	if (result == CUDA_SUCCESS && (*streamp)->context)
		call_names_context(call, (*streamp)->context);
	return result;
}

/* A graph, an executable one, or that of a node. */
static void record_graph(
	struct call *call, enum vgpu_handle_kind kind, const struct object *object)
{
	if (kind == VGPU_HANDLE_GRAPH_NODE) {
		kind = VGPU_HANDLE_GRAPH;
		object = object->parent;
	}
	if (object && (kind == VGPU_HANDLE_GRAPH || kind == VGPU_HANDLE_GRAPH_EXEC))
		recorder_name_graph(
			call->session, object_handle(table_of(call, kind), object));
}

CUresult object_find(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	struct object **objectp)
{
	if (kind == VGPU_HANDLE_STREAM)
		return object_find_stream(call, handle, (struct stream **)objectp);
	/* Kernels are accepted wherever functions are. */
	if (kind == VGPU_HANDLE_FUNCTION &&
		vgpu_handle_kind(handle) == VGPU_HANDLE_KERNEL)
		kind = VGPU_HANDLE_KERNEL;
	*objectp = object_table_find(table_of(call, kind), handle);
	if (!*objectp)
		return no_such(kind);
	if (session_is_recorded(call->session))
		record_graph(call, kind, *objectp);
	/* An owner is a context. */
	if ((*objectp)->owner)
		call_names_context(call, (struct context *)(*objectp)->owner);
	return CUDA_SUCCESS;
}

/* Retaining a primary context makes it current: restore the call's own context. */
static CUresult name_context(struct call *call, struct context *context)
{
	CUresult result;

	call_names_context(call, context);
	result = context_ensure(call->session, call->runner, context);
	if (result == CUDA_SUCCESS &&
		vgpu_call_flags[call->frame->call] & VGPU_CALL_F_CONTEXT)
		result = context_enter(call->session, call->runner, call->current);
	return result;
}

CUresult object_get(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	bool null_ok, void **driver_handlep)
{
	struct object *object;
	CUresult result;

	if (!handle && null_ok && kind != VGPU_HANDLE_STREAM) {
		*driver_handlep = NULL;
		return CUDA_SUCCESS;
	}
	result = object_find(call, kind, handle, &object);
	if (result != CUDA_SUCCESS)
		return result;
	if (kind == VGPU_HANDLE_STREAM)
		call->stream = (struct stream *)object;
	if (kind == VGPU_HANDLE_CONTEXT) {
		result = name_context(call, (struct context *)object);
		if (result != CUDA_SUCCESS)
			return result;
	}
	*driver_handlep = object->driver;
	if (use_is_noted(call, kind, handle))
		result = use_begin(call, kind, handle, object->driver, object->owner);
	if (kind == VGPU_HANDLE_STREAM && result == CUDA_SUCCESS &&
		__builtin_expect(call->session->stream_fn != NULL, 0))
		call->session->stream_fn(call, (struct stream *)object);
	return result;
}

static CUresult no_object(const struct call *call, int r)
{
	if (r == OBJECTS_E_LIMIT)
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"a process of this VM may have %u streams, events, kernels and "
			"other objects at once: handles = in vgpud.conf on the host sets "
			"that",
			call->session->totals.n_max);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Libraries, their kernels, graphs and mapped memory outlive contexts. A link has state
 * in the worker that only its destruction frees. */
static bool is_free_standing(enum vgpu_handle_kind kind)
{
	return kind == VGPU_HANDLE_LIBRARY || kind == VGPU_HANDLE_KERNEL ||
	       kind == VGPU_HANDLE_LINK || kind == VGPU_HANDLE_GRAPH ||
	       kind == VGPU_HANDLE_GRAPH_NODE || kind == VGPU_HANDLE_GRAPH_EXEC ||
	       kind == VGPU_HANDLE_ALLOCATION || kind == VGPU_HANDLE_USER_OBJECT ||
	       kind == VGPU_HANDLE_CONDITION;
}

CUresult object_add_like(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep)
{
	CUresult result;

	pthread_mutex_lock(&call->session->contexts.lock);
	result = object_add_locked(call, kind, driver_handle, parent, like, handlep);
	pthread_mutex_unlock(&call->session->contexts.lock);
	return result;
}

CUresult object_add_locked(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep)
{
	struct object *object;
	int r;

	if (!is_free_standing(kind) && !call_context_is_same(call))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	r = object_table_add(table_of(call, kind), driver_handle,
		is_free_standing(kind) ? NULL : call->context, parent, like, &object);
	if (r)
		return no_object(call, r);
	*handlep = object_handle(table_of(call, kind), object);
	if (session_is_recorded(call->session) &&
		(kind == VGPU_HANDLE_GRAPH || kind == VGPU_HANDLE_GRAPH_EXEC))
		recorder_make_graph(call->session, *handlep);
	return CUDA_SUCCESS;
}

CUresult object_add_child(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, uint64_t *handlep)
{
	struct context *green = call->current == call->context ? NULL : call->current;
	const struct stream stream = {
		.context = call->context,
		.green = green,
		.is_entry = true,
	};

	/* A green context takes its streams along. */
	if (kind == VGPU_HANDLE_STREAM && green)
		parent = &green->object;
	return object_add_like(call, kind, driver_handle, parent,
		kind == VGPU_HANDLE_STREAM ? &stream.object : NULL, handlep);
}

CUresult object_add_part(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *of, uint64_t handle, uint64_t *handlep)
{
	CUresult result = no_such(vgpu_handle_kind(handle));

	/* Partner: object_take_parent(). */
	pthread_mutex_lock(&call->session->contexts.lock);
	if (object_is(of, handle))
		result = object_add_locked(call, kind, driver_handle,
			of->parent ? of->parent : of, NULL, handlep);
	pthread_mutex_unlock(&call->session->contexts.lock);
	return result;
}

CUresult object_add(struct call *call, enum vgpu_handle_kind kind, void *driver_handle,
	uint64_t *handlep)
{
	return object_add_child(call, kind, driver_handle, NULL, handlep);
}

CUresult object_add_at(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver_handle, const struct object *like)
{
	struct object *object;
	int r;

	pthread_mutex_lock(&call->session->contexts.lock);
	r = call_context_is_same(call)
		    ? object_table_add_at(table_of(call, kind), handle, driver_handle,
			      call->context, like, &object)
		    : OBJECTS_E_NO_OWNER;
	pthread_mutex_unlock(&call->session->contexts.lock);
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case OBJECTS_E_NO_OWNER:
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	case OBJECTS_E_TAKEN:
	case OBJECTS_E_INVALID:
		return CUDA_ERROR_INVALID_HANDLE;
	default:
		return no_object(call, r);
	}
}

CUresult object_take(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void **driver_handlep)
{
	return object_table_remove(table_of(call, kind), handle, driver_handlep)
		       ? CUDA_SUCCESS
		       : no_such(kind);
}

CUresult object_take_parent(struct call *call, enum vgpu_handle_kind kind,
	uint64_t handle, void **driver_handlep)
{
	struct object *object;
	CUresult result;

	result = object_find(call, kind, handle, &object);
	if (result != CUDA_SUCCESS)
		return result;
	if (object->parent)
		return CUDA_ERROR_NOT_PERMITTED;
	/* Children first: once the entry is free, its next object may have children.
	 * Partner: object_add_part(), which adds none in between. */
	pthread_mutex_lock(&call->session->contexts.lock);
	object_forget_children(call, object);
	result = object_take(call, kind, handle, driver_handlep);
	pthread_mutex_unlock(&call->session->contexts.lock);
	return result;
}

void object_forget_children(struct call *call, const struct object *parent)
{
	struct range range;
	uint32_t i;

	for (i = VGPU_HANDLE_CONTEXT + 1; i < _VGPU_HANDLE_N; i++)
		object_table_remove_owned(&call->session->objects[i], parent);
	while (!ranges_remove_owned(&call->session->ranges, parent, &range))
		;
}
