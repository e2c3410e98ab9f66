/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: the multiprocessors of devices and contexts, and parts of them
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "entry/resource.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"

#define MARK 0x76475255u

#define SPLIT_FLAGS                                                                      \
	(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |                               \
		CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

_Static_assert(
	sizeof(struct shim_origin) <= sizeof(((CUdevResource *)NULL)->_internal_padding),
	"it fits in");

static struct {
	struct shim_lock lock;
	struct shim_resource_desc *first;
} descs;

static uint64_t n_splits; /* atomic */

void shim_resource_set(CUdevResource *resource, const struct shim_origin *origin,
	const struct shim_resource_counts *counts)
{
	memset(resource, 0, sizeof(*resource));
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	resource->sm.smCount = counts->n_sms;
	resource->sm.minSmPartitionSize = counts->n_sms_min;
	resource->sm.smCoscheduledAlignment = counts->alignment;
	memcpy(resource->_internal_padding, origin, sizeof(*origin));
	memcpy(resource->_internal_padding + offsetof(struct shim_origin, mark),
		&(uint32_t){ MARK }, sizeof(uint32_t));
}

/* Return: false for a structure that no call has filled in. */
static bool get_origin(const CUdevResource *resource, struct shim_origin *origin)
{
	memcpy(origin, resource->_internal_padding, sizeof(*origin));
	return origin->mark == MARK && origin->n_groups <= SHIM_RESOURCE_GROUPS_MAX &&
	       origin->part <= origin->n_groups;
}

static CUresult check(
	struct shim_call *call, const CUdevResource *resource, CUdevResourceType type)
{
	if (!resource)
		return shim_call_error(call, CUDA_ERROR_INVALID_VALUE);
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return shim_call_error(call, CUDA_ERROR_INVALID_RESOURCE_TYPE);
	return shim_call_check(call->id);
}

/* The replies have the same fields. */
#define COUNTS_OF(_reply)                                                                \
	(&(const struct shim_resource_counts){                                           \
		.n_sms = (_reply)->sm_count,                                             \
		.n_sms_min = (_reply)->min_sm_partition_size,                            \
		.alignment = (_reply)->sm_coscheduled_alignment,                         \
	})

CUresult shim_cuDeviceGetDevResource(
	CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	Vgpu__CuDeviceGetDevResourceRequest request =
		VGPU__CU_DEVICE_GET_DEV_RESOURCE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDeviceGetDevResource);
	const struct shim_origin origin = { .device = device };
	const ProtobufCMessage *message;
	CUresult result;

	result = check(&call, resource, type);
	if (result != CUDA_SUCCESS)
		return result;
	request.device = shim_device_to_host(device);
	request.type = type;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_device_get_dev_resource_reply__descriptor, &message);
	if (result == CUDA_SUCCESS)
		shim_resource_set(resource, &origin,
			COUNTS_OF((const Vgpu__CuDeviceGetDevResourceReply *)message));
	return result;
}

static void set_of(const struct shim_context *context, CUdevResource *resource,
	const struct shim_resource_counts *counts)
{
	const struct shim_origin origin = {
		.device = context->device,
		.green = context->green,
	};

	shim_resource_set(resource, &origin, counts);
}

CUresult shim_cuCtxGetDevResource(
	CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	Vgpu__CuCtxGetDevResourceRequest request =
		VGPU__CU_CTX_GET_DEV_RESOURCE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxGetDevResource);
	const struct shim_context *context;
	const ProtobufCMessage *message;
	CUresult result;

	result = check(&call, resource, type);
	if (result != CUDA_SUCCESS)
		return result;
	request.h_ctx = (uint64_t)(uintptr_t)hCtx;
	request.type = type;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_ctx_get_dev_resource_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	context = shim_context_find(hCtx);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	set_of(context, resource,
		COUNTS_OF((const Vgpu__CuCtxGetDevResourceReply *)message));
	return CUDA_SUCCESS;
}

CUresult shim_cuGreenCtxGetDevResource(
	CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	Vgpu__CuGreenCtxGetDevResourceRequest request =
		VGPU__CU_GREEN_CTX_GET_DEV_RESOURCE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGreenCtxGetDevResource);
	const struct shim_context *context;
	const ProtobufCMessage *message;
	CUresult result;

	result = check(&call, resource, type);
	if (result != CUDA_SUCCESS)
		return result;
	context = shim_context_find_green(hCtx);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	request.h_ctx = (uint64_t)(uintptr_t)hCtx;
	request.type = type;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_green_ctx_get_dev_resource_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	set_of(context, resource,
		COUNTS_OF((const Vgpu__CuGreenCtxGetDevResourceReply *)message));
	return CUDA_SUCCESS;
}

/*
 * Splits
 */

/* Gives the program the groups that the host has made, and what is left. */
static CUresult give_groups(const Vgpu__CuDevSmResourceSplitByCountReply *reply,
	struct shim_origin *origin, CUdevResource *groups, CUdevResource *rest)
{
	const struct shim_resource_counts left = {
		.n_sms = reply->rest_sm_count,
		.n_sms_min = reply->rest_min_sm_partition_size,
		.alignment = reply->rest_sm_coscheduled_alignment,
	};

	origin->split = __atomic_add_fetch(&n_splits, 1, __ATOMIC_RELAXED);
	origin->n_groups = reply->n_groups;
	for (origin->part = 0; origin->part < reply->n_groups; origin->part++)
		shim_resource_set(&groups[origin->part], origin, COUNTS_OF(reply));
	if (rest && left.n_sms)
		shim_resource_set(rest, origin, &left);
	return CUDA_SUCCESS;
}

static CUresult check_split(const CUdevResource *result, const unsigned int *n_groups,
	const CUdevResource *input, unsigned int flags, unsigned int min_count,
	struct shim_origin *origin)
{
	if (!n_groups || !input || (result && !*n_groups))
		return CUDA_ERROR_INVALID_VALUE;
	if (input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!get_origin(input, origin) || flags & ~(unsigned int)SPLIT_FLAGS ||
		min_count > input->sm.smCount)
		return CUDA_ERROR_INVALID_VALUE;
	/* Parts are split again only as the resource of a green context. */
	return origin->split ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION : CUDA_SUCCESS;
}

CUresult shim_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
	const CUdevResource *input, CUdevResource *remaining, unsigned int useFlags,
	unsigned int minCount)
{
	Vgpu__CuDevSmResourceSplitByCountRequest request =
		VGPU__CU_DEV_SM_RESOURCE_SPLIT_BY_COUNT_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDevSmResourceSplitByCount);
	const Vgpu__CuDevSmResourceSplitByCountReply *reply;
	const ProtobufCMessage *message;
	struct shim_origin origin;
	CUresult error;

	error = shim_call_check(call.id);
	if (error == CUDA_SUCCESS)
		error = check_split(result, nbGroups, input, useFlags, minCount, &origin);
	if (error != CUDA_SUCCESS)
		return error;
	request.source = origin.green;
	request.device = shim_device_to_host(origin.device);
	request.use_flags = origin.use_flags = useFlags;
	request.min_count = origin.min_count = minCount;
	request.is_query = !result;
	request.n_groups_max = *nbGroups < SHIM_RESOURCE_GROUPS_MAX
				       ? *nbGroups
				       : SHIM_RESOURCE_GROUPS_MAX;
	error = shim_call_sync(&call, &request.base,
		&vgpu__cu_dev_sm_resource_split_by_count_reply__descriptor, &message);
	if (error != CUDA_SUCCESS)
		return error;
	reply = (const Vgpu__CuDevSmResourceSplitByCountReply *)message;
	if (result && reply->n_groups > request.n_groups_max)
		return CUDA_ERROR_UNKNOWN;
	if (remaining)
		memset(remaining, 0, sizeof(*remaining));
	*nbGroups = reply->n_groups;
	return result ? give_groups(reply, &origin, result, remaining) : CUDA_SUCCESS;
}

/*
 * Descriptors
 */

/* Whether all resources are different parts of one split. */
static bool are_of_one_split(const struct shim_origin *first, const CUdevResource *others,
	unsigned int n, uint16_t *parts)
{
	bool is_taken[SHIM_RESOURCE_GROUPS_MAX + 1] = {};
	struct shim_origin origin;

	for (unsigned int i = 0; i < n; i++) {
		if (!get_origin(&others[i], &origin) || origin.split != first->split ||
			!origin.split || is_taken[origin.part])
			return false;
		is_taken[origin.part] = true;
		parts[i] = (uint16_t)origin.part;
	}
	return true;
}

static CUresult describe(
	struct shim_resource_desc *desc, const CUdevResource *resources, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!get_origin(resources, &desc->origin))
		return CUDA_ERROR_INVALID_VALUE;
	if (n == 1 && !desc->origin.split)
		return CUDA_SUCCESS;
	if (n > SHIM_RESOURCE_GROUPS_MAX + 1 ||
		!are_of_one_split(&desc->origin, resources, n, desc->parts))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	desc->n_parts = n;
	return CUDA_SUCCESS;
}

CUresult shim_cuDevResourceGenerateDesc(
	CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	struct shim_resource_desc *desc;
	CUresult result;

	SHIM_CHECK_READY();
	if (!phDesc || !resources || !nbResources)
		return CUDA_ERROR_INVALID_VALUE;
	desc = calloc(1, sizeof(*desc));
	if (!desc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = describe(desc, resources, nbResources);
	if (result != CUDA_SUCCESS) {
		free(desc);
		return result;
	}
	shim_lock(&descs.lock);
	desc->next = descs.first;
	descs.first = desc;
	shim_unlock(&descs.lock);
	*phDesc = (CUdevResourceDesc)desc;
	return CUDA_SUCCESS;
}

const struct shim_resource_desc *shim_resource_desc_find(CUdevResourceDesc handle)
{
	const struct shim_resource_desc *desc;
	SHIM_LOCKED(&descs.lock);

	for (desc = descs.first; desc; desc = desc->next)
		if ((const void *)desc == (const void *)handle)
			return desc;
	return NULL;
}
