/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that is not of vGPU, and behaves as FAKE_CUDA says
 *
 * Its memory is that of the process. Its kernel does nothing: results are wrong.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cuda.h"

#define EXPORT __attribute__((__visibility__("default")))

static bool is(const char *behaviour)
{
	const char *wanted = getenv("FAKE_CUDA");

	return wanted && !strcmp(wanted, behaviour);
}

EXPORT CUresult cuInit(unsigned int flags)
{
	if (is("crash"))
		raise(SIGSEGV);
	if (is("exit"))
		exit(4);
	return is("fail") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	*version = 12040;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
	*name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : NULL;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
	*n = is("empty") ? 0 : 2;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int i)
{
	*device = i;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	snprintf(name, (size_t)size, "fake");
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
	return is("fault") ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_size, size_t *total)
{
	*free_size = is("full") ? 0 : 3 << 20;
	*total = 4 << 20;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size)
{
	*memory = (CUdeviceptr)(uintptr_t)calloc(1, size);
	return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr memory)
{
	free((void *)(uintptr_t)memory);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	memcpy((void *)(uintptr_t)to, from, size);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
	memcpy(to, (const void *)(uintptr_t)from, size);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(
	CUfunction *function, CUmodule module, const char *name)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y,
	unsigned int z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared, CUstream stream, void **arguments, void **extra)
{
	return CUDA_SUCCESS;
}
