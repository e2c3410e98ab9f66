/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hello: the first calls, which ask the host for its devices
 */

#include "vgpu/cuda.h"
#include "vgpu/device-info.h"

/*
 * Asks the host for its devices, and chooses those that are visible.
 *
 * @room:	memory of the arena for VGPU_DEVICES_MAX of them, or NULL: then they
 *		are fetched one by one
 */
CUresult shim_hello(struct vgpu_device_info *room);
