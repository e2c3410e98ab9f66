/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Boxes: copies of up to three dimensions, in the terms of both APIs
 *
 * The Runtime API counts the elements of an array and knows the direction of a copy; the
 * Driver API counts bytes and knows the kind of memory on either side.
 */

#include <stdbool.h>

#include "runtime/types.h"

/* One side of a box: memory with a pitch, or an array. */
struct rt_side {
	const void *address;
	size_t pitch;
	size_t height;
	cudaArray_const_t array;
	size_t x, y, z;
};

/* Whether the number is one of the five; the kinds of memory on the two sides. */
bool rt_box_kinds(cudaMemcpyKind kind, CUmemorytype *dst_typep, CUmemorytype *src_typep);

/* 0, or cudaErrorInvalidMemcpyDirection. The extent is in bytes, rows, layers. */
int rt_box_fill(CUDA_MEMCPY3D *box, const struct rt_side *dst, const struct rt_side *src,
	cudaExtent extent, cudaMemcpyKind kind);

/* element sizes: 0 for memory that is no array. */
int rt_box_from_params(CUDA_MEMCPY3D *box, const cudaMemcpy3DParms *params,
	size_t dst_element, size_t src_element);
void rt_box_to_params(cudaMemcpy3DParms *params, const CUDA_MEMCPY3D *box,
	size_t dst_element, size_t src_element);
