/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations of memory
 */

#include <stddef.h>

#include "process/device.h"
#include "process/location.h"

CUresult shim_location_find(const CUmemLocation *location, int *numberp)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*numberp = location->id;
		return shim_device_get(location->id) ? CUDA_SUCCESS
						     : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
		*numberp = SHIM_LOCATION_HOST;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		*numberp = SHIM_LOCATION_NODE;
		return location->id ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		*numberp = SHIM_LOCATION_NODE;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult shim_location_find_new(const CUmemLocation *location, int *numberp)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
		       ? CUDA_ERROR_INVALID_VALUE
		       : shim_location_find(location, numberp);
}

CUmemLocation shim_location_public(int number)
{
	CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, number };

	if (shim_location_is_host(number))
		location = (CUmemLocation){ number == SHIM_LOCATION_HOST
						    ? CU_MEM_LOCATION_TYPE_HOST
						    : CU_MEM_LOCATION_TYPE_HOST_NUMA,
			0 };
	return location;
}

CUdevice shim_location_to_host(int number)
{
	return shim_location_is_host(number) ? SHIM_NO_DEVICE
					     : shim_device_to_host(number);
}
