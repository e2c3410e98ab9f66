/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of a driver like NVIDIA's that softgpu does not give
 *
 * Host and device may access managed memory at the same time. That is true of softgpu,
 * too, which says no because a guest's device cannot.
 */

#include <dlfcn.h>

#include "vgpu/cuda.h"

/* Has the linker keep the library that has the rest. */
__attribute__((__used__)) static CUresult (*const rest)(unsigned int) = cuInit;

__attribute__((__visibility__("default"))) CUresult cuDeviceGetAttribute(
	int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	CUresult (*next)(int *pi, CUdevice_attribute attrib, CUdevice dev);
	CUresult result;

	*(void **)&next = dlsym(RTLD_NEXT, "cuDeviceGetAttribute");
	if (!next)
		return CUDA_ERROR_UNKNOWN;
	result = next(pi, attrib, dev);
	if (result == CUDA_SUCCESS &&
		attrib == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
		*pi = 1;
	return result;
}
