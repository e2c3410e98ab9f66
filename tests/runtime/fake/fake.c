/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 of a few functions, whose results the environment sets
 *
 *	FAKE_VERSION	what cuDriverGetVersion() returns (default: 13000)
 *	FAKE_INIT	the result of cuInit()
 *	FAKE_COUNT	the result of cuDeviceGetCount()
 *	FAKE_RETAIN	the result of cuDevicePrimaryCtxRetain()
 */

#include <stdlib.h>

#include "vgpu/cuda.h"

#define EXPORT __attribute__((visibility("default")))

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	*version = number("FAKE_VERSION", 13000);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int flags)
{
	return (CUresult)number("FAKE_INIT", 0);
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return (CUresult)number("FAKE_COUNT", 0);
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = NULL;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	*context = (CUcontext)&number;
	return (CUresult)number("FAKE_RETAIN", 0);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
	return CUDA_SUCCESS;
}
