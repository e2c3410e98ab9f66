/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory, and host memory that the device can see
 */

#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/checked.h"

#include "api/capture.h"

static CUresult memory_new(struct range *range, CUcontext context, uint64_t *addressp)
{
	CUresult result;

	result = capture_refuse_unsafe();
	return result ? result
		      : context_alloc(
				range, context, context_generation(context), addressp);
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	API_CALL;
	struct range range = { .kind = RANGE_DEVICE, .size = bytesize };
	CUcontext context;
	uint64_t address;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!dptr || !bytesize)
		return CUDA_ERROR_INVALID_VALUE;
	result = memory_new(&range, context, &address);
	if (!result)
		*dptr = address;
	return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned int ElementSizeBytes)
{
	API_CALL;
	uint64_t pitch, size;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!pPitch || !WidthInBytes || !Height ||
		(ElementSizeBytes != 4 && ElementSizeBytes != 8 &&
			ElementSizeBytes != 16) ||
		!vgpu_align_u64(WidthInBytes, 512, &pitch) ||
		!vgpu_mul_u64(pitch, Height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	result = cuMemAlloc_v2(dptr, size);
	if (!result)
		*pPitch = pitch;
	return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	API_CALL;
	struct range range = { .kind = RANGE_MANAGED, .size = bytesize, .flags = flags };
	CUcontext context;
	uint64_t address;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!dptr || !bytesize ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	result = memory_new(&range, context, &address);
	if (!result)
		*dptr = address;
	return result;
}

/* Memory is freed after all earlier work is complete. */
static CUresult memory_delete(uint64_t address, unsigned int kinds)
{
	struct range range;
	CUcontext context;
	CUresult result;

	/* None has to be current: the memory has its own. */
	result = context_current(&context);
	if (result && result != CUDA_ERROR_INVALID_CONTEXT)
		return result;
	result = capture_refuse_unsafe();
	if (result)
		return result;
	if (!address)
		return CUDA_SUCCESS;
	if (!memory_find(&softgpu_device.memory, address, &range) ||
		range.address != address || !(kinds & MEMORY_KIND(range.kind)))
		return CUDA_ERROR_INVALID_VALUE;
	/* Gone with its context a moment ago? */
	context = range.owner;
	if (!object_hold(context, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_VALUE;
	result = sched_context_wait(&context->sched);
	if (result)
		return result;
	if (memory_free(&softgpu_device.memory, address, kinds))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	API_CALL;

	return memory_delete(
		dptr, MEMORY_KIND(RANGE_DEVICE) | MEMORY_KIND(RANGE_MANAGED));
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	API_CALL;
	uint64_t n_free, n_total;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!free || !total)
		return CUDA_ERROR_INVALID_VALUE;
	memory_info(&softgpu_device.memory, context->device, &n_free, &n_total);
	*free = n_free;
	*total = n_total;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	API_CALL;
	struct range range;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!memory_find(&softgpu_device.memory, dptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = range.address;
	if (psize)
		*psize = range.size;
	return CUDA_SUCCESS;
}

/*
 * Host memory
 */

#define HOST_ALLOC_FLAGS                                                                 \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                          \
		CU_MEMHOSTALLOC_WRITECOMBINED)

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	API_CALL;
	/* Regardless of the flags, it is portable and mapped. */
	struct range range = { .kind = RANGE_HOST, .size = bytesize, .flags = Flags };
	CUcontext context;
	uint64_t address;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pp || !bytesize || Flags & ~(unsigned int)HOST_ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	result = memory_new(&range, context, &address);
	if (!result)
		*pp = (void *)(uintptr_t)address;
	return result;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
	API_CALL;

	return memory_delete((uintptr_t)p, MEMORY_KIND(RANGE_HOST));
}

#define HOST_REGISTER_FLAGS                                                              \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                    \
		CU_MEMHOSTREGISTER_READ_ONLY)

/* With MS_ASYNC alone, msync(2) only looks. */
static bool is_mapped(const void *p, size_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)p & ~(page - 1);
	uint64_t end;

	return vgpu_add_u64((uintptr_t)p, size, &end) &&
	       !msync((void *)start, end - start, MS_ASYNC);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	API_CALL;
	struct range range = {
		.address = (uintptr_t)p,
		.size = bytesize,
		.flags = Flags,
	};
	CUcontext context;
	int registered;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!p || !bytesize || Flags & ~(unsigned int)HOST_REGISTER_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	result = capture_refuse_unsafe();
	if (result)
		return result;
	range.owner = context;
	range.device = context->device;
	/* As in context_alloc(). */
	pthread_mutex_lock(&context->lock);
	registered = context->is_active ? memory_register(&softgpu_device.memory, &range)
					: MEMORY_E_FULL;
	pthread_mutex_unlock(&context->lock);
	switch (registered) {
	case 0:
		return CUDA_SUCCESS;
	case MEMORY_E_OUTSIDE:
		return is_mapped(p, bytesize) ? CUDA_ERROR_NOT_SUPPORTED
					      : CUDA_ERROR_INVALID_VALUE;
	case MEMORY_E_TWICE:
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	case MEMORY_E_USED:
		return CUDA_ERROR_INVALID_VALUE;
	case MEMORY_E_FULL:
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

CUresult cuMemHostUnregister(void *p)
{
	API_CALL;
	CUresult result;

	result = p ? memory_delete((uintptr_t)p, MEMORY_KIND(RANGE_REGISTERED))
		   : CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_ERROR_INVALID_VALUE && p
		       ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
		       : result;
}

static bool memory_is_host(enum range_kind kind)
{
	return kind == RANGE_HOST || kind == RANGE_REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	API_CALL;
	struct range range;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pdptr || Flags ||
		!memory_find(&softgpu_device.memory, (uintptr_t)p, &range) ||
		!memory_is_host(range.kind))
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	API_CALL;
	struct range range;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pFlags || !memory_find(&softgpu_device.memory, (uintptr_t)p, &range) ||
		range.kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}
