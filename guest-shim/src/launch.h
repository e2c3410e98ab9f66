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
};

CUresult shim_launch(const struct shim_launch *launch);
