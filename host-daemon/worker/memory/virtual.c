/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: reserved addresses in the window, and memory mapped at them
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/handle.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/placement.h"
#include "worker/memory/share.h"
#include "worker/memory/virtual.h"

/* A piece of memory: the object of a handle, and the owner of its ranges. */
struct allocation {
	CUmemGenericAllocationHandle memory; /* the driver's */
	uint64_t size;
	CUdevice device;
	uint32_t n_handles; /* of the guest */
	uint32_t n_mappings;
	uint64_t handle; /* the guest's, if it has any */
	bool is_exportable;
	bool is_import;	    /* of another process, which pays for it */
	struct share share; /* if other processes have its token */
};

void virtual_init(struct session *session)
{
	pthread_mutex_init(&session->virtual->lock, NULL);
	ranges_init(&session->virtual->reservations);
}

void virtual_deinit(struct session *session)
{
	ranges_deinit(&session->virtual->reservations);
	pthread_mutex_destroy(&session->virtual->lock);
}

static void lock(struct call *call)
{
	pthread_mutex_lock(&call->session->virtual->lock);
}

static void unlock(struct call *call)
{
	pthread_mutex_unlock(&call->session->virtual->lock);
}

static CUresult refuse(const char *what, unsigned int max)
{
	reason_say(
		VGPU_REPLY_REASON_LIMIT, "a process may have %u %s at once", max, what);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * Addresses
 */

static CUresult driver_unreserve(struct call *call, uint64_t address, uint64_t size)
{
	struct placement *placement = call->session->memory->placement;

	return placement ? placement_unreserve(placement, address)
			 : call->driver->cuMemAddressFree(address, size);
}

static CUresult driver_reserve(struct call *call, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp)
{
	const struct session *session = call->session;
	CUdeviceptr address;
	CUresult result;

	if (session->memory->placement)
		return placement_reserve(
			session->memory->placement, size, alignment, hint, addressp);
	/* A driver that neither has addresses of ours nor takes them. */
	if (!session->driver->set_window)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuMemAddressReserve(&address, size, alignment, hint, 0);
	*addressp = address;
	return result;
}

static CUresult reserve_locked(struct call *call, struct range *range, uint64_t alignment)
{
	struct virtual_memory *virtual = call->session->virtual;
	CUresult result;

	if (virtual->n_reservations == VIRTUAL_RESERVATIONS_MAX)
		return refuse("ranges of reserved addresses", VIRTUAL_RESERVATIONS_MAX);
	result =
		driver_reserve(call, range->size, alignment, range->start, &range->start);
	if (result != CUDA_SUCCESS)
		return result;
	if (ranges_add(&virtual->reservations, range)) {
		driver_unreserve(call, range->start, range->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	virtual->n_reservations++;
	return CUDA_SUCCESS;
}

CUresult virtual_reserve(struct call *call, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp)
{
	struct range range = { .start = hint, .size = size };
	CUresult result;

	if (!size || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	lock(call);
	result = reserve_locked(call, &range, alignment);
	unlock(call);
	*addressp = range.start;
	return result;
}

static CUresult unreserve_locked(struct call *call, uint64_t address, uint64_t size)
{
	struct virtual_memory *virtual = call->session->virtual;
	struct range range, mapped;
	CUresult result;

	if (!ranges_find(&virtual->reservations, address, &range) ||
		range.start != address || range.size != size)
		return CUDA_ERROR_INVALID_VALUE;
	if (ranges_find(&call->session->ranges, address, &mapped) &&
		mapped.start < address + size)
		return CUDA_ERROR_INVALID_VALUE;
	result = driver_unreserve(call, address, size);
	if (result != CUDA_SUCCESS)
		return result;
	ranges_remove(&virtual->reservations, range.kind, address, &range);
	virtual->n_reservations--;
	return CUDA_SUCCESS;
}

CUresult virtual_unreserve(struct call *call, uint64_t address, uint64_t size)
{
	CUresult result;

	lock(call);
	result = unreserve_locked(call, address, size);
	unlock(call);
	return result;
}

/*
 * Memory
 */

/* Frees memory that neither a handle nor a mapping keeps. */
static void settle(struct call *call, struct allocation *allocation)
{
	if (allocation->n_handles || allocation->n_mappings)
		return;
	call->driver->cuMemRelease(allocation->memory);
	/* First, so that vgpud soon counts what others still use. */
	share_leave(call->session, &allocation->share);
	if (!allocation->is_import)
		device_memory_refund(call->session, allocation->size);
	free(allocation);
}

/* With the lock. */
static CUresult find(struct call *call, uint64_t handle, struct allocation **allocationp)
{
	void *object;
	CUresult result;

	result = object_get(call, VGPU_HANDLE_ALLOCATION, handle, false, &object);
	*allocationp = object;
	return result;
}

/* Gives memory its first handle. */
static CUresult publish(struct call *call, struct allocation *allocation)
{
	CUresult result;

	result =
		object_add(call, VGPU_HANDLE_ALLOCATION, allocation, &allocation->handle);
	if (result == CUDA_SUCCESS)
		allocation->n_handles = 1;
	return result;
}

static CUresult create_locked(struct call *call, struct allocation *allocation)
{
	struct share *made = &call->session->shares->made;
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = allocation->is_exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, allocation->device },
	};
	CUresult result;

	result = call->driver->cuMemCreate(
		&allocation->memory, allocation->size, &prop, 0);
	/* softgpu's is shared from the beginning; nobody knows its token yet. */
	allocation->share = *made;
	made->cookie = 0;
	if (result == CUDA_SUCCESS) {
		result = publish(call, allocation);
		if (result != CUDA_SUCCESS)
			call->driver->cuMemRelease(allocation->memory);
	}
	if (result != CUDA_SUCCESS)
		share_leave(call->session, &allocation->share);
	return result;
}

CUresult virtual_create(struct call *call, uint64_t size, CUdevice device,
	bool is_exportable, uint64_t *handlep)
{
	struct allocation *allocation;
	CUresult result;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_charge(call->session, size))
		return device_memory_refuse(call->session, size, true);
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation) {
		device_memory_refund(call->session, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation->size = size;
	allocation->device = device;
	allocation->is_exportable = is_exportable;
	lock(call);
	result = create_locked(call, allocation);
	*handlep = allocation->handle;
	unlock(call);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && !reason_is_said)
		device_memory_refuse(call->session, size, false);
	if (result != CUDA_SUCCESS) {
		device_memory_refund(call->session, size);
		free(allocation);
	}
	return result;
}

CUresult virtual_release(struct call *call, uint64_t handle)
{
	struct allocation *allocation;
	void *object;
	CUresult result;

	lock(call);
	result = find(call, handle, &allocation);
	if (result == CUDA_SUCCESS && !--allocation->n_handles) {
		object_take(call, VGPU_HANDLE_ALLOCATION, handle, &object);
		settle(call, allocation);
	}
	unlock(call);
	return result;
}

/* With the lock. Return: what is mapped at an address, or NULL. */
static struct allocation *find_mapped(struct call *call, uint64_t address)
{
	struct range range;

	if (!ranges_find(&call->session->ranges, address, &range) ||
		range.kind != RANGE_MAPPED || range.start > address)
		return NULL;
	return (struct allocation *)range.owner;
}

CUresult virtual_retain(struct call *call, uint64_t address, uint64_t *handlep)
{
	CUresult result = CUDA_SUCCESS;
	struct allocation *allocation;

	lock(call);
	allocation = find_mapped(call, address);
	if (!allocation)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!allocation->n_handles)
		result = publish(call, allocation);
	else
		allocation->n_handles++;
	if (result == CUDA_SUCCESS)
		*handlep = allocation->handle;
	unlock(call);
	return result;
}

CUresult virtual_properties(struct call *call, uint64_t handle, CUmemAllocationProp *prop)
{
	struct allocation *allocation;
	CUresult result;

	lock(call);
	result = find(call, handle, &allocation);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemGetAllocationPropertiesFromHandle(
			prop, allocation->memory);
	unlock(call);
	return result;
}

/*
 * Sharing with other processes
 */

/* Gives what the driver exports to vgpud. */
static CUresult export_locked(struct call *call, struct allocation *allocation)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	CUresult result;

	result = call->driver->cuMemExportToShareableHandle(
		&fd, allocation->memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (share_give(call->session, fd, allocation->size, &allocation->share))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult virtual_export(
	struct call *call, uint64_t handle, uint8_t token[CONTROL_TOKEN_SIZE])
{
	struct allocation *allocation;
	CUresult result;

	lock(call);
	result = find(call, handle, &allocation);
	if (result == CUDA_SUCCESS && !allocation->is_exportable)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && !allocation->share.cookie)
		result = export_locked(call, allocation);
	if (result == CUDA_SUCCESS)
		memcpy(token, allocation->share.token, CONTROL_TOKEN_SIZE);
	unlock(call);
	return result;
}

static CUresult import_locked(struct call *call, struct allocation *allocation, int fd)
{
	CUmemAllocationProp prop = {};
	CUresult result;

	result = call->driver->cuMemImportFromShareableHandle(&allocation->memory,
		(void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuMemGetAllocationPropertiesFromHandle(
		&prop, allocation->memory);
	allocation->device = prop.location.id;
	if (result == CUDA_SUCCESS)
		result = publish(call, allocation);
	if (result != CUDA_SUCCESS)
		call->driver->cuMemRelease(allocation->memory);
	return result;
}

CUresult virtual_import(
	struct call *call, const uint8_t token[CONTROL_TOKEN_SIZE], uint64_t *handlep)
{
	_vgpu_cleanup_(vgpu_freep) struct allocation *allocation = NULL;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	CUresult result;

	allocation = calloc(1, sizeof(*allocation));
	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->is_import = true;
	allocation->is_exportable = true;
	memcpy(allocation->share.token, token, CONTROL_TOKEN_SIZE);
	if (share_take(call->session, &allocation->share, &fd))
		return CUDA_ERROR_INVALID_VALUE;
	lock(call);
	result = import_locked(call, allocation, fd);
	*handlep = allocation->handle;
	if (result != CUDA_SUCCESS)
		share_leave(call->session, &allocation->share);
	else
		allocation = NULL;
	unlock(call);
	return result;
}

/*
 * Mappings
 */

static bool is_reserved(struct call *call, uint64_t address, uint64_t size)
{
	struct range range;

	return ranges_find(&call->session->virtual->reservations, address, &range) &&
	       vgpu_range_within(address, size, range.start, range.size);
}

static CUresult map_locked(struct call *call, struct range *range, uint64_t offset,
	struct allocation *allocation)
{
	struct virtual_memory *virtual = call->session->virtual;
	CUresult result;

	if (!is_reserved(call, range->start, range->size))
		return CUDA_ERROR_INVALID_VALUE;
	if (virtual->n_mappings == VIRTUAL_MAPPINGS_MAX)
		return refuse("mappings of memory", VIRTUAL_MAPPINGS_MAX);
	result = call->driver->cuMemMap(
		range->start, range->size, offset, allocation->memory, 0);
	if (result != CUDA_SUCCESS)
		return result;
	range->owner = allocation;
	if (ranges_add(&call->session->ranges, range)) {
		call->driver->cuMemUnmap(range->start, range->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation->n_mappings++;
	virtual->n_mappings++;
	return CUDA_SUCCESS;
}

CUresult virtual_map(struct call *call, uint64_t address, uint64_t size, uint64_t offset,
	uint64_t handle, CUdevice *devicep, bool *is_exportablep)
{
	struct range range = { .start = address, .size = size, .kind = RANGE_MAPPED };
	struct allocation *allocation;
	CUresult result;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	lock(call);
	result = find(call, handle, &allocation);
	if (result == CUDA_SUCCESS)
		result = map_locked(call, &range, offset, allocation);
	if (result == CUDA_SUCCESS) {
		*devicep = allocation->device;
		*is_exportablep = allocation->is_exportable;
	}
	unlock(call);
	return result;
}

/* Whether whole mappings without gaps between make up [address, address + size). */
static bool is_whole(struct call *call, uint64_t address, uint64_t size)
{
	struct range range;

	if (!size)
		return false;
	while (size) {
		if (!ranges_find(&call->session->ranges, address, &range) ||
			range.kind != RANGE_MAPPED || range.start != address ||
			range.size > size)
			return false;
		address += range.size;
		size -= range.size;
	}
	return true;
}

static CUresult unmap_locked(struct call *call, uint64_t address, uint64_t size)
{
	struct virtual_memory *virtual = call->session->virtual;
	const uint64_t end = address + size;
	struct range range;
	CUresult result;

	if (!is_whole(call, address, size))
		return CUDA_ERROR_INVALID_VALUE;
	result = call->driver->cuMemUnmap(address, size);
	if (result != CUDA_SUCCESS)
		return result;
	for (; address < end; address += range.size) {
		struct allocation *allocation;

		ranges_remove(&call->session->ranges, RANGE_MAPPED, address, &range);
		allocation = (struct allocation *)range.owner;
		allocation->n_mappings--;
		virtual->n_mappings--;
		settle(call, allocation);
	}
	return CUDA_SUCCESS;
}

CUresult virtual_unmap(struct call *call, uint64_t address, uint64_t size)
{
	CUresult result;

	lock(call);
	result = unmap_locked(call, address, size);
	unlock(call);
	return result;
}

CUresult virtual_set_access(struct call *call, uint64_t address, uint64_t size,
	const CUmemAccessDesc *descs, size_t n)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	lock(call);
	if (is_whole(call, address, size))
		result = call->driver->cuMemSetAccess(address, size, descs, n);
	unlock(call);
	return result;
}

CUresult virtual_get_access(
	struct call *call, uint64_t address, CUdevice device, unsigned long long *flagsp)
{
	const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, device };
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	lock(call);
	if (find_mapped(call, address))
		result = call->driver->cuMemGetAccess(flagsp, &location, address);
	unlock(call);
	return result;
}
