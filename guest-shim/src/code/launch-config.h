/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A program's CUlaunchConfig, as it is sent
 */

#include "vgpu/cuda.h"
#include "vgpu/launch-attribute.h"
#include "vgpu/launch.h"

struct shim_launch_config {
	struct vgpu_launch_dims dims;
	/* Without attributes that have no effect or that dims includes. */
	CUlaunchAttribute attributes[VGPU_LAUNCH_ATTRIBUTES_MAX];
	unsigned int n_attributes;
};

/*
 * Return: CUDA_SUCCESS, _INVALID_VALUE for what CUDA does not know, _NOT_SUPPORTED for
 *	   what only graphs have, _INVALID_HANDLE for an event that is none.
 */
CUresult shim_launch_config_take(
	struct shim_launch_config *to, const CUlaunchConfig *from);
