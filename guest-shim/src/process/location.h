/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Locations of memory: devices, by the program's numbers, and the host
 *
 * A guest's shared memory belongs to no NUMA node, so for memory there is one node only,
 * 0, as on a system without NUMA.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"

/* Below are devices. */
#define SHIM_LOCATION_HOST ((int)VGPU_DEVICES_MAX)
#define SHIM_LOCATION_NODE (SHIM_LOCATION_HOST + 1)
#define SHIM_LOCATIONS_N (SHIM_LOCATION_HOST + 2)

static inline bool shim_location_is_host(int location)
{
	return location >= SHIM_LOCATION_HOST;
}

/* Finds what the program calls a location. Return: CUDA_ERROR_INVALID_DEVICE for a device
 * that it does not have, CUDA_ERROR_INVALID_VALUE. */
CUresult shim_location_find(const CUmemLocation *location, int *numberp);

/* The same for memory that is to be made: the node of the calling thread is none. */
CUresult shim_location_find_new(const CUmemLocation *location, int *numberp);

/* What the program calls it. */
CUmemLocation shim_location_public(int number);

/* Returns: the host's number of the device, or SHIM_NO_DEVICE for the host. */
CUdevice shim_location_to_host(int number);
