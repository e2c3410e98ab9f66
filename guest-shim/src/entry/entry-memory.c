/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: allocations on the device and of pinned memory
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "entry/graph-memory.h"
#include "entry/pool-block.h"
#include "g-remote.h"
#include "memory/arena.h"
#include "memory/copy.h"
#include "memory/range.h"
#include "memory/registered.h"
#include "process/call.h"
#include "process/context.h"
#include "wait/capture.h"
#include "wire/lock.h"

#define HOST_ALLOC_FLAGS                                                                 \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                          \
		CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                                              \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                    \
		CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

/* The current context, or the error of a call that needs one. */
static CUresult current(struct shim_context **contextp)
{
	struct shim_thread *thread;

	SHIM_CHECK_READY();
	thread = shim_thread_get();
	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*contextp = shim_thread_context(thread);
	return shim_context_check(*contextp);
}

/* Ends an allocation, for which no context has to be current. */
static CUresult end_range(
	uint64_t range_address, CUresult (*end)(uint64_t address), uint64_t address)
{
	struct shim_context *context;
	struct shim_range range;
	bool is_lent = shim_range_find(range_address, &range) &&
		       shim_context_lend(range.context);
	CUresult result = end(address);

	if (is_lent)
		shim_context_pop(&context);
	return result;
}

/* Notes an allocation that the host made, or undoes it. */
static CUresult keep(CUdeviceptr address, uint64_t size)
{
	struct shim_range range = {
		.base = address,
		.size = size,
		.kind = SHIM_RANGE_DEVICE,
	};
	CUresult result = current(&range.context);

	if (result == CUDA_SUCCESS && shim_range_add(&range))
		return CUDA_SUCCESS;
	shim_remote_cuMemFree_v2(address);
	return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult shim_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemAlloc_v2);
	CUdeviceptr address;
	CUresult result;

	if (!dptr || !bytesize)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = shim_remote_cuMemAlloc_v2(&address, bytesize);
	if (result == CUDA_SUCCESS)
		result = keep(address, bytesize);
	if (result == CUDA_SUCCESS)
		*dptr = address;
	return result;
}

CUresult shim_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned int ElementSizeBytes)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemAllocPitch_v2);
	CUdeviceptr address;
	CUresult result;
	size_t pitch;

	if (!dptr || !pPitch || !WidthInBytes || !Height)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = shim_remote_cuMemAllocPitch_v2(
		&address, &pitch, WidthInBytes, Height, ElementSizeBytes);
	if (result == CUDA_SUCCESS)
		result = keep(address, pitch * Height);
	if (result != CUDA_SUCCESS)
		return result;
	*dptr = address;
	*pPitch = pitch;
	return CUDA_SUCCESS;
}

/* Freed while a capture was live, which a wait would spoil. */
struct late_range {
	struct late_range *next;
	struct shim_range range;
};

static struct shim_lock late_lock;
static struct late_range *late_ranges;

static CUresult free_later(const struct shim_range *range)
{
	struct late_range *late = malloc(sizeof(*late));

	/* Without memory the range is lost until the process ends. */
	if (!late)
		return CUDA_ERROR_OUT_OF_MEMORY;
	late->range = *range;
	shim_lock(&late_lock);
	late->next = late_ranges;
	late_ranges = late;
	shim_unlock(&late_lock);
	return CUDA_SUCCESS;
}

static struct late_range *take_late(void)
{
	struct late_range *taken;

	shim_lock(&late_lock);
	taken = late_ranges;
	late_ranges = NULL;
	shim_unlock(&late_lock);
	return taken;
}

/* Waits for the context of an allocation, unless it is the current one, which was waited
 * for, or gone. */
static CUresult wait_elsewhere(const struct shim_range *range)
{
	struct shim_context *context = range->context, *waited_for;

	if (current(&waited_for) == CUDA_SUCCESS && context == waited_for)
		return CUDA_SUCCESS;
	return shim_context_check(context) == CUDA_SUCCESS
		       ? shim_cuCtxSynchronize_v2(shim_context_public(context))
		       : CUDA_SUCCESS;
}

static void give_back(const struct shim_range *range)
{
	shim_arena_free((void *)(uintptr_t)range->base);
}

/* Frees arena memory, and earlier frees that had to be deferred. Waits as the driver
 * does: the device may still use the memory. */
static CUresult free_in_arena(const struct shim_range *range)
{
	struct late_range *late;
	CUresult result, elsewhere;

	if (shim_channel_has_capture())
		return free_later(range);
	late = take_late();
	result = shim_cuCtxSynchronize();
	elsewhere = wait_elsewhere(range);
	give_back(range);
	while (late) {
		struct late_range *next = late->next;

		wait_elsewhere(&late->range);
		give_back(&late->range);
		free(late);
		late = next;
	}
	return result != CUDA_SUCCESS ? result : elsewhere;
}

/* Unlike cuMemFreeAsync this waits. */
static CUresult free_in_pool(CUdeviceptr address)
{
	CUresult result = shim_cuCtxSynchronize();

	if (result == CUDA_SUCCESS && !shim_pool_free(address))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

static CUresult free_memory(uint64_t dptr)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemFree_v2);
	struct shim_range range;
	CUresult result = shim_call_check(call.id);

	if (result == CUDA_SUCCESS)
		result = shim_capture_check_memory();
	if (result != CUDA_SUCCESS || !dptr ||
		shim_graph_memory_free(dptr, NULL, &result))
		return result;
	/* Forgotten first: once the host has freed it, its address may be given out
	 * again to another thread. */
	if (shim_range_remove(dptr, SHIM_RANGE_DEVICE, &range))
		return shim_remote_cuMemFree_v2(dptr);
	if (shim_range_remove(dptr, SHIM_RANGE_MANAGED, &range))
		return free_in_arena(&range);
	if (shim_pool_find_range(dptr, &range) && range.base == dptr && range.owner)
		return free_in_pool(dptr);
	return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuMemFree_v2(CUdeviceptr dptr)
{
	return end_range(dptr, free_memory, dptr);
}

CUresult shim_cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	size_t all_free, all;
	CUresult result =
		shim_cuMemGetInfo_v2(free ? &all_free : NULL, total ? &all : NULL);

	if (result != CUDA_SUCCESS)
		return result;
	*free = all_free > UINT32_MAX ? UINT32_MAX : (unsigned int)all_free;
	*total = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct shim_range range = { .kind = SHIM_RANGE_PINNED, .flags = Flags };
	CUresult result = current(&range.context);
	void *pointer;

	if (result != CUDA_SUCCESS)
		return result;
	if (!pp || !bytesize || Flags & ~(unsigned int)HOST_ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_capture_check_memory();
	if (result != CUDA_SUCCESS)
		return result;
	pointer = shim_arena_alloc_zeroed(bytesize);
	if (!pointer)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range.base = (uint64_t)(uintptr_t)pointer;
	range.size = bytesize;
	if (!shim_range_add(&range)) {
		shim_arena_free(pointer);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*pp = pointer;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return shim_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult shim_cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return shim_cuMemHostAlloc(pp, bytesize, 0);
}

static CUresult free_pinned(uint64_t address)
{
	struct shim_context *context;
	struct shim_range range;
	CUresult result = current(&context);

	if (result == CUDA_SUCCESS)
		result = shim_capture_check_memory();
	if (result != CUDA_SUCCESS || !address)
		return result;
	if (!shim_range_remove(address, SHIM_RANGE_PINNED, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return free_in_arena(&range);
}

CUresult shim_cuMemFreeHost(void *p)
{
	return end_range(shim_address(p), free_pinned, shim_address(p));
}

/* *devicep: the same address unless the memory is registered */
static CUresult find_pinned(const void *p, struct shim_range *range, CUdeviceptr *devicep)
{
	struct shim_context *context;
	CUresult result = current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	*devicep = shim_registered_reach(shim_address(p), 1);
	if (!shim_range_find(*devicep, range) || !shim_range_is_on_host(range))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemHostGetDevicePointer_v2(
	CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct shim_range range;
	CUdeviceptr address;
	CUresult result = find_pinned(p, &range, &address);

	if (result == CUDA_SUCCESS && (!pdptr || Flags))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*pdptr = address;
	return result;
}

/* Whether memory can be registered at all. */
static CUresult check_registration(uint64_t address, size_t size, unsigned int flags)
{
	if (!address || !size || flags & ~(unsigned int)HOST_REGISTER_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	/* Neither is there on this device, see its attributes. */
	if (flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY))
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (shim_copy_place(address)) {
	case SHIM_PLACE_ARENA:
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	case SHIM_PLACE_DEVICE:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_SUCCESS;
	}
}

CUresult shim_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct shim_context *context;
	CUresult result = current(&context);

	if (result == CUDA_SUCCESS)
		result = check_registration(shim_address(p), bytesize, Flags);
	if (result == CUDA_SUCCESS)
		result = shim_capture_check_memory();
	if (result != CUDA_SUCCESS)
		return result;
	return shim_registered_add(shim_address(p), bytesize, Flags, context);
}

CUresult shim_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return shim_cuMemHostRegister_v2(p, bytesize, Flags);
}

/* The range that the device has of memory registered at an address. */
static bool find_registered(uint64_t address, struct shim_range *range)
{
	uint64_t device;

	return shim_registered_find(address, 1, &device) &&
	       shim_range_find(device, range) && range->base == device;
}

/* What the device has written has to be in the memory before it is moved, and no
 * capture, of which that is unknown, may be spoilt by a wait. */
static CUresult unregister(uint64_t address)
{
	CUresult result, waited = CUDA_SUCCESS;
	struct shim_context *context;
	struct shim_range range;
	void *home = NULL;

	result = current(&context);
	if (result == CUDA_SUCCESS && !address)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && !find_registered(address, &range))
		result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (result == CUDA_SUCCESS)
		result = shim_capture_check_memory();
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_channel_has_capture()) {
		waited = shim_cuCtxSynchronize();
		wait_elsewhere(&range);
	}
	result = shim_registered_remove(address, &home);
	if (result != CUDA_SUCCESS || !home)
		return result;
	range.base = shim_address(home);
	result = free_in_arena(&range);
	return waited != CUDA_SUCCESS ? waited : result;
}

CUresult shim_cuMemHostUnregister(void *p)
{
	struct shim_range range;

	return end_range(find_registered(shim_address(p), &range) ? range.base : 0,
		unregister, shim_address(p));
}

CUresult shim_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct shim_range range;
	CUdeviceptr address;
	CUresult result = find_pinned(p, &range, &address);

	if (result == CUDA_SUCCESS && !pFlags)
		result = CUDA_ERROR_INVALID_VALUE;
	/* All pinned memory is mapped, whether that was asked for or not. */
	if (result == CUDA_SUCCESS)
		*pFlags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return result;
}

CUresult shim_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct shim_context *context;
	struct shim_range range;
	CUresult result = current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_pool_find_range(dptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = range.base;
	if (psize)
		*psize = range.size;
	return CUDA_SUCCESS;
}
