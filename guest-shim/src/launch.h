/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launches, whatever entry point they came by
 */

#include "vgpu/cuda.h"
#include "vgpu/launch.h"

struct shim_launch {
	CUfunction function;
	struct vgpu_launch_dims dims;
	CUstream stream;
	void **params;
	void **extra;
	/* As shim_launch_config_take() leaves them. */
	CUlaunchAttribute *attributes;
	unsigned int n_attributes;
};

CUresult shim_launch(const struct shim_launch *launch);
