/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Environment: variables of the CUDA driver and of this library
 *
 * Read once, when the process becomes ready, and constant from then on. vgpu-shim(7)
 * documents them. The list and order of visible devices is decided only here: device.h
 * numbers them accordingly.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

struct vgpu_device_info;

struct shim_environment {
	/* VGPU_SYNC=1: every call has a reply. */
	bool is_synchronous;
	/* CUDA_LAUNCH_BLOCKING=1: a launch returns when the kernel is over. */
	bool launches_block;
	/* VGPU_IMAGE_CACHE=0 or no: no file with digests of images is written. */
	bool remembers_images;
	/* CUDA_MODULE_LOADING. */
	CUmoduleLoadingMode loading_mode;
};

extern struct shim_environment shim_environment;

void shim_environment_read(void);

/*
 * Chooses among the host's devices as CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES say.
 *
 * @order:	NULL, or the value of the former
 * @list:	NULL, or the value of the latter
 * @chosen:	receives numbers of devices, room for all of them
 *
 * Return: how many are visible.
 */
int shim_environment_choose(const char *order, const char *list,
	const struct vgpu_device_info *devices, int n_devices, int *chosen);
