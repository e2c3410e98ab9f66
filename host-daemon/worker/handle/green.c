/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on green contexts and on partitions of multiprocessors
 *
 * A guest never returns the driver's data of a CUdevResource. It names its origin: a
 * device or a green context, and the arguments of the split that it is a part of. The
 * worker repeats these calls, whose results depend on nothing else, so that whatever a
 * guest sends is a partition that the driver itself has made.
 */

#include <string.h>

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/handle/context-end.h"

/* A driver makes no more groups than there are multiprocessors, of which no GPU has so
 * many. The results take 36 KiB of a call's memory. */
#define GROUPS_MAX 256u

/* Drivers have no call that destroys a descriptor of resources. */
#define DESCRIPTORS_MAX (1u << 16)

/* All that a split returns. */
struct split {
	CUdevResource *groups;
	unsigned int n;
	CUdevResource rest;
};

static bool is_capable(const struct call *call)
{
	return call->driver->cuGreenCtxCreate && call->driver->cuGreenCtxDestroy &&
	       call->driver->cuCtxFromGreenCtx && call->driver->cuDevResourceGenerateDesc;
}

/* The resource of a green context, or of a device if there is no handle. */
static CUresult get_origin(
	struct call *call, uint64_t handle, int32_t device, CUdevResource *resource)
{
	CUresult result;
	void *green;

	if (!handle)
		return call->driver->cuDeviceGetDevResource
			       ? call->driver->cuDeviceGetDevResource(
					 device, resource, CU_DEV_RESOURCE_TYPE_SM)
			       : CUDA_ERROR_NOT_SUPPORTED;
	if (!call->driver->cuGreenCtxGetDevResource)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_GREEN, handle, false, &green);
	/* The program does not name that green context in its call. */
	if (result == CUDA_ERROR_INVALID_CONTEXT)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	return result == CUDA_SUCCESS ? call->driver->cuGreenCtxGetDevResource(
						green, resource, CU_DEV_RESOURCE_TYPE_SM)
				      : result;
}

static CUresult split(struct call *call, const CUdevResource *input, uint32_t flags,
	uint32_t min_count, uint32_t n_max, struct split *split)
{
	unsigned int n = n_max < GROUPS_MAX ? n_max : GROUPS_MAX;
	CUresult result;

	if (!call->driver->cuDevSmResourceSplitByCount)
		return CUDA_ERROR_NOT_SUPPORTED;
	split->groups = call_alloc(call, (n ? n : 1) * sizeof(*split->groups));
	if (!split->groups)
		return CUDA_ERROR_OUT_OF_MEMORY;
	split->n = n;
	result = call->driver->cuDevSmResourceSplitByCount(
		split->groups, &split->n, input, &split->rest, flags, min_count);
	if (result == CUDA_SUCCESS && split->n > n)
		result = CUDA_ERROR_UNKNOWN;
	return result;
}

CUresult handle_cuDevSmResourceSplitByCount(struct call *call,
	const Vgpu__CuDevSmResourceSplitByCountRequest *request,
	Vgpu__CuDevSmResourceSplitByCountReply *reply)
{
	struct split done = {};
	CUdevResource input = {};
	CUresult result;

	result = get_origin(call, request->source, request->device, &input);
	if (result != CUDA_SUCCESS)
		return result;
	if (request->is_query) {
		if (!call->driver->cuDevSmResourceSplitByCount)
			return CUDA_ERROR_NOT_SUPPORTED;
		return call->driver->cuDevSmResourceSplitByCount(NULL, &reply->n_groups,
			&input, NULL, request->use_flags, request->min_count);
	}
	result = split(call, &input, request->use_flags, request->min_count,
		request->n_groups_max, &done);
	if (result != CUDA_SUCCESS)
		return result;
	/* The groups of a split are equal. */
	if (done.n) {
		reply->sm_count = done.groups[0].sm.smCount;
		reply->min_sm_partition_size = done.groups[0].sm.minSmPartitionSize;
		reply->sm_coscheduled_alignment =
			done.groups[0].sm.smCoscheduledAlignment;
	}
	reply->n_groups = done.n;
	if (done.rest.type == CU_DEV_RESOURCE_TYPE_SM) {
		reply->rest_sm_count = done.rest.sm.smCount;
		reply->rest_min_sm_partition_size = done.rest.sm.minSmPartitionSize;
		reply->rest_sm_coscheduled_alignment =
			done.rest.sm.smCoscheduledAlignment;
	}
	return CUDA_SUCCESS;
}

/*
 * Creation
 */

/* Picks parts of a split: groups by their number, the rest by the number after these. */
static CUresult pick(const struct split *split, const ProtobufCBinaryData *parts,
	CUdevResource *picked, unsigned int *np)
{
	bool is_picked[GROUPS_MAX + 1] = {};
	unsigned int n = (unsigned int)(parts->len / sizeof(uint16_t));
	uint16_t part;

	if (!n || n > split->n + 1 || parts->len % sizeof(uint16_t))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	for (unsigned int i = 0; i < n; i++) {
		memcpy(&part, parts->data + i * sizeof(part), sizeof(part));
		if (part > split->n || is_picked[part] ||
			(part == split->n && split->rest.type != CU_DEV_RESOURCE_TYPE_SM))
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		is_picked[part] = true;
		picked[i] = part == split->n ? split->rest : split->groups[part];
	}
	*np = n;
	return CUDA_SUCCESS;
}

static CUresult get_resources(struct call *call,
	const Vgpu__CuGreenCtxCreateRequest *request, CUdevResource **resourcesp,
	unsigned int *np)
{
	CUdevResource *resources, input = {};
	struct split done = {};
	CUresult result;

	result = get_origin(call, request->source, request->dev, &input);
	if (result == CUDA_SUCCESS && request->is_split)
		result = split(call, &input, request->use_flags, request->min_count,
			request->n_groups, &done);
	if (result != CUDA_SUCCESS)
		return result;
	resources = call_alloc(call, (done.n + 1) * sizeof(*resources));
	if (!resources)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*resourcesp = resources;
	if (request->is_split)
		return pick(&done, &request->parts, resources, np);
	resources[0] = input;
	*np = 1;
	return CUDA_SUCCESS;
}

static CUresult describe(struct call *call, const Vgpu__CuGreenCtxCreateRequest *request,
	CUdevResourceDesc *descp)
{
	CUdevResource *resources = NULL;
	unsigned int n = 0;
	CUresult result;

	result = get_resources(call, request, &resources, &n);
	if (result != CUDA_SUCCESS)
		return result;
	if (__atomic_fetch_add(&call->session->n_descriptors, 1, __ATOMIC_RELAXED) >=
		DESCRIPTORS_MAX) {
		__atomic_fetch_sub(&call->session->n_descriptors, 1, __ATOMIC_RELAXED);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return call->driver->cuDevResourceGenerateDesc(descp, resources, n);
}

/* With contexts.lock. */
static CUresult keep_locked(struct call *call, struct context *home, CUgreenCtx driver,
	CUcontext converted, Vgpu__CuGreenCtxCreateReply *reply)
{
	struct object_table *greens = &call->session->objects[VGPU_HANDLE_GREEN];
	struct object_table *contexts = &call->session->contexts.table;
	struct green like = {};
	struct object *object;

	if (home->is_leaving || !home->object.driver)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	like.context = context_add_green(call->session, converted, home);
	if (!like.context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reply->context = object_handle(contexts, &like.context->object);
	like.context_handle = reply->context;
	if (object_table_add(greens, driver, home, NULL, &like.object, &object)) {
		object_table_remove(contexts, reply->context, NULL);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	reply->ph_ctx = object_handle(greens, object);
	return CUDA_SUCCESS;
}

static CUresult keep(struct call *call, struct context *home, CUgreenCtx driver,
	Vgpu__CuGreenCtxCreateReply *reply)
{
	CUdevResource resource = {};
	CUcontext converted;
	CUresult result;

	result = call->driver->cuCtxFromGreenCtx(&converted, driver);
	if (result == CUDA_SUCCESS && call->driver->cuGreenCtxGetDevResource)
		result = call->driver->cuGreenCtxGetDevResource(
			driver, &resource, CU_DEV_RESOURCE_TYPE_SM);
	if (result != CUDA_SUCCESS)
		return result;
	reply->sm_count = resource.sm.smCount;
	pthread_mutex_lock(&call->session->contexts.lock);
	result = keep_locked(call, home, driver, converted, reply);
	pthread_mutex_unlock(&call->session->contexts.lock);
	return result;
}

CUresult handle_cuGreenCtxCreate(struct call *call,
	const Vgpu__CuGreenCtxCreateRequest *request, Vgpu__CuGreenCtxCreateReply *reply)
{
	CUdevResourceDesc desc;
	struct context *home;
	CUgreenCtx driver;
	CUresult result;

	if (!is_capable(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->dev < 0 || request->dev >= call->session->n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	if (request->flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	home = context_find(call->session,
		vgpu_handle_make(VGPU_HANDLE_CONTEXT, (uint32_t)request->dev, 1));
	result = context_enter(call->session, call->runner, home);
	if (result == CUDA_SUCCESS)
		result = describe(call, request, &desc);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGreenCtxCreate(
			&driver, desc, request->dev, request->flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = keep(call, home, driver, reply);
	if (result != CUDA_SUCCESS)
		call->driver->cuGreenCtxDestroy(driver);
	return result;
}

CUresult handle_cuGreenCtxDestroy(struct call *call,
	const Vgpu__CuGreenCtxDestroyRequest *request,
	Vgpu__CuGreenCtxDestroyReply *reply)
{
	return green_destroy(call->session, call->runner, request->h_ctx);
}

/*
 * Uses
 */

CUresult handle_cuGreenCtxGetDevResource(struct call *call,
	const Vgpu__CuGreenCtxGetDevResourceRequest *request,
	Vgpu__CuGreenCtxGetDevResourceReply *reply)
{
	CUdevResource resource = {};
	CUresult result;
	void *green;

	if (!call->driver->cuGreenCtxGetDevResource)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	result = object_get(call, VGPU_HANDLE_GREEN, request->h_ctx, false, &green);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGreenCtxGetDevResource(
			green, &resource, CU_DEV_RESOURCE_TYPE_SM);
	reply->sm_count = resource.sm.smCount;
	reply->min_sm_partition_size = resource.sm.minSmPartitionSize;
	reply->sm_coscheduled_alignment = resource.sm.smCoscheduledAlignment;
	return result;
}

/* With contexts.lock. */
static CUresult keep_stream(struct call *call, uint64_t handle, const struct green *green,
	CUstream driver, uint64_t *handlep)
{
	struct object_table *streams = &call->session->objects[VGPU_HANDLE_STREAM];
	struct stream like = {
		.context = green->context->home,
		.green = green->context,
		.is_entry = true,
	};
	struct object *object;

	/* Another thread may be destroying it, and has taken its streams already. */
	if (!object_is(&green->object, handle) || green->context->is_leaving)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (object_table_add(streams, driver, like.context, &like.green->object,
		    &like.object, &object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handlep = object_handle(streams, object);
	return CUDA_SUCCESS;
}

CUresult handle_cuGreenCtxStreamCreate(struct call *call,
	const Vgpu__CuGreenCtxStreamCreateRequest *request,
	Vgpu__CuGreenCtxStreamCreateReply *reply)
{
	struct object *object;
	CUresult result;
	CUstream stream;

	if (!call->driver->cuGreenCtxStreamCreate)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_GREEN, request->green_ctx, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGreenCtxStreamCreate(
			&stream, object->driver, request->flags, request->priority);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&call->session->contexts.lock);
	result = keep_stream(call, request->green_ctx, (const struct green *)object,
		stream, &reply->ph_stream);
	pthread_mutex_unlock(&call->session->contexts.lock);
	if (result != CUDA_SUCCESS)
		call->driver->cuStreamDestroy_v2(stream);
	return result;
}
