/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies with arrays
 */

#include <stdbool.h>

#include "vgpu/array-box.h"
#include "vgpu/cuda.h"

/* A side with a handle is an array; else its address is used. */
struct shim_array_box {
	struct vgpu_array_box box;
	CUarray to;
	CUarray from;
};

/* As shim_copy_box(). */
CUresult shim_copy_array(const struct shim_array_box *box, CUstream stream, bool waits);
