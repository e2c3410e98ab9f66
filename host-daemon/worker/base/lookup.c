/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups: of variables whose memory the worker reads
 */

#include "vgpu/g-calls.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/lookup.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"

void lookups_init(struct session *session)
{
	pthread_mutex_init(&session->lookups->lock, NULL);
	pthread_cond_init(&session->lookups->ended, NULL);
}

void lookups_deinit(struct session *session)
{
	pthread_cond_destroy(&session->lookups->ended);
	pthread_mutex_destroy(&session->lookups->lock);
}

static void note(struct lookup *lookup, struct call *call, const struct object *object)
{
	struct lookups *lookups = call->session->lookups;
	const struct object *library = object->parent;

	lookup->session = call->session;
	/* The module of a library is unloaded with it. */
	lookup->parent = library ? library->driver : object->driver;
	lookup->owner = library ? NULL : object->owner;
	lookup->context = call->context;
	pthread_mutex_lock(&lookups->lock);
	lookup->next = lookups->first;
	lookups->first = lookup;
	pthread_mutex_unlock(&lookups->lock);
}

static CUresult check_context(struct call *call)
{
	bool is_same;

	/* A library is there without one. */
	if (!(vgpu_call_flags[call->frame->call] & VGPU_CALL_F_CONTEXT))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&call->session->contexts.lock);
	is_same = call_context_is_same(call);
	pthread_mutex_unlock(&call->session->contexts.lock);
	return is_same ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult lookup_begin(struct lookup *lookup, struct call *call,
	enum vgpu_handle_kind kind, uint64_t handle, struct object **objectp)
{
	CUresult result = object_find(call, kind, handle, objectp);

	if (result != CUDA_SUCCESS || call->session->driver->set_window)
		return result;
	note(lookup, call, *objectp);
	/* Again. Partner: a thread that removes the handle, or ends the life of the
	 * context, and then waits for look-ups: one of the two threads sees the other. */
	result = object_find(call, kind, handle, objectp);
	return result == CUDA_SUCCESS ? check_context(call) : result;
}

void lookup_end(struct lookup *lookup)
{
	struct lookups *lookups;
	struct lookup **nextp;

	if (!lookup->session)
		return;
	lookups = lookup->session->lookups;
	pthread_mutex_lock(&lookups->lock);
	nextp = &lookups->first;
	while (*nextp != lookup)
		nextp = &(*nextp)->next;
	*nextp = lookup->next;
	pthread_mutex_unlock(&lookups->lock);
	vgpu_wake_all(&lookups->ended);
}

/* With the lock. */
static bool is_any(
	const struct lookups *lookups, const void *parent, const struct context *context)
{
	const struct lookup *lookup;

	for (lookup = lookups->first; lookup; lookup = lookup->next)
		if ((parent && lookup->parent == parent) ||
			(context &&
				(lookup->owner == context || lookup->context == context)))
			return true;
	return false;
}

static void await(
	struct session *session, const void *parent, const struct context *context)
{
	struct lookups *lookups = session->lookups;
	struct vgpu_nap nap = {};

	pthread_mutex_lock(&lookups->lock);
	while (is_any(lookups, parent, context))
		vgpu_nap_cond(&nap, &lookups->ended, &lookups->lock);
	pthread_mutex_unlock(&lookups->lock);
}

void lookups_await(struct session *session, const void *parent)
{
	await(session, parent, NULL);
}

void lookups_await_context(struct session *session, const struct context *context)
{
	await(session, NULL, context);
}
