/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a context, and of all that lives in it
 */

#include "vgpu/wake.h"
#include "worker/base/context.h"
#include "worker/base/lane-stream.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"
#include "worker/handle/context-end.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/capture.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"

static void next_life(struct session *session, struct context *context)
{
	pthread_mutex_lock(&session->contexts.lock);
	context->life++;
	pthread_mutex_unlock(&session->contexts.lock);
}

/* Forgets all that lives in a context: objects, memory, streams. */
static void forget_contents(struct session *session, struct context *context)
{
	uint64_t array_bytes;
	uint32_t i;

	/* What is added from now on is refused; what is added already goes. */
	next_life(session, context);
	for (i = VGPU_HANDLE_CONTEXT + 1; i < _VGPU_HANDLE_N; i++)
		object_table_remove_owned(&session->objects[i], context);
	for (i = 0; i < VGPU_SLOTS_MAX; i++) {
		struct lane *lane = __atomic_load_n(&session->lanes[i], __ATOMIC_ACQUIRE);

		if (lane)
			lane_forget_context(lane, context);
	}
	uses_forget_context(session, context);
	device_memory_forget(session, context);
	pthread_mutex_lock(&session->contexts.lock);
	array_bytes = context->array_bytes;
	context->array_bytes = 0;
	pthread_mutex_unlock(&session->contexts.lock);
	device_memory_refund(session, array_bytes);
	callbacks_forget_context(session, context);
	captures_forget_context(session, context);
	__atomic_store_n(&context->fault, CUDA_SUCCESS, __ATOMIC_RELAXED);
	/* Waits by word see the count; a new life of the context starts it afresh. */
	context->legacy.has_word = false;
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
}

/* Return: whether the calling thread is the one that ends a context, which is in its
 * table and in the driver. */
static bool begin_leaving(
	struct session *session, struct context *context, uint64_t handle)
{
	struct contexts *contexts = &session->contexts;
	struct vgpu_nap nap = {};
	bool is_mine;

	/* Before the lock, which those who make marks may have to take. */
	marks_forget_context(session, context);
	debts_forget_context(session, context);
	pthread_mutex_lock(&contexts->lock);
	while (context->is_leaving)
		vgpu_nap_cond(&nap, &contexts->left, &contexts->lock);
	is_mine = context_find(session, handle) == context && context->object.driver;
	context->is_leaving |= is_mine;
	__atomic_store_n(&context->n_retains, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&contexts->lock);
	return is_mine;
}

/* Of a context that was made, the entry is free then, and may be another's at once. */
static void end_leaving(struct session *session, struct context *context)
{
	struct object_table *table = &session->contexts.table;

	pthread_mutex_lock(&session->contexts.lock);
	if (!context->primary)
		object_table_remove(table, object_handle(table, &context->object), NULL);
	context->is_leaving = false;
	/* What began meanwhile was given to the driver's context that has gone. */
	context->life++;
	pthread_mutex_unlock(&session->contexts.lock);
	vgpu_wake_all(&session->contexts.left);
}

/* The worker holds the only retain, so giving it back destroys the driver's context. */
CUresult context_reset(struct session *session, struct context *context)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUcontext retained;
	CUresult result;

	if (!begin_leaving(session, context,
		    object_handle(&session->contexts.table, &context->object)))
		return CUDA_SUCCESS;
	retained = context->object.driver;
	result = driver->cuCtxSetCurrent(retained);
	if (result == CUDA_SUCCESS) {
		/* A context may not go while work is under way in it. */
		driver->cuCtxSynchronize();
		arena_unregister(session, context);
		device_memory_free_all(session, context);
	}
	forget_contents(session, context);
	__atomic_store_n(&context->object.driver, NULL, __ATOMIC_RELEASE);
	driver->cuCtxSetCurrent(NULL);
	result = driver->cuDevicePrimaryCtxRelease_v2(context->device);
	end_leaving(session, context);
	return result;
}

CUresult context_destroy(struct session *session, uint64_t handle)
{
	struct context *context = context_find(session, handle);
	CUcontext driver_context;

	/* Another thread may have been here first. */
	if (!context || context->primary || !begin_leaving(session, context, handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	driver_context = context->object.driver;
	/* First what lives in it: the entry's next context may own objects at once.
	 * Whoever entered it in between has to enter anew. */
	forget_contents(session, context);
	end_leaving(session, context);
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
	return session->driver->table.cuCtxDestroy_v2(driver_context);
}
