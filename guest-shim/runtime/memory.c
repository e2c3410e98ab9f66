/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of devices and of the host
 */

#include <string.h>

#include "runtime/driver.h"
#include "runtime/memory.h"
#include "runtime/version.h"

/* Rows are aligned for elements of any size up to this. */
#define PITCH_ELEMENT_SIZE 4

int rt_malloc(void **addressp, size_t size)
{
	if (!addressp)
		return cudaErrorInvalidValue;
	if (!size) {
		*addressp = NULL;
		return 0;
	}
	return rt_driver.cuMemAlloc_v2((CUdeviceptr *)addressp, size);
}

int rt_free(void *address)
{
	/* Also of NULL: programs start the runtime by it, and learn of faults. */
	return rt_driver.cuMemFree_v2((CUdeviceptr)address);
}

int rt_malloc_pitch(void **addressp, size_t *pitchp, size_t width, size_t height)
{
	if (!addressp || !pitchp)
		return cudaErrorInvalidValue;
	if (!width || !height) {
		*addressp = NULL;
		*pitchp = 0;
		return 0;
	}
	return rt_driver.cuMemAllocPitch_v2(
		(CUdeviceptr *)addressp, pitchp, width, height, PITCH_ELEMENT_SIZE);
}

int rt_malloc_3d(cudaPitchedPtr *pitched, cudaExtent extent)
{
	cudaPitchedPtr made = { .xsize = extent.width, .ysize = extent.height };
	size_t n_rows;
	int error;

	if (!pitched)
		return cudaErrorInvalidValue;
	if (__builtin_mul_overflow(extent.height, extent.depth, &n_rows))
		return cudaErrorMemoryAllocation;
	error = rt_malloc_pitch(&made.ptr, &made.pitch, extent.width, n_rows);
	if (!error)
		*pitched = made;
	return error;
}

int rt_malloc_managed(void **addressp, size_t size, unsigned int flags)
{
	if (!addressp)
		return cudaErrorInvalidValue;
	if (!size) {
		*addressp = NULL;
		return 0;
	}
	return rt_driver.cuMemAllocManaged((CUdeviceptr *)addressp, size, flags);
}

int rt_host_alloc(void **addressp, size_t size, unsigned int flags)
{
	if (!addressp)
		return cudaErrorInvalidValue;
	if (!size) {
		*addressp = NULL;
		return 0;
	}
	return rt_driver.cuMemHostAlloc(addressp, size, flags);
}

int rt_host_free(void *address)
{
	return address ? (int)rt_driver.cuMemFreeHost(address) : 0;
}

static cudaMemoryType memory_type(unsigned int type, unsigned int is_managed)
{
	if (is_managed)
		return cudaMemoryTypeManaged;
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		return cudaMemoryTypeHost;
	case CU_MEMORYTYPE_DEVICE:
		return cudaMemoryTypeDevice;
	default:
		return cudaMemoryTypeUnregistered;
	}
}

/* A program of CUDA 12 has a shorter structure. */
static void store(cudaPointerAttributes *attributes, const cudaPointerAttributes *found)
{
	memcpy(attributes, found,
		rt_version >= 13000 ? sizeof(*found)
				    : offsetof(cudaPointerAttributes, reserved));
}

int rt_pointer_attributes(cudaPointerAttributes *attributes, const void *address)
{
	cudaPointerAttributes found = { .device = CU_DEVICE_INVALID };
	unsigned int type = 0, is_managed = 0;
	int device = CU_DEVICE_INVALID;
	void *device_pointer = NULL, *host_pointer = NULL;
	CUpointer_attribute ids[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	};
	void *values[] = { &type, &is_managed, &device_pointer, &host_pointer, &device };
	int error;

	if (!attributes)
		return cudaErrorInvalidValue;
	error = rt_driver.cuPointerGetAttributes(
		sizeof(ids) / sizeof(ids[0]), ids, values, (CUdeviceptr)address);
	if (error)
		return error;
	found.type = memory_type(type, is_managed);
	if (found.type != cudaMemoryTypeUnregistered) {
		found.device = device;
		found.devicePointer = device_pointer;
		found.hostPointer = host_pointer;
	}
	store(attributes, &found);
	return 0;
}
