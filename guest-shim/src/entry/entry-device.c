/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: devices, answered from properties received at start-up
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/mover.h"
#include "process/device.h"
#include "process/shim.h"

/* The device of that number, or leaves the function. */
#define GET_DEVICE(_number)                                                              \
	({                                                                               \
		const struct vgpu_device_info *device_ = shim_device_get(_number);       \
		if (!device_)                                                            \
			return CUDA_ERROR_INVALID_DEVICE;                                \
		device_;                                                                 \
	})

static int attribute(const struct vgpu_device_info *device, int number)
{
	int value = 0;

	shim_device_attribute(device, number, &value);
	return value;
}

CUresult shim_cuDeviceGetCount(int *count)
{
	SHIM_CHECK_READY();
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = shim_device_n();
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGet(CUdevice *device, int ordinal)
{
	SHIM_CHECK_READY();
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	GET_DEVICE(ordinal);
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetName(char *name, int len, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", GET_DEVICE(dev)->name);
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(uuid, GET_DEVICE(dev)->uuid, sizeof(*uuid));
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = GET_DEVICE(dev)->total_memory;
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t all = 0;
	CUresult result = shim_cuDeviceTotalMem_v2(bytes ? &all : NULL, dev);

	if (result == CUDA_SUCCESS)
		*bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
	return result;
}

CUresult shim_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	if (!shim_device_attribute(GET_DEVICE(dev), (int)attrib, pi))
		return CUDA_ERROR_INVALID_VALUE;
	/* The rest of that is up to this process. */
	if (attrib == CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED &&
		!shim_mover_is_possible())
		*pi = 0;
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	const struct vgpu_device_info *device;

	SHIM_CHECK_READY();
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	device = GET_DEVICE(dev);
	*major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	const struct vgpu_device_info *device;

	SHIM_CHECK_READY();
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	device = GET_DEVICE(dev);
	*prop = (CUdevprop){
		.maxThreadsPerBlock =
			attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
		.sharedMemPerBlock = attribute(
			device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory =
			attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
		.memPitch = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
		.regsPerBlock =
			attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
		.clockRate = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
		.textureAlign = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
	};
	for (int i = 0; i < 3; i++) {
		prop->maxThreadsDim[i] =
			attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
		prop->maxGridSize[i] =
			attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
	}
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	const struct vgpu_device_info *device;

	SHIM_CHECK_READY();
	if (!pciBusId || len < (int)sizeof("0000:00:00.0"))
		return CUDA_ERROR_INVALID_VALUE;
	device = GET_DEVICE(dev);
	snprintf(pciBusId, (size_t)len, "%04x:%02x:%02x.0",
		(unsigned int)attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
		(unsigned int)attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
		(unsigned int)attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
	return CUDA_SUCCESS;
}

/* [domain:]bus:device[.function], in hexadecimal. */
static bool parse_bus_id(const char *text, int numbers[3])
{
	unsigned int domain, bus, device, function;

	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) >= 3) {
	} else if (sscanf(text, "%x:%x.%x", &bus, &device, &function) >= 2) {
		domain = 0;
	} else {
		return false;
	}
	numbers[0] = (int)domain;
	numbers[1] = (int)bus;
	numbers[2] = (int)device;
	return true;
}

CUresult shim_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	int numbers[3];

	SHIM_CHECK_READY();
	if (!dev || !pciBusId || !parse_bus_id(pciBusId, numbers))
		return CUDA_ERROR_INVALID_VALUE;
	for (CUdevice i = 0; i < shim_device_n(); i++) {
		const struct vgpu_device_info *device = shim_device_get(i);

		if (attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) == numbers[0] &&
			attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) == numbers[1] &&
			attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) ==
				numbers[2]) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

/* A context with a share of the multiprocessors cannot be made. */
CUresult shim_cuDeviceGetExecAffinitySupport(
	int *pi, CUexecAffinityType type, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!pi || type < 0 || type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	GET_DEVICE(dev);
	*pi = 0;
	return CUDA_SUCCESS;
}

/* None, as CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED says. */
CUresult shim_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice dev)
{
	SHIM_CHECK_READY();
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	GET_DEVICE(dev);
	for (unsigned int i = 0; i < count; i++)
		if (operations[i] < 0 || operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	memset(capabilities, 0, count * sizeof(*capabilities));
	return CUDA_SUCCESS;
}
