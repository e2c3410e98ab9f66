/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices
 *
 * Filled once, by hello.c, and constant from then on, so that the hundreds of questions a
 * CUDA runtime asks at its start cost no message.
 */

#include <stddef.h>

#include "process/device.h"

struct shim_devices shim_devices;

int shim_device_n(void)
{
	return shim_devices.n_visible;
}

const struct vgpu_device_info *shim_device_get(CUdevice device)
{
	return device >= 0 && device < shim_devices.n_visible
		       ? &shim_devices.all[shim_devices.visible[device]]
		       : NULL;
}

CUdevice shim_device_to_host(CUdevice device)
{
	return device >= 0 && device < shim_devices.n_visible
		       ? shim_devices.visible[device]
		       : SHIM_NO_DEVICE;
}

CUdevice shim_device_from_host(CUdevice number)
{
	for (int i = 0; i < shim_devices.n_visible; i++)
		if (shim_devices.visible[i] == number)
			return i;
	return SHIM_NO_DEVICE;
}

bool shim_device_attribute(
	const struct vgpu_device_info *device, int attribute, int *valuep)
{
	if (attribute <= 0 || attribute >= VGPU_DEVICE_ATTRIBUTES_N ||
		!(device->known[attribute / 8] & 1u << attribute % 8))
		return false;
	*valuep = device->attributes[attribute];
	return true;
}
