/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Destruction and reset of contexts, with all objects in them
 */

#include "vgpu/wake.h"
#include "worker/base/context.h"
#include "worker/base/lane-stream.h"
#include "worker/base/lookup.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"
#include "worker/handle/context-end.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/mirror.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/capture.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"
#include "worker/wait/meter.h"

static void next_life(struct session *session, struct context *context)
{
	pthread_mutex_lock(&session->contexts.lock);
	context->life++;
	pthread_mutex_unlock(&session->contexts.lock);
}

/* Forgets all that belongs to a context: objects, memory, streams. */
static void forget_contents(struct session *session, struct context *context)
{
	uint64_t array_bytes;
	uint32_t i;

	/* Additions fail from now on; what is there is removed. */
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
	device_memory_refund(session, context->device, array_bytes);
	callbacks_forget_context(session, context);
	captures_forget_context(session, context);
	/* While the context can still be entered, which they may have to. */
	lookups_await_context(session, context);
	__atomic_store_n(&context->fault, CUDA_SUCCESS, __ATOMIC_RELAXED);
	/* No marks for stream 0 until the guest binds a word again, which resets the
	 * count. */
	context->legacy.has_word = false;
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
}

/* Claims the destruction of a context. Return: true for the one thread that then has to
 * destroy it; the context is in its table and retained in the driver. */
static bool begin_leaving(
	struct session *session, struct context *context, uint64_t handle)
{
	struct contexts *contexts = &session->contexts;
	struct vgpu_nap nap = {};
	bool is_mine;

	/* Before taking the lock, because making marks may take it. */
	marks_forget_context(session, context);
	debts_forget_context(session, context);
	pthread_mutex_lock(&contexts->lock);
	while (context->is_leaving)
		vgpu_nap_cond(&nap, &contexts->left, &contexts->lock);
	is_mine = context_find(session, handle) == context && context->object.driver;
	/* Partner: the load in open_batch() of wait/meter.c. */
	if (is_mine)
		__atomic_store_n(&context->is_leaving, true, __ATOMIC_RELAXED);
	__atomic_store_n(&context->n_retains, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&contexts->lock);
	if (is_mine)
		meter_leave_context(session, context);
	return is_mine;
}

/* Frees the entry of a context that is not primary, which can be reused at once. */
static void end_leaving(struct session *session, struct context *context)
{
	struct object_table *table = &session->contexts.table;

	pthread_mutex_lock(&session->contexts.lock);
	if (!context->primary)
		object_table_remove(table, object_handle(table, &context->object), NULL);
	__atomic_store_n(&context->is_leaving, false, __ATOMIC_RELAXED);
	/* Calls that began meanwhile have used the destroyed context. */
	context->life++;
	pthread_mutex_unlock(&session->contexts.lock);
	vgpu_wake_all(&session->contexts.left);
}

/*
 * Green contexts
 */

/* No stream is added any more. The program should have destroyed them: a driver does not,
 * and nobody could do it later. */
static void end_streams(struct session *session, const struct context *context)
{
	struct object_table *streams = &session->objects[VGPU_HANDLE_STREAM];
	struct object *stream;
	uint64_t handle;
	void *driver;

	while (object_table_find_owned(streams, context, &handle)) {
		stream = object_table_find(streams, handle);
		if (!object_table_remove(streams, handle, &driver))
			continue;
		marks_forget(session, (struct stream *)stream);
		debts_forget(session, (struct stream *)stream);
		capture_remove(session, (struct stream *)stream, false);
		session->driver->table.cuStreamDestroy_v2(driver);
	}
}

CUresult green_destroy(struct session *session, struct runner *runner, uint64_t handle)
{
	struct object_table *greens = &session->objects[VGPU_HANDLE_GREEN];
	const struct green *green =
		(const struct green *)object_table_find(greens, handle);
	struct context *context;
	uint64_t context_handle;
	CUgreenCtx driver;
	CUresult result;

	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	context = green->context;
	context_handle = green->context_handle;
	driver = green->object.driver;
	if (!object_is(&green->object, handle) ||
		!begin_leaving(session, context, context_handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	/* The guest library counts on it, as for all contexts. */
	if (context_enter(session, runner, context) == CUDA_SUCCESS)
		session->driver->table.cuCtxSynchronize();
	session->driver->table.cuCtxSetCurrent(NULL);
	context_left(runner);
	end_streams(session, context);
	callbacks_forget_context(session, context);
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
	object_table_remove(greens, handle, NULL);
	end_leaving(session, context);
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
	result = session->driver->table.cuGreenCtxDestroy(driver);
	meter_context_gone(session, context);
	return result;
}

static void end_greens(
	struct session *session, struct runner *runner, const struct context *home)
{
	uint64_t handle;

	while (object_table_find_owned(
		&session->objects[VGPU_HANDLE_GREEN], home, &handle))
		green_destroy(session, runner, handle);
}

/* The worker holds the only retain, so its release destroys the driver's context. */
CUresult context_reset(
	struct session *session, struct runner *runner, struct context *context)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUcontext retained;
	CUresult result;
	bool is_held;

	if (!begin_leaving(session, context,
		    object_handle(&session->contexts.table, &context->object)))
		return CUDA_SUCCESS;
	end_greens(session, runner, context);
	retained = context->object.driver;
	result = driver->cuCtxSetCurrent(retained);
	if (result == CUDA_SUCCESS) {
		/* A context must not be destroyed while it has work in flight. */
		driver->cuCtxSynchronize();
		arena_unregister(session, context);
		device_memory_free_all(session, context);
	}
	forget_contents(session, context);
	__atomic_store_n(&context->object.driver, NULL, __ATOMIC_RELEASE);
	driver->cuCtxSetCurrent(NULL);
	is_held = mirror_before_context(session, context);
	result = driver->cuDevicePrimaryCtxRelease_v2(context->device);
	meter_context_gone(session, context);
	mirror_after_context(session, is_held);
	end_leaving(session, context);
	return result;
}

CUresult context_destroy(struct session *session, uint64_t handle)
{
	struct context *context = context_find(session, handle);
	CUcontext driver_context;
	CUresult result;
	bool is_held;

	/* Another thread may have been faster. */
	if (!context || context->primary || context->home ||
		!begin_leaving(session, context, handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	driver_context = context->object.driver;
	/* The contents first: once the entry is free, its next context may own objects.
	 * Threads that entered it in between have to enter again. */
	forget_contents(session, context);
	end_leaving(session, context);
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
	is_held = mirror_before_context(session, context);
	result = session->driver->table.cuCtxDestroy_v2(driver_context);
	meter_context_gone(session, context);
	mirror_after_context(session, is_held);
	return result;
}
