/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Devices: the properties of each, received when the process became ready
 *
 * A program numbers the devices that it sees (CUDA_VISIBLE_DEVICES), the host all that it
 * has. A device in the shim has the program's number; the number is translated where it
 * enters or leaves a message, by generated stubs for parameters of type CUdevice, by
 * hand-written ones with the two functions below.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/device-info.h"
#include "vgpu/handle.h"

#define SHIM_NO_DEVICE (-1)

/* Written by hello.c alone. */
extern struct shim_devices {
	/* The host's, by its own numbers. */
	int n_all;
	struct vgpu_device_info all[VGPU_DEVICES_MAX];
	/* Those of them that the program sees, by the program's numbers. */
	int n_visible;
	int visible[VGPU_DEVICES_MAX];
} shim_devices;

int shim_device_n(void);

/* Returns: the device, or NULL if there is none with that number. */
const struct vgpu_device_info *shim_device_get(CUdevice device);

/* Returns: the host's number of a device, or the program's, or SHIM_NO_DEVICE. */
CUdevice shim_device_to_host(CUdevice device);
CUdevice shim_device_from_host(CUdevice number);

/* Returns: false where the host does not know the attribute. */
bool shim_device_attribute(
	const struct vgpu_device_info *device, int attribute, int *valuep);
