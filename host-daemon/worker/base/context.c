/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and the streams in them
 */

#include <string.h>

#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"

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

void context_leave_green(struct session *session, struct runner *runner)
{
	if (!runner->entered || !runner->entered->home)
		return;
	session->driver->table.cuCtxSetCurrent(NULL);
	context_left(runner);
}

static bool has_home(const struct session *session)
{
	return __atomic_load_n(&session->home, __ATOMIC_ACQUIRE);
}

/* Shared memory is registered under the primary context of the first device used. */
static CUresult home_ensure(
	struct session *session, struct runner *runner, CUdevice device)
{
	struct context *primary;
	CUresult result;

	if (has_home(session))
		return CUDA_SUCCESS;
	primary = context_find(session, vgpu_handle_make(VGPU_HANDLE_CONTEXT, device, 1));
	result = context_ensure(session, runner, primary);
	if (result == CUDA_SUCCESS && !has_home(session))
		result = session->driver->table.cuCtxSetCurrent(primary->object.driver);
	if (result == CUDA_SUCCESS)
		result = session->register_fn(session, primary);
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
		result = session->register_fn(session, context);
	if (result != CUDA_SUCCESS) {
		driver->cuCtxSetCurrent(NULL);
		driver->cuDevicePrimaryCtxRelease_v2(context->device);
		return result;
	}
	session_use_device(session, context->device);
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
	session_use_device(session, device);
	*handlep = object_handle(&session->contexts.table, object);
	return CUDA_SUCCESS;
}

struct context *context_add_green(
	struct session *session, CUcontext driver_context, struct context *home)
{
	struct context like = { .device = home->device, .home = home };
	struct object *object;

	if (object_table_add(&session->contexts.table, driver_context, NULL, NULL,
		    &like.object, &object))
		return NULL;
	return (struct context *)object;
}
