/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children: memory of the heap, and what kernels ask about the device
 */

#include <string.h>

#include "api/child.h"

/* cudaSharedMemBankSizeFourByte: of all devices that are left. */
#define BANKS_OF_FOUR_BYTES 1

/* As cudaFuncAttributes. */
struct attributes {
	uint64_t shared_size, const_size, local_size;
	int32_t max_threads, n_registers, ptx_version, binary_version;
	int32_t caches_globals, dynamic_shared_max, carveout;
	int32_t cluster_must_be_set;
	uint32_t cluster[3];
	int32_t cluster_policy, allows_larger_clusters;
};

#define ATTRIBUTES_SIZE 76u

_Static_assert(sizeof(struct attributes) >= ATTRIBUTES_SIZE &&
		       ATTRIBUTES_SIZE <= SERVICE_OUT_MAX,
	"what the runtime reads");

static int return_bytes(struct softgpu_request *request, const void *from, uint32_t size)
{
	memcpy(request->out, from, size);
	request->out_size = size;
	return SERVICE_OK;
}

static int return_number(struct softgpu_request *request, int32_t number)
{
	return return_bytes(request, &number, sizeof(number));
}

static int query_function(
	const struct softgpu_launch *launch, struct softgpu_request *request)
{
	struct attributes a = {};
	CUfunction function;
	int r;

	function = child_function(launch, request->words[1], &r);
	if (!function)
		return r;
	a.shared_size = function->info->static_shared_size;
	a.const_size = function->info->const_size;
	a.local_size = function->info->local_size;
	a.max_threads = (int32_t)function->info->max_threads;
	a.n_registers =
		(int32_t)(function->info->n_registers < 255 ? function->info->n_registers
							    : 255);
	a.ptx_version = (int32_t)function->info->target;
	a.binary_version = (int32_t)softgpu_device.cc;
	a.dynamic_shared_max = (int32_t)function_dynamic_shared_max(function);
	a.carveout = setting_get(function->carveout);
	function_required_cluster(function, a.cluster);
	a.cluster_must_be_set = function->info->is_cluster_explicit && !a.cluster[0];
	a.cluster_policy = setting_get(function->cluster_policy);
	a.allows_larger_clusters = setting_get(function->allows_larger_clusters);
	return return_bytes(request, &a, ATTRIBUTES_SIZE);
}

static int query_occupancy(
	const struct softgpu_launch *launch, struct softgpu_request *request)
{
	int32_t n_threads = (int32_t)request->words[2];
	uint64_t shared = request->words[3];
	CUfunction function;
	int r;

	if (n_threads <= 0 || shared > API_SM_SHARED ||
		(request->service == SERVICE_OCCUPANCY_WITH_FLAGS &&
			(uint32_t)request->words[4] &
				~(uint32_t)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		return SERVICE_INVALID_VALUE;
	function = child_function(launch, request->words[1], &r);
	if (!function)
		return r;
	return return_number(request,
		(int32_t)occupancy_blocks(function, (uint64_t)n_threads, shared));
}

static int query_limit(CUcontext context, struct softgpu_request *request)
{
	uint32_t limit = (uint32_t)request->words[1];
	uint64_t value;

	if (limit >= CU_LIMIT_MAX || !context_has_limit((CUlimit)limit))
		return SERVICE_UNSUPPORTED_LIMIT;
	value = setting_get(context->limits[limit]);
	return return_bytes(request, &value, sizeof(value));
}

static int query_attribute(struct softgpu_request *request)
{
	int32_t device = (int32_t)request->words[2], value;

	if (device < 0 || (uint32_t)device >= softgpu_device.n_devices)
		return SERVICE_INVALID_DEVICE;
	if (!device_attribute(device, (int)request->words[1], &value))
		return SERVICE_INVALID_VALUE;
	return return_number(request, value);
}

/* CUDA: from the heap of malloc(); what the host has allocated cannot be freed here. */
static int take_memory(
	const struct softgpu_launch *launch, struct softgpu_request *request)
{
	const struct softgpu_hooks *hooks = launch->hooks;
	uint64_t size = request->words[1], address = 0;

	if (size)
		address = hooks->malloc(hooks->heap, size);
	if (size && !address)
		return SERVICE_MEMORY_ALLOCATION;
	return return_bytes(request, &address, sizeof(address));
}

static int give_memory(
	const struct softgpu_launch *launch, const struct softgpu_request *request)
{
	const struct softgpu_hooks *hooks = launch->hooks;
	struct heap *heap = &((CUcontext)hooks->heap)->heap;
	uint64_t address = request->words[0];

	if (address && !heap_holds(heap, address))
		return SERVICE_INVALID_VALUE;
	if (address)
		hooks->free(hooks->heap, address);
	return SERVICE_OK;
}

int child_query(const struct softgpu_launch *launch, struct softgpu_request *request)
{
	CUcontext context = ((CUmodule)launch->owner)->object.context;

	switch (request->service) {
	case SERVICE_GET_DEVICE:
		return return_number(request, context->device);
	case SERVICE_GET_DEVICE_COUNT:
		return return_number(request, (int32_t)softgpu_device.n_devices);
	case SERVICE_DEVICE_GET_ATTRIBUTE:
		return query_attribute(request);
	case SERVICE_DEVICE_GET_LIMIT:
		return query_limit(context, request);
	case SERVICE_DEVICE_GET_CACHE_CONFIG:
		return return_number(
			request, (int32_t)setting_get(context->cache_config));
	case SERVICE_DEVICE_GET_SHARED_MEM_CONFIG:
		return return_number(request, BANKS_OF_FOUR_BYTES);
	case SERVICE_FUNC_GET_ATTRIBUTES:
		return query_function(launch, request);
	case SERVICE_OCCUPANCY:
	case SERVICE_OCCUPANCY_WITH_FLAGS:
		return query_occupancy(launch, request);
	case SERVICE_MALLOC:
		return take_memory(launch, request);
	case SERVICE_FREE:
		return give_memory(launch, request);
	default:
		return SERVICE_NOT_SUPPORTED;
	}
}
