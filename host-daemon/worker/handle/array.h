/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arrays: what others need of them
 */

#include "vgpu/array-box.h"
#include "worker/handle/generated.h"

/* The array of a handle, and whether a box on that side is within it. */
CUresult array_check_side(struct call *call, uint64_t handle,
	const struct vgpu_array_side *side, const struct vgpu_array_box *box,
	CUarray *arrayp);
