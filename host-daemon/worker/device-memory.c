/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: linear allocations at addresses in the window
 */

#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "worker/call.h"
#include "worker/placement.h"
#include "vgpu/rate.h"
#include "worker/session.h"

void device_memory_init(struct session *session)
{
	/* Drivers of ours were told where the window is. */
	if (!session->driver->set_window)
		session->memory.placement = placement_new(session);
}

void device_memory_deinit(struct session *session)
{
	session->memory.placement = placement_free(session->memory.placement);
}

uint64_t device_memory_limit(struct session *session, uint64_t total)
{
	return session->device_quota && session->device_quota < total
		       ? session->device_quota
		       : total;
}

bool device_memory_charge(struct session *session, uint64_t size)
{
	uint64_t used = __atomic_load_n(&session->memory.used, __ATOMIC_RELAXED), sum;

	do {
		if (!vgpu_add_u64(used, size, &sum) ||
			(session->device_quota && sum > session->device_quota))
			return false;
	} while (!__atomic_compare_exchange_n(&session->memory.used, &used, sum, true,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED));
	session_count(session, device_memory, size);
	return true;
}

void device_memory_refund(struct session *session, uint64_t size)
{
	__atomic_fetch_sub(&session->memory.used, size, __ATOMIC_RELAXED);
	session_count(session, device_memory, -size);
}

static bool in_window(const struct session *session, uint64_t address, uint64_t size)
{
	return vgpu_range_within(address, size, session->window.base + session->shm_size,
		session->window.size - session->shm_size);
}

static CUresult driver_free(struct session *session, uint64_t address)
{
	if (session->memory.placement)
		return placement_release(session->memory.placement, address);
	return session->driver->table.cuMemFree_v2(address);
}

static CUresult driver_alloc(
	struct session *session, CUdevice device, uint64_t size, uint64_t *addressp)
{
	static struct rate rate;
	CUdeviceptr address;
	CUresult result;

	if (session->memory.placement)
		return placement_take(session->memory.placement, device, size, addressp);
	result = session->driver->table.cuMemAlloc_v2(&address, size);
	if (result != CUDA_SUCCESS)
		return result;
	if (!in_window(session, address, size)) {
		session->driver->table.cuMemFree_v2(address);
		if (rate_allows(&rate))
			vgpu_log_error(
				"VM %s: the driver puts memory at %#llx, outside the "
				"window: refused.",
				session->vm, address);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*addressp = address;
	return CUDA_SUCCESS;
}

CUresult device_memory_alloc(struct call *call, uint64_t size, uint64_t *addressp)
{
	struct session *session = call->session;
	struct range range = {
		.size = size,
		.kind = RANGE_MEMORY,
		.owner = call->context,
	};
	CUresult result;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_charge(session, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = driver_alloc(session, call->context->device, size, &range.start);
	if (result != CUDA_SUCCESS)
		goto refund;
	if (ranges_add(&session->ranges, &range)) {
		driver_free(session, range.start);
		result = CUDA_ERROR_OUT_OF_MEMORY;
		goto refund;
	}
	*addressp = range.start;
	return CUDA_SUCCESS;

refund:
	device_memory_refund(session, size);
	return result;
}

CUresult device_memory_free(struct call *call, uint64_t address)
{
	struct session *session = call->session;
	struct range range;
	CUresult result;

	if (!address)
		return CUDA_SUCCESS;
	/* First it is no longer the guest's, then it is the driver's again. */
	if (ranges_remove(&session->ranges, RANGE_MEMORY, address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	result = driver_free(session, address);
	device_memory_refund(session, range.size);
	return result;
}

CUresult device_memory_publish_global(
	struct call *call, uint64_t address, uint64_t size, const void *parent)
{
	struct session *session = call->session;
	struct range range = {
		.start = address,
		.size = size,
		.kind = RANGE_GLOBAL,
		.owner = call->context,
		.parent = parent,
	};
	int r;

	if (!size)
		return CUDA_SUCCESS;
	r = ranges_add(&session->ranges, &range);
	/* Asked for before: the same range is there already. */
	if (r == RANGES_E_OVERLAP)
		return ranges_cover(&session->ranges, address, size)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult device_memory_info(struct call *call, size_t *freep, size_t *totalp)
{
	struct session *session = call->session;
	size_t free_size = 0, total = 0;
	uint64_t limit, used, left;
	CUresult result;

	result = call->driver->cuMemGetInfo_v2(&free_size, &total);
	if (result != CUDA_SUCCESS)
		return result;
	limit = device_memory_limit(session, total);
	used = __atomic_load_n(&session->memory.used, __ATOMIC_RELAXED);
	left = used < limit ? limit - used : 0;
	/* A quota is for all devices together; without one each tells of itself. */
	*freep = session->device_quota && left < free_size ? left : free_size;
	*totalp = limit;
	return CUDA_SUCCESS;
}

void device_memory_free_all(struct session *session, const struct context *context)
{
	struct range range;

	while (!ranges_remove_owned(&session->ranges, context, &range)) {
		if (range.kind != RANGE_MEMORY)
			continue;
		driver_free(session, range.start);
		device_memory_refund(session, range.size);
	}
}

void device_memory_forget(struct session *session, const struct context *context)
{
	struct range range;

	while (!ranges_remove_owned(&session->ranges, context, &range)) {
		if (range.kind != RANGE_MEMORY)
			continue;
		/* The driver frees its own with the context; ours are not the driver's.
		 */
		if (session->memory.placement)
			placement_release(session->memory.placement, range.start);
		device_memory_refund(session, range.size);
	}
}
