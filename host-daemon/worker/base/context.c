/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and the streams in them
 */

#include <string.h>

#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"

int contexts_init(struct session *session)
{
	struct contexts *contexts = &session->contexts;
	struct context like = { .primary = true };
	struct object *object;
	int device, r;

	pthread_mutex_init(&contexts->lock, NULL);
	pthread_cond_init(&contexts->left, NULL);
	r = object_table_init(&contexts->table, VGPU_HANDLE_CONTEXT,
		sizeof(struct context), VGPU_DEVICES_MAX, false, &session->totals);
	if (r)
		return vgpu_error_trace(r);
	for (device = 0; device < session->n_devices; device++) {
		like.device = device;
		r = object_table_add_at(&contexts->table,
			vgpu_handle_make(VGPU_HANDLE_CONTEXT, device, 1), NULL, NULL,
			&like.object, &object);
		if (r)
			return vgpu_error_fold(r);
	}
	return 0;
}

void contexts_deinit(struct session *session)
{
	object_table_deinit(&session->contexts.table);
	pthread_cond_destroy(&session->contexts.left);
	pthread_mutex_destroy(&session->contexts.lock);
}

struct context *context_find(struct session *session, uint64_t handle)
{
	return (struct context *)object_table_find(&session->contexts.table, handle);
}

void context_left(struct runner *runner)
{
	runner->entered = NULL;
}

/* Shared memory is registered under a primary context, whichever is entered first. */
static CUresult home_ensure(
	struct session *session, struct runner *runner, CUdevice device)
{
	struct context *primary;
	CUresult result;

	if (arena_has_home(session))
		return CUDA_SUCCESS;
	primary = context_find(session, vgpu_handle_make(VGPU_HANDLE_CONTEXT, device, 1));
	result = context_ensure(session, runner, primary);
	if (result == CUDA_SUCCESS && !arena_has_home(session))
		result = session->driver->table.cuCtxSetCurrent(primary->object.driver);
	if (result == CUDA_SUCCESS)
		result = arena_register(session, primary);
	return result;
}

CUresult context_enter(
	struct session *session, struct runner *runner, struct context *context)
{
	uint32_t n_deaths =
		__atomic_load_n(&session->contexts.n_deaths, __ATOMIC_ACQUIRE);
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (runner->entered == context && runner->n_deaths == n_deaths)
		return CUDA_SUCCESS;
	result = context_ensure(session, runner, context);
	if (result == CUDA_SUCCESS)
		result = home_ensure(session, runner, context->device);
	if (result == CUDA_SUCCESS)
		result = session->driver->table.cuCtxSetCurrent(
			__atomic_load_n(&context->object.driver, __ATOMIC_ACQUIRE));
	runner->entered = result == CUDA_SUCCESS ? context : NULL;
	runner->n_deaths = n_deaths;
	return result;
}

static CUresult retain_locked(struct session *session, struct context *context)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUcontext retained;
	CUresult result;

	if (context->object.driver)
		return CUDA_SUCCESS;
	result = driver->cuDevicePrimaryCtxRetain(&retained, context->device);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver->cuCtxSetCurrent(retained);
	if (result == CUDA_SUCCESS)
		result = arena_register(session, context);
	if (result != CUDA_SUCCESS) {
		driver->cuCtxSetCurrent(NULL);
		driver->cuDevicePrimaryCtxRelease_v2(context->device);
		return result;
	}
	/* Partner: the loads in context_enter() and context_ensure(). */
	__atomic_store_n(&context->object.driver, retained, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

CUresult context_ensure(
	struct session *session, struct runner *runner, struct context *context)
{
	struct vgpu_nap nap = {};
	CUresult result;

	if (__atomic_load_n(&context->object.driver, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	if (!context->primary)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	context_left(runner);
	pthread_mutex_lock(&session->contexts.lock);
	while (context->is_leaving && !runner->is_dispatcher)
		vgpu_nap_cond(&nap, &session->contexts.left, &session->contexts.lock);
	result = context->is_leaving ? CUDA_ERROR_CONTEXT_IS_DESTROYED
				     : retain_locked(session, context);
	pthread_mutex_unlock(&session->contexts.lock);
	return result;
}

CUresult context_add(struct session *session, CUcontext driver_context, CUdevice device,
	uint64_t *handlep)
{
	const struct context like = { .device = device };
	struct object *object;

	if (object_table_add(&session->contexts.table, driver_context, NULL, NULL,
		    &like.object, &object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handlep = object_handle(&session->contexts.table, object);
	return CUDA_SUCCESS;
}

static void context_next_life(struct session *session, struct context *context)
{
	pthread_mutex_lock(&session->contexts.lock);
	context->life++;
	pthread_mutex_unlock(&session->contexts.lock);
}

bool context_is_same(const struct call *call)
{
	const struct context *context = call->context;

	return context && context->life == call->context_life && !context->is_leaving &&
	       context->object.generation == call->context_generation;
}

void context_forget_contents(struct session *session, struct context *context)
{
	uint64_t array_bytes;
	uint32_t i;

	/* What is added from now on is refused; what is added already goes. */
	context_next_life(session, context);
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
	fence_forget_context(session, context);
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
	context_forget_contents(session, context);
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
	context_forget_contents(session, context);
	end_leaving(session, context);
	__atomic_fetch_add(&session->contexts.n_deaths, 1, __ATOMIC_RELEASE);
	return session->driver->table.cuCtxDestroy_v2(driver_context);
}
