/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources of devices and contexts
 *
 * A resource has its set of multiprocessors in the part of the structure that is the
 * driver's. As on GPUs, where two of them share a texture processing cluster, they are
 * partitioned in pairs if the device has an even number, and at least four; otherwise, or
 * if the caller wants to ignore that, one by one.
 */

#include <stdlib.h>
#include <string.h>

#include "api/resource.h"

#define MARK 0x53675265u
#define SPLIT_FLAGS                                                                      \
	(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |                               \
		CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

/* What a CUdevResource has in its padding. */
struct own {
	uint32_t mark;
	CUdevice device;
	uint64_t split; /* the number of the split that it is a part of, 0: none */
	struct sched_sms sms;
};

_Static_assert(sizeof(struct own) <= sizeof(((CUdevResource *)NULL)->_internal_padding),
	"it fits in");

/* One for each set that was described; CUDA has no call that destroys them. */
struct CUdevResourceDesc_st {
	struct CUdevResourceDesc_st *next;
	CUdevice device;
	struct sched_sms sms;
};

static pthread_mutex_t descs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUdevResourceDesc_st *descs;

static uint64_t n_splits; /* atomic */

static uint32_t granularity(uint32_t n)
{
	return softgpu_device.n_threads >= 4 && softgpu_device.n_threads % 2 == 0 &&
			       n % 2 == 0
		       ? 2
		       : 1;
}

static void resource_set(
	CUdevResource *resource, const struct own *own, uint32_t n_aligned)
{
	uint32_t n = sched_sms_count(&own->sms);

	memset(resource, 0, sizeof(*resource));
	if (!n)
		return;
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	resource->sm.smCount = n;
	resource->sm.minSmPartitionSize = n_aligned;
	resource->sm.smCoscheduledAlignment = n_aligned;
	memcpy(resource->_internal_padding, own, sizeof(*own));
}

/* Return: false for a structure that none of these calls has filled in. */
static bool own_get(const CUdevResource *resource, struct own *own)
{
	memcpy(own, resource->_internal_padding, sizeof(*own));
	if (own->mark != MARK || device_get(own->device) ||
		sched_sms_count(&own->sms) != resource->sm.smCount)
		return false;
	for (uint32_t i = softgpu_device.n_threads; i < SCHED_THREADS_MAX; i++)
		if (sched_sms_has(&own->sms, i))
			return false;
	return resource->sm.smCount > 0;
}

CUresult resource_get(CUdevice device, const struct sched_sms *sms,
	CUdevResource *resource, CUdevResourceType type)
{
	struct own own = { .mark = MARK, .device = device };

	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (sms)
		own.sms = *sms;
	for (uint32_t i = 0; !sms && i < softgpu_device.n_threads; i++)
		sched_sms_add(&own.sms, i);
	resource_set(resource, &own, granularity(sched_sms_count(&own.sms)));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(
	CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	API_CALL;
	CUresult result;

	result = device_get(device);
	if (result)
		return result;
	return resource_get(device, NULL, resource, type);
}

CUresult cuCtxGetDevResource(
	CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	API_CALL;
	CUcontext context;
	CUgreenCtx green;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	context = context_hold(hCtx, &green);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return resource_get(context->device, green ? &green->sms : NULL, resource, type);
}

/*
 * Splits
 */

/* Moves n multiprocessors, the lowest first. */
static void move(struct sched_sms *from, struct sched_sms *to, uint32_t n)
{
	for (uint32_t i = 0; n && i < SCHED_THREADS_MAX; i++) {
		if (!sched_sms_has(from, i))
			continue;
		from->words[i / 64] &= ~(UINT64_C(1) << i % 64);
		sched_sms_add(to, i);
		n--;
	}
}

static CUresult check_split(const CUdevResource *result, const unsigned int *n_groups,
	const CUdevResource *input, unsigned int flags, unsigned int min_count,
	struct own *own)
{
	CUresult error;

	error = device_check();
	if (error)
		return error;
	if (!n_groups || !input || (result && !*n_groups))
		return CUDA_ERROR_INVALID_VALUE;
	if (input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!own_get(input, own) || flags & ~(unsigned int)SPLIT_FLAGS ||
		min_count > input->sm.smCount)
		return CUDA_ERROR_INVALID_VALUE;
	/* Parts are split again only as the resource of a green context. */
	return own->split ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION : CUDA_SUCCESS;
}

/* Clusters have one block, so every group allows for the largest. */
CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
	const CUdevResource *input, CUdevResource *remaining, unsigned int useFlags,
	unsigned int minCount)
{
	API_CALL;
	struct own own, part;
	uint32_t n_aligned, size, n;
	CUresult error;

	error = check_split(result, nbGroups, input, useFlags, minCount, &own);
	if (error)
		return error;
	n_aligned = useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
			    ? 1
			    : granularity(input->sm.smCount);
	size = minCount ? (minCount + n_aligned - 1) / n_aligned * n_aligned : n_aligned;
	n = input->sm.smCount / size;
	if (result && n > *nbGroups)
		n = *nbGroups;
	*nbGroups = n;
	if (!result)
		return CUDA_SUCCESS;
	own.split = __atomic_add_fetch(&n_splits, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++) {
		part = own;
		part.sms = (struct sched_sms){};
		move(&own.sms, &part.sms, size);
		resource_set(&result[i], &part, n_aligned);
	}
	if (remaining)
		resource_set(remaining, &own, 1);
	return CUDA_SUCCESS;
}

/*
 * Descriptors
 */

/* Joins the sets of different parts of one split, or takes a whole one. */
static CUresult join(const CUdevResource *resources, unsigned int n, struct own *all)
{
	struct own own;

	for (unsigned int i = 0; i < n; i++) {
		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (!own_get(&resources[i], &own))
			return CUDA_ERROR_INVALID_VALUE;
		if (!i)
			*all = own;
		else if (own.device != all->device || !own.split ||
			 own.split != all->split)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		for (uint32_t sm = 0; i && sm < SCHED_THREADS_MAX; sm++) {
			if (!sched_sms_has(&own.sms, sm))
				continue;
			if (sched_sms_has(&all->sms, sm))
				return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
			sched_sms_add(&all->sms, sm);
		}
	}
	return CUDA_SUCCESS;
}

static struct CUdevResourceDesc_st *desc_find(const struct own *own)
{
	struct CUdevResourceDesc_st *desc;

	for (desc = descs; desc; desc = desc->next)
		if (desc->device == own->device &&
			!memcmp(&desc->sms, &own->sms, sizeof(desc->sms)))
			break;
	return desc;
}

CUresult cuDevResourceGenerateDesc(
	CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	API_CALL;
	struct CUdevResourceDesc_st *desc;
	struct own all = {};
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!phDesc || !resources || !nbResources)
		return CUDA_ERROR_INVALID_VALUE;
	result = join(resources, nbResources, &all);
	if (result)
		return result;
	pthread_mutex_lock(&descs_lock);
	desc = desc_find(&all);
	if (!desc) {
		desc = malloc(sizeof(*desc));
		if (desc) {
			desc->device = all.device;
			desc->sms = all.sms;
			desc->next = descs;
			descs = desc;
		}
	}
	pthread_mutex_unlock(&descs_lock);
	*phDesc = desc;
	return desc ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool resource_desc_get(CUdevResourceDesc handle, CUdevice device, struct sched_sms *sms)
{
	const struct CUdevResourceDesc_st *desc;

	pthread_mutex_lock(&descs_lock);
	for (desc = descs; desc && desc != handle; desc = desc->next)
		;
	if (desc)
		*sms = desc->sms;
	pthread_mutex_unlock(&descs_lock);
	return desc && desc->device == device;
}
