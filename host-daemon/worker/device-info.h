/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is constant of the devices
 *
 * A driver takes its time over some of the attributes: a worker that waits for a guest
 * asks for all of them meanwhile. Written by one thread, the first, before anybody is
 * served.
 */

#include "driver/driver.h"
#include "vgpu/device-info.h"

/* Asks the driver for all devices, once. */
void device_info_load(const struct vgpu_driver *driver, int n_devices);

/*
 * Copies what was loaded.
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE, or the error of the driver that did
 * not tell.
 */
CUresult device_info_get(int device, struct vgpu_device_info *info);
