/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arrays, as the worker keeps them
 *
 * An array takes device memory without an address, so its charge is computed from its
 * shape and kept in its entry; its context keeps the sum of its arrays, which are freed
 * with it. Both are changed with the lock of contexts. A level of a mipmapped array or a
 * plane is an entry with a parent: it has no charge and is never destroyed by itself.
 */

#include "vgpu/array-box.h"
#include "vgpu/cuda.h"
#include "worker/base/objects.h"

struct call;

struct array {
	struct object object;
	uint64_t charged;
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
};

/* Bytes of a texel; the maximum for an unknown format. */
uint32_t array_texel_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* Return: false if the size is impossible. */
bool array_size(
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint32_t n_levels, uint64_t *sizep);

/* As object_find(), for arrays and mipmapped arrays. */
CUresult array_entry(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	struct array **arrayp);

/* Looks up an array and checks that a box on that side is within it. */
CUresult array_check_side(struct call *call, uint64_t handle,
	const struct vgpu_array_side *side, const struct vgpu_array_box *box,
	CUarray *arrayp);
