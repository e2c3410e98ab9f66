/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a driver like NVIDIA's that fail when a test wants them to, and a device whose
 * memory is used up
 *
 * VGPU_FOREIGN_FAILING is the number of a shared memory segment with a struct failing,
 * into which the test writes: a worker opens no files for writing.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>

#include "vgpu/cuda.h"

#define EXPORT __attribute__((__visibility__("default")))
#define N_MEMORIES 4096u

enum { CREATE, MAP, ACCESS, UNMAP, RELEASE, COPY_OUT, COPY_IN, ARRAY, N_CALLS };

/* As tests/lib/failing.py has it. */
struct failing {
	struct {
		uint32_t n_good; /* calls that succeed before */
		uint32_t n_bad;	 /* so many fail */
		uint32_t result; /* with this */
		uint32_t n;	 /* calls so far */
	} calls[N_CALLS];
	uint64_t memory; /* of the device; 0: any */
	uint64_t used;	 /* by handles of cuMemCreate, of all processes that live */
};

static struct failing *failing;

/* The sizes of this process's handles. */
static struct {
	CUmemGenericAllocationHandle handle;
	uint64_t size;
} memories[N_MEMORIES];

static __attribute__((__constructor__)) void attach(void)
{
	const char *number = getenv("VGPU_FOREIGN_FAILING");
	void *segment;

	if (!number)
		return;
	segment = shmat(atoi(number), NULL, 0);
	if (segment == (void *)-1) {
		perror("the segment of VGPU_FOREIGN_FAILING");
		abort();
	}
	failing = segment;
}

/* Takes one, if there is any. */
static int take(uint32_t *n)
{
	uint32_t old = __atomic_load_n(n, __ATOMIC_SEQ_CST);

	while (old)
		if (__atomic_compare_exchange_n(
			    n, &old, old - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return 1;
	return 0;
}

static CUresult fail(int call)
{
	if (!failing)
		return CUDA_SUCCESS;
	__atomic_fetch_add(&failing->calls[call].n, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&failing->calls[call].n_bad, __ATOMIC_SEQ_CST) ||
		take(&failing->calls[call].n_good) || !take(&failing->calls[call].n_bad))
		return CUDA_SUCCESS;
	return (CUresult)failing->calls[call].result;
}

/* Calls softgpu's function of that name, unless it is to fail. */
#define FAIL_OR_CALL(_call, _name, _types, ...)                                          \
	CUresult result = fail(_call);                                                   \
	CUresult(*next) _types;                                                          \
                                                                                         \
	*(void **)&next = dlsym(RTLD_NEXT, #_name);                                      \
	if (!next)                                                                       \
		result = CUDA_ERROR_UNKNOWN;                                             \
	if (result == CUDA_SUCCESS)                                                      \
	result = next(__VA_ARGS__)

static int charge(uint64_t size)
{
	uint64_t used;

	used = __atomic_add_fetch(&failing->used, size, __ATOMIC_SEQ_CST);
	if (!failing->memory || used <= failing->memory)
		return 1;
	__atomic_fetch_sub(&failing->used, size, __ATOMIC_SEQ_CST);
	return 0;
}

static void note(CUmemGenericAllocationHandle handle, uint64_t size)
{
	for (uint32_t i = 0; i < N_MEMORIES; i++) {
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&memories[i].size, &none, size, 0,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		memories[i].handle = handle;
		return;
	}
	abort();
}

static void refund(CUmemGenericAllocationHandle handle)
{
	for (uint32_t i = 0; i < N_MEMORIES; i++) {
		if (!memories[i].size || memories[i].handle != handle)
			continue;
		__atomic_fetch_sub(&failing->used, memories[i].size, __ATOMIC_SEQ_CST);
		memories[i].handle = 0;
		__atomic_store_n(&memories[i].size, 0, __ATOMIC_SEQ_CST);
		return;
	}
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	CUresult (*next)(CUmemGenericAllocationHandle);

	*(void **)&next = dlsym(RTLD_NEXT, "cuMemRelease");
	return next ? next(handle) : CUDA_ERROR_UNKNOWN;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult result = fail(RELEASE);

	if (result == CUDA_SUCCESS)
		result = release(handle);
	if (failing && result == CUDA_SUCCESS)
		refund(handle);
	return result;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	FAIL_OR_CALL(CREATE, cuMemCreate,
		(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			unsigned long long),
		handle, size, prop, flags);
	if (!failing || result != CUDA_SUCCESS)
		return result;
	if (!charge(size)) {
		release(*handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	note(*handle, size);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DCreate_v2(
	CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	FAIL_OR_CALL(ARRAY, cuArray3DCreate_v2,
		(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *), array, descriptor);
	return result;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmap,
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int n_levels)
{
	FAIL_OR_CALL(ARRAY, cuMipmappedArrayCreate,
		(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned int),
		mipmap, descriptor, n_levels);
	return result;
}

EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	FAIL_OR_CALL(MAP, cuMemMap,
		(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			unsigned long long),
		ptr, size, offset, handle, flags);
	return result;
}

EXPORT CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	FAIL_OR_CALL(ACCESS, cuMemSetAccess,
		(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t), ptr, size, desc,
		count);
	return result;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	FAIL_OR_CALL(UNMAP, cuMemUnmap, (CUdeviceptr, size_t), ptr, size);
	return result;
}

EXPORT CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr device, size_t size)
{
	FAIL_OR_CALL(COPY_OUT, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), host,
		device, size);
	return result;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr device, const void *host, size_t size)
{
	FAIL_OR_CALL(COPY_IN, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t),
		device, host, size);
	return result;
}
