/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Constant properties of the devices
 *
 * Some queries take a driver long, so a warm worker makes all of them before it has a
 * guest. Written by the first thread, before the session starts.
 */

#include "control/control.h"
#include "driver/driver.h"
#include "vgpu/device-info.h"

/* Queries the driver for all devices, once. */
void device_info_load(const struct driver *driver, int n_devices);

/* Writes them for vgpud. */
void device_info_publish(struct worker_devices *devices);

/*
 * Copies the properties of a device.
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE, or the driver's error.
 */
CUresult device_info_get(int device, struct vgpu_device_info *info);
