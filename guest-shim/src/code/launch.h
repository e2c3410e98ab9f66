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

struct shim_function;

/* Gathers the parameters of a launch into a block, which is as long as the function's. */
CUresult shim_launch_gather(const struct shim_launch *launch,
	const struct shim_function *function, uint8_t *block);

CUresult shim_launch(const struct shim_launch *launch);
