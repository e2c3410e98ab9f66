/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory: cuMemCreate() and its handles
 *
 * A handle is counted: each cuMemCreate(), cuMemRetainAllocationHandle() and import needs
 * its cuMemRelease(). The memory itself stays as long as it has a handle or is mapped;
 * and as long as it does, its description is kept, so that the address of a mapping leads
 * back to a handle.
 */

#include <string.h>

#include "api/api.h"
#include "mem/virtual.h"

struct allocation {
	struct object object;
	struct physical *physical; /* a reference while it has a handle */
	CUmemAllocationProp prop;
	uint32_t n_handles; /* allocations.lock */
};

static pthread_mutex_t allocations_lock = PTHREAD_MUTEX_INITIALIZER;

static struct allocation *find(CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation = (struct allocation *)(uintptr_t)handle;

	return object_hold(allocation, OBJECT_ALLOCATION) ? allocation : NULL;
}

static CUmemGenericAllocationHandle handle_of(const struct allocation *allocation)
{
	return (uintptr_t)allocation;
}

struct physical *allocation_memory(CUmemGenericAllocationHandle handle)
{
	struct allocation *allocation = find(handle);
	struct physical *physical = NULL;

	if (!allocation)
		return NULL;
	pthread_mutex_lock(&allocations_lock);
	if (allocation->n_handles) {
		physical = allocation->physical;
		physical_ref(&softgpu_device.memory, physical);
	}
	pthread_mutex_unlock(&allocations_lock);
	return physical;
}

/* The handle is what is released; its description goes with the memory. */
static void allocation_end(struct object *object)
{
}

static void allocation_freed(void *data)
{
	struct allocation *allocation = data;

	object_unref(&allocation->object);
}

CUresult location_get(const CUmemLocation *location, uint32_t *devicep)
{
	CUresult result;

	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		result = device_get(location->id);
		if (!result)
			*devicep = (uint32_t)location->id;
		return result;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		break;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		/* The only node. */
		if (location->id)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	*devicep = RANGE_HOST_ACCESS;
	return CUDA_SUCCESS;
}

/* Whether memory with these properties can be made. */
static CUresult check_prop(const CUmemAllocationProp *prop, uint32_t *devicep)
{
	CUresult result;

	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA's manual: that memory cannot be shared, whatever the type. */
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST &&
		prop->requestedHandleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	result = location_get(&prop->location, devicep);
	if (result)
		return result;
	/* Tiles of sparse arrays, and formats of operating systems that this is not. */
	if (prop->allocFlags.usage ||
		(prop->requestedHandleTypes &&
			prop->requestedHandleTypes !=
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

/* A first handle for memory, whose reference it takes over. */
static CUresult publish(struct physical *physical, const CUmemAllocationProp *prop,
	CUmemGenericAllocationHandle *handle)
{
	struct memory *memory = &softgpu_device.memory;
	struct allocation *allocation;

	allocation = object_new(OBJECT_ALLOCATION, sizeof(*allocation), NULL);
	if (!allocation) {
		physical_unref(memory, physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation->object.end = allocation_end;
	allocation->physical = physical;
	allocation->prop = *prop;
	allocation->n_handles = 1;
	/* The memory's own reference is the first one. */
	physical->freed = allocation_freed;
	physical->data = allocation;
	/* Its handle's, which a thread that guesses it may release at once. */
	object_ref(&allocation->object);
	if (object_enter(&allocation->object)) {
		object_unref(&allocation->object);
		physical_unref(memory, physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = handle_of(allocation);
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	API_CALL;
	struct physical template = { .size = size }, *physical;
	CUmemAllocationProp made;
	CUresult result;
	uint32_t device;

	result = device_check();
	if (result)
		return result;
	if (!handle || flags || !size || size % VIRTUAL_GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	result = check_prop(prop, &device);
	if (!result)
		result = device_begin();
	if (result)
		return result;
	template.is_host = device == RANGE_HOST_ACCESS;
	template.device = template.is_host ? 0 : device;
	template.is_shared = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
	if (physical_new(&softgpu_device.memory, &template, &physical))
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* There is neither compression nor RDMA: hints that have no effect. */
	made = (CUmemAllocationProp){
		.type = prop->type,
		.requestedHandleTypes = prop->requestedHandleTypes,
		.location = prop->location,
	};
	return publish(physical, &made, handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	API_CALL;
	struct allocation *allocation;
	bool is_last = false;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	allocation = find(handle);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&allocations_lock);
	/* Released by another thread since it was found? */
	if (!allocation->n_handles) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (!--allocation->n_handles) {
		object_leave(&allocation->object);
		is_last = true;
	}
	pthread_mutex_unlock(&allocations_lock);
	if (is_last) {
		physical_unref(&softgpu_device.memory, allocation->physical);
		object_unref(&allocation->object);
	}
	return result;
}

/* One handle more for memory, of which the caller has a reference. */
static CUresult retain(struct physical *physical, CUmemGenericAllocationHandle *handle)
{
	struct allocation *allocation = physical->data;
	struct memory *memory = &softgpu_device.memory;
	CUresult result = CUDA_SUCCESS;
	bool is_first;

	pthread_mutex_lock(&allocations_lock);
	is_first = !allocation->n_handles;
	if (is_first && object_enter(&allocation->object))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (is_first)
		object_ref(&allocation->object);
	if (!result)
		allocation->n_handles++;
	pthread_mutex_unlock(&allocations_lock);
	if (!result)
		*handle = handle_of(allocation);
	/* The first handle keeps the reference. */
	if (result || !is_first)
		physical_unref(memory, physical);
	return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	API_CALL;
	struct physical *physical;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!handle || !softgpu_device.has_memory)
		return CUDA_ERROR_INVALID_VALUE;
	physical = virtual_find(&softgpu_device.memory, (uintptr_t)addr);
	return physical ? retain(physical, handle) : CUDA_ERROR_INVALID_VALUE;
}

/*
 * Sharing with other processes
 */

CUresult cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	API_CALL;
	struct physical *physical;
	CUresult result;
	int fd;

	result = device_check();
	if (result)
		return result;
	physical = flags ? NULL : allocation_memory(handle);
	if (!physical)
		return CUDA_ERROR_INVALID_VALUE;
	/* Memory has to be created for it. */
	if (!shareableHandle || !physical->is_shared ||
		handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		fd = physical_export(physical);
		if (fd < 0)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		else
			*(int *)shareableHandle = fd;
	}
	physical_unref(&softgpu_device.memory, physical);
	return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	API_CALL;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	};
	struct physical *physical;
	CUresult result;
	int r;

	result = device_begin();
	if (result)
		return result;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = physical_import(&softgpu_device.memory, (int)(intptr_t)osHandle, &physical);
	if (r)
		return r == MEMORY_E_UNKNOWN ? CUDA_ERROR_INVALID_VALUE
					     : CUDA_ERROR_OUT_OF_MEMORY;
	prop.location.type = physical->is_host ? CU_MEM_LOCATION_TYPE_HOST
					       : CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = (int)physical->device;
	return publish(physical, &prop, handle);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	API_CALL;
	CUresult result;
	uint32_t device;

	result = device_check();
	if (result)
		return result;
	if (!granularity || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
				    option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	result = check_prop(prop, &device);
	if (!result)
		*granularity = VIRTUAL_GRANULARITY;
	return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	API_CALL;
	struct allocation *allocation;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	allocation = find(handle);
	if (!prop || !allocation)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = allocation->prop;
	return CUDA_SUCCESS;
}
