/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: allocations on the device and of pinned memory
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "arena.h"
#include "call.h"
#include "context.h"
#include "copy.h"
#include "range.h"

#define HOST_ALLOC_FLAGS                                                                 \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                          \
		CU_MEMHOSTALLOC_WRITECOMBINED)

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

static CUresult free_on_host(CUdeviceptr address)
{
	Vgpu__CuMemFreeV2Request request = VGPU__CU_MEM_FREE_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemFree_v2);

	request.dptr = address;
	return shim_call_sync(
		&call, &request.base, &vgpu__cu_mem_free_v2_reply__descriptor, NULL);
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
	free_on_host(address);
	return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

SHIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	Vgpu__CuMemAllocV2Request request = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemAlloc_v2);
	const ProtobufCMessage *reply;
	CUdeviceptr address;
	CUresult result;

	if (!dptr || !bytesize)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.bytesize = bytesize;
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_mem_alloc_v2_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	address = ((const Vgpu__CuMemAllocV2Reply *)reply)->dptr;
	result = keep(address, bytesize);
	if (result == CUDA_SUCCESS)
		*dptr = address;
	return result;
}

SHIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch,
	size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
	Vgpu__CuMemAllocPitchV2Request request =
		VGPU__CU_MEM_ALLOC_PITCH_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemAllocPitch_v2);
	const Vgpu__CuMemAllocPitchV2Reply *reply;
	const ProtobufCMessage *message;
	CUdeviceptr address;
	size_t pitch;
	CUresult result;

	if (!dptr || !pPitch || !WidthInBytes || !Height)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.width_in_bytes = WidthInBytes;
	request.height = Height;
	request.element_size_bytes = ElementSizeBytes;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_alloc_pitch_v2_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemAllocPitchV2Reply *)message;
	address = reply->dptr;
	pitch = reply->p_pitch;
	result = keep(address, pitch * Height);
	if (result != CUDA_SUCCESS)
		return result;
	*dptr = address;
	*pPitch = pitch;
	return CUDA_SUCCESS;
}

/*
 * Gives back what lies in the arena. Waits for the context, as the driver does: the
 * device may still use the memory.
 */
static CUresult free_in_arena(const struct shim_range *range)
{
	CUresult result = cuCtxSynchronize();

	/* Its own context is another one if that is not current. */
	if (result == CUDA_SUCCESS && shim_context_check(range->context) == CUDA_SUCCESS)
		result = cuCtxSynchronize_v2(shim_context_public(range->context));
	shim_arena_free((void *)(uintptr_t)range->base);
	return result;
}

SHIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemFree_v2);
	struct shim_range range;

	if (!dptr)
		return shim_call_error(&call, CUDA_SUCCESS);
	/* Forgotten first: once the host has freed it, its address may be given out
	 * again to another thread. */
	if (shim_range_remove(dptr, SHIM_RANGE_DEVICE, &range))
		return free_on_host(dptr);
	if (shim_range_remove(dptr, SHIM_RANGE_MANAGED, &range))
		return free_in_arena(&range);
	return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
}

SHIM_EXPORT CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	size_t all_free, all;
	CUresult result = cuMemGetInfo_v2(free ? &all_free : NULL, total ? &all : NULL);

	if (result != CUDA_SUCCESS)
		return result;
	*free = all_free > UINT32_MAX ? UINT32_MAX : (unsigned int)all_free;
	*total = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
	return CUDA_SUCCESS;
}

SHIM_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct shim_range range = { .kind = SHIM_RANGE_PINNED, .flags = Flags };
	CUresult result = current(&range.context);
	void *pointer;

	if (result != CUDA_SUCCESS)
		return result;
	if (!pp || !bytesize || Flags & ~(unsigned int)HOST_ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	pointer = shim_arena_alloc(bytesize);
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

SHIM_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

SHIM_EXPORT CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

SHIM_EXPORT CUresult cuMemFreeHost(void *p)
{
	struct shim_context *context;
	struct shim_range range;
	CUresult result = current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_SUCCESS;
	if (!shim_range_remove((uint64_t)(uintptr_t)p, SHIM_RANGE_PINNED, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return free_in_arena(&range);
}

static CUresult find_pinned(const void *p, struct shim_range *range)
{
	struct shim_context *context;
	CUresult result = current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	return shim_range_find((uint64_t)(uintptr_t)p, range) &&
			       range->kind == SHIM_RANGE_PINNED
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* Pinned memory has the same address on the device. */
SHIM_EXPORT CUresult cuMemHostGetDevicePointer_v2(
	CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct shim_range range;
	CUresult result = find_pinned(p, &range);

	if (result == CUDA_SUCCESS && (!pdptr || Flags))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*pdptr = (CUdeviceptr)(uintptr_t)p;
	return result;
}

SHIM_EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct shim_range range;
	CUresult result = find_pinned(p, &range);

	if (result == CUDA_SUCCESS && !pFlags)
		result = CUDA_ERROR_INVALID_VALUE;
	/* All pinned memory is mapped, whether that was asked for or not. */
	if (result == CUDA_SUCCESS)
		*pFlags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return result;
}

SHIM_EXPORT CUresult cuMemGetAddressRange_v2(
	CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct shim_context *context;
	struct shim_range range;
	CUresult result = current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_range_find(dptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = range.base;
	if (psize)
		*psize = range.size;
	return CUDA_SUCCESS;
}
