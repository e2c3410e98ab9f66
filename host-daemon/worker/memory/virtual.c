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
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/memory/allocation.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/host-mapping.h"
#include "worker/memory/placement.h"
#include "worker/memory/share.h"
#include "worker/memory/virtual.h"

/* Pages that the worker maps. */
#define HOST_PAGE 4096u

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
	CUdeviceptr address = 0;
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
	/* Else it can be what the driver left there. */
	if (result == CUDA_SUCCESS)
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
	if (allocation->arena_address) {
		call->session->virtual->n_host--;
		free(allocation);
		return;
	}
	if (allocation->backing.has_memory)
		call->driver->cuMemRelease(allocation->backing.memory);
	/* First, so that vgpud soon counts what others still use. */
	share_leave(call->session, &allocation->share);
	if (!allocation->is_import)
		device_memory_refund(call->session, allocation->device, allocation->size);
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
	const CUmemAllocationProp prop = allocation_properties(allocation);
	CUresult result;

	call->session->shares->device = allocation->device;
	result = call->driver->cuMemCreate(
		&allocation->backing.memory, allocation->size, &prop, 0);
	/* softgpu's is shared from the beginning; nobody knows its token yet. */
	allocation->share = *made;
	made->cookie = 0;
	if (result == CUDA_SUCCESS) {
		allocation->backing.has_memory = true;
		allocation->id = call->session->virtual->n_created++;
		result = publish(call, allocation);
		if (result != CUDA_SUCCESS)
			call->driver->cuMemRelease(allocation->backing.memory);
	}
	if (result != CUDA_SUCCESS)
		share_leave(call->session, &allocation->share);
	return result;
}

CUresult virtual_create(struct call *call, uint64_t size, CUdevice device,
	bool is_exportable, uint64_t *handlep)
{
	struct allocation *allocation;
	uint32_t n_tries = 0;
	CUresult result;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_charge(call->session, device, size))
		return device_memory_refuse(call->session, size, true);
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation) {
		device_memory_refund(call->session, device, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation->size = size;
	allocation->device = device;
	allocation->is_exportable = is_exportable;
	do {
		lock(call);
		result = create_locked(call, allocation);
		*handlep = allocation->handle;
		unlock(call);
		/* With a reason it is a limit, not the driver. */
	} while (!reason_is_said &&
		 device_memory_may_retry(call->session, result, device, size, &n_tries));
	if (result == CUDA_ERROR_OUT_OF_MEMORY && !reason_is_said)
		device_memory_refuse(call->session, size, false);
	if (result != CUDA_SUCCESS) {
		device_memory_refund(call->session, device, size);
		free(allocation);
	}
	return result;
}

/* Of addresses and sizes: that of any device. Return: 0 if the driver has none. */
static uint64_t granularity(struct call *call)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	size_t size;

	return call->driver->cuMemGetAllocationGranularity(
		       &size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS
		       ? size
		       : 0;
}

static bool is_granular(struct call *call, uint64_t value)
{
	uint64_t unit = granularity(call);

	return unit && value % unit == 0;
}

static CUresult create_host_locked(struct call *call, struct allocation *allocation)
{
	struct virtual_memory *virtual = call->session->virtual;
	CUresult result;

	if (virtual->n_host == VIRTUAL_HOST_MAX)
		return refuse("pieces of memory of the host", VIRTUAL_HOST_MAX);
	result = publish(call, allocation);
	if (result == CUDA_SUCCESS)
		virtual->n_host++;
	return result;
}

CUresult virtual_create_host(
	struct call *call, uint64_t size, uint64_t arena_address, uint64_t *handlep)
{
	struct allocation *allocation;
	CUresult result;

	if (!host_mapping_is_possible(call->driver, 0)) {
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"the devices of the host do not use memory of the host at "
			"addresses that programs choose");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!size || !is_granular(call, size) || arena_address % HOST_PAGE ||
		!arena_covers(call->session, arena_address, size))
		return CUDA_ERROR_INVALID_VALUE;
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->size = size;
	allocation->device = -1;
	allocation->arena_address = arena_address;
	lock(call);
	result = create_host_locked(call, allocation);
	*handlep = allocation->handle;
	unlock(call);
	if (result != CUDA_SUCCESS)
		free(allocation);
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
	/* The guest knows those of its own memory. */
	if (result == CUDA_SUCCESS && allocation->arena_address)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemGetAllocationPropertiesFromHandle(
			prop, allocation->backing.memory);
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

	result = call->driver->cuMemExportToShareableHandle(&fd,
		allocation->backing.memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (share_give(call->session, allocation->device, fd, allocation->size,
		    &allocation->share))
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

	result = call->driver->cuMemImportFromShareableHandle(&allocation->backing.memory,
		(void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (result != CUDA_SUCCESS)
		return result;
	allocation->backing.has_memory = true;
	result = call->driver->cuMemGetAllocationPropertiesFromHandle(
		&prop, allocation->backing.memory);
	allocation->device = prop.location.id;
	if (result == CUDA_SUCCESS)
		result = publish(call, allocation);
	if (result != CUDA_SUCCESS)
		call->driver->cuMemRelease(allocation->backing.memory);
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

static bool find_reservation(
	struct call *call, uint64_t address, uint64_t size, struct range *rangep)
{
	return ranges_find(&call->session->virtual->reservations, address, rangep) &&
	       vgpu_range_within(address, size, rangep->start, rangep->size);
}

/* The first mapping from an address on, if it begins before the end. */
static bool find_from(
	struct call *call, uint64_t address, uint64_t end, struct range *rangep)
{
	return ranges_find(&call->session->ranges, address, rangep) &&
	       rangep->start < end;
}

static bool is_on_host(const struct range *range)
{
	return allocation_of(range)->arena_address;
}

/* The addresses of a driver that keeps mappings of its own there cannot be lent. */
static CUresult lend_reservation(
	struct placement *placement, const struct range *reservation, bool for_host)
{
	CUresult result;

	result = placement_lend(placement, reservation->start, for_host);
	return for_host && result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

static CUresult refuse_mixture(void)
{
	reason_say(VGPU_REPLY_REASON_LIMIT,
		"the driver of the host cannot map memory of devices and of the host in "
		"one range of reserved addresses: reserve one for each");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * Gives the addresses of a reservation to who maps there, the driver or the worker. Only
 * a driver that knows the window lets both map in one.
 *
 * @is_lentp:	whether the worker has them
 */
static CUresult prepare_reservation(
	struct call *call, const struct range *reservation, bool for_host, bool *is_lentp)
{
	const uint64_t end = reservation->start + reservation->size;
	struct placement *placement = call->session->memory->placement;
	CUresult result = CUDA_SUCCESS;
	struct range first;

	*is_lentp = false;
	if (!placement)
		return CUDA_SUCCESS;
	if (!find_from(call, reservation->start, end, &first))
		result = lend_reservation(placement, reservation, for_host);
	else if (is_on_host(&first)
			 ? placement_is_lent(placement, reservation->start) && !for_host
			 : for_host)
		result = refuse_mixture();
	*is_lentp = placement_is_lent(placement, reservation->start);
	return result;
}

static CUresult map_host(struct call *call, struct range *range, uint64_t offset,
	const struct allocation *allocation, bool is_lent)
{
	/* CUDA's manual: the offset must be zero. */
	if (offset || range->size > allocation->size || !is_granular(call, range->size) ||
		!is_granular(call, range->start))
		return CUDA_ERROR_INVALID_VALUE;
	range->parent = host_mapping_new(
		call, range->start, range->size, allocation->arena_address, is_lent);
	if (!range->parent)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* What the guest writes there is at no address of the arena. */
	if (session_is_recorded(call->session))
		recorder_follow_pointers(call->session->recorder);
	return CUDA_SUCCESS;
}

static struct host_mapping *host_mapping_of(const struct range *range)
{
	return (struct host_mapping *)range->parent;
}

/* Of one mapping. */
static CUresult unmap_one(struct call *call, const struct range *range)
{
	if (!is_on_host(range))
		return call->driver->cuMemUnmap(range->start, range->size);
	host_mapping_free(call, host_mapping_of(range));
	return CUDA_SUCCESS;
}

static CUresult map_locked(struct call *call, struct range *range, uint64_t offset,
	struct allocation *allocation)
{
	struct virtual_memory *virtual = call->session->virtual;
	struct range reservation, mapped;
	CUresult result;
	bool is_lent;

	if (!find_reservation(call, range->start, range->size, &reservation) ||
		find_from(call, range->start, range->start + range->size, &mapped))
		return CUDA_ERROR_INVALID_VALUE;
	if (virtual->n_mappings == VIRTUAL_MAPPINGS_MAX)
		return refuse("mappings of memory", VIRTUAL_MAPPINGS_MAX);
	result = prepare_reservation(
		call, &reservation, allocation->arena_address, &is_lent);
	if (result != CUDA_SUCCESS)
		return result;
	range->owner = allocation;
	result = allocation->arena_address
			 ? map_host(call, range, offset, allocation, is_lent)
			 : call->driver->cuMemMap(range->start, range->size, offset,
				   allocation->backing.memory, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (ranges_add(&call->session->ranges, range)) {
		unmap_one(call, range);
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

static bool is_closing(const struct range *range)
{
	return is_on_host(range) && host_mapping_of(range)->is_closing;
}

/* Mappings that make up a piece of address space. */
struct pieces {
	uint32_t n;
	uint32_t n_on_host;
};

/* Whether whole mappings without gaps between make up [address, address + size), and no
 * other thread is closing any. */
static bool is_whole(
	struct call *call, uint64_t address, uint64_t size, struct pieces *pieces)
{
	struct range range;

	*pieces = (struct pieces){};
	while (size) {
		if (!ranges_find(&call->session->ranges, address, &range) ||
			range.kind != RANGE_MAPPED || range.start != address ||
			range.size > size || is_closing(&range))
			return false;
		address += range.size;
		size -= range.size;
		pieces->n++;
		pieces->n_on_host += is_on_host(&range);
	}
	return pieces->n;
}

/* Of a mapping that is no more. */
static void forget_mapping(struct call *call, uint64_t address, struct range *rangep)
{
	struct allocation *allocation;

	ranges_remove(&call->session->ranges, RANGE_MAPPED, address, rangep);
	allocation = (struct allocation *)rangep->owner;
	allocation->n_mappings--;
	call->session->virtual->n_mappings--;
	settle(call, allocation);
}

/* Closes those of the mappings in [address, end) that are closing, which nobody else
 * touches. The lock is not held meanwhile: the driver waits for work, which may wait for
 * other threads of the guest. */
static void close_mappings(struct call *call, uint64_t address, uint64_t end)
{
	struct host_mapping *list = NULL, *mapping;
	struct range range;

	for (; find_from(call, address, end, &range);
		address = range.start + range.size) {
		if (!is_closing(&range))
			continue;
		host_mapping_of(&range)->next = list;
		list = host_mapping_of(&range);
	}
	if (!list)
		return;
	unlock(call);
	for (mapping = list; mapping; mapping = mapping->next)
		host_mapping_close(call, mapping);
	lock(call);
	for (mapping = list; mapping; mapping = mapping->next)
		mapping->is_closing = false;
}

/* All mappings on the host lose the rights of devices. */
static void close_all(struct call *call, uint64_t address, uint64_t end)
{
	struct range range;

	for (uint64_t at = address; at < end; at += range.size) {
		ranges_find(&call->session->ranges, at, &range);
		if (!is_on_host(&range))
			continue;
		memset(host_mapping_of(&range)->access, 0, VGPU_DEVICES_MAX);
		host_mapping_of(&range)->is_closing = true;
	}
	close_mappings(call, address, end);
}

static CUresult unmap_locked(struct call *call, uint64_t address, uint64_t size)
{
	const uint64_t end = address + size;
	CUresult result = CUDA_SUCCESS;
	struct pieces pieces, before;
	struct range range;

	if (!is_whole(call, address, size, &pieces))
		return CUDA_ERROR_INVALID_VALUE;
	before = pieces;
	if (pieces.n_on_host)
		close_all(call, address, end);
	/* Another thread may have unmapped a device's memory in between. */
	if (!is_whole(call, address, size, &pieces) || pieces.n != before.n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!pieces.n_on_host)
		result = call->driver->cuMemUnmap(address, size);
	for (; address < end && result == CUDA_SUCCESS; address += range.size) {
		ranges_find(&call->session->ranges, address, &range);
		if (pieces.n_on_host)
			result = unmap_one(call, &range);
		if (result == CUDA_SUCCESS)
			forget_mapping(call, address, &range);
	}
	return result;
}

CUresult virtual_unmap(struct call *call, uint64_t address, uint64_t size)
{
	CUresult result;

	lock(call);
	result = unmap_locked(call, address, size);
	unlock(call);
	return result;
}

/*
 * Access
 */

/* What registration cannot do: it opens memory for reading and writing. */
static CUresult check_host_right(const struct vgpu_right *right)
{
	switch (right->flags) {
	case CU_MEM_ACCESS_FLAGS_PROT_NONE:
	case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
		return CUDA_SUCCESS;
	case CU_MEM_ACCESS_FLAGS_PROT_READ:
		return right->device < 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult check_rights(
	const struct pieces *pieces, const struct vgpu_right *rights, size_t n)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		if (rights[i].device < 0 && pieces->n_on_host != pieces->n)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (pieces->n_on_host)
			result = check_host_right(&rights[i]);
	}
	return result;
}

static CUresult set_device_access(struct call *call, uint64_t address, uint64_t size,
	const struct vgpu_right *rights, size_t n)
{
	CUmemAccessDesc descs[VGPU_RIGHTS_MAX];

	for (size_t i = 0; i < n; i++)
		descs[i] = (CUmemAccessDesc){
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, rights[i].device },
			.flags = (CUmemAccess_flags)rights[i].flags,
		};
	return call->driver->cuMemSetAccess(address, size, descs, n);
}

static CUresult set_access_of_one(struct call *call, const struct range *range,
	const struct vgpu_right *rights, size_t n)
{
	struct host_mapping *mapping = host_mapping_of(range);
	CUresult result = CUDA_SUCCESS;

	if (!is_on_host(range))
		return set_device_access(call, range->start, range->size, rights, n);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = host_mapping_set_access(call, mapping,
			rights[i].device < 0 ? HOST_MAPPING_GUEST
					     : (uint32_t)rights[i].device,
			(CUmemAccess_flags)rights[i].flags);
	return result;
}

static CUresult set_access_locked(struct call *call, uint64_t address, uint64_t size,
	const struct vgpu_right *rights, size_t n)
{
	const uint64_t end = address + size;
	struct pieces pieces;
	struct range range;
	CUresult result;

	if (!is_whole(call, address, size, &pieces))
		return CUDA_ERROR_INVALID_VALUE;
	result = check_rights(&pieces, rights, n);
	if (result == CUDA_SUCCESS && !pieces.n_on_host)
		return set_device_access(call, address, size, rights, n);
	for (uint64_t at = address; at < end && result == CUDA_SUCCESS;
		at += range.size) {
		ranges_find(&call->session->ranges, at, &range);
		result = set_access_of_one(call, &range, rights, n);
	}
	if (pieces.n_on_host)
		close_mappings(call, address, end);
	return result;
}

CUresult virtual_set_access(struct call *call, uint64_t address, uint64_t size,
	const struct vgpu_right *rights, size_t n)
{
	CUresult result;

	lock(call);
	result = set_access_locked(call, address, size, rights, n);
	unlock(call);
	return result;
}

static CUresult get_access_locked(
	struct call *call, uint64_t address, int32_t device, unsigned long long *flagsp)
{
	const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, device };
	const struct host_mapping *mapping;
	struct range range;

	if (!find_mapped(call, address))
		return CUDA_ERROR_INVALID_VALUE;
	ranges_find(&call->session->ranges, address, &range);
	if (is_on_host(&range)) {
		mapping = host_mapping_of(&range);
		*flagsp = mapping->access[device < 0 ? (int)HOST_MAPPING_GUEST : device];
		return CUDA_SUCCESS;
	}
	/* The guest's processors have no access to memory of devices. */
	if (device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	return call->driver->cuMemGetAccess(flagsp, &location, address);
}

CUresult virtual_get_access(
	struct call *call, uint64_t address, int32_t device, unsigned long long *flagsp)
{
	CUresult result;

	lock(call);
	result = get_access_locked(call, address, device, flagsp);
	unlock(call);
	return result;
}
