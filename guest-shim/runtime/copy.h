/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies
 */

#include "runtime/order.h"
#include "runtime/types.h"

int rt_copy(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
	struct rt_order order);
int rt_copy_peer(void *dst, int dst_device, const void *src, int src_device, size_t size,
	struct rt_order order);
int rt_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order);
int rt_copy_3d(const cudaMemcpy3DParms *params, struct rt_order order);
int rt_copy_3d_peer(const cudaMemcpy3DPeerParms *params, struct rt_order order);

/* Of a variable; offset and size must be within it. */
int rt_copy_to_symbol(const void *symbol, const void *src, size_t size, size_t offset,
	cudaMemcpyKind kind, struct rt_order order);
int rt_copy_from_symbol(void *dst, const void *symbol, size_t size, size_t offset,
	cudaMemcpyKind kind, struct rt_order order);

/* The address at that offset, for copies in the allowed directions. */
int rt_copy_symbol(const void *symbol, size_t size, size_t offset, void **addressp);

/* Positions and widths of arrays in bytes, as in cudaMemcpy2DToArray(). */
int rt_copy_to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order);
int rt_copy_from_array(void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order);
int rt_copy_arrays(cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src,
	size_t src_x, size_t src_y, size_t width, size_t height, cudaMemcpyKind kind,
	struct rt_order order);

/* Bytes that fill an array row by row. */
int rt_copy_flat_to_array(cudaArray_t dst, size_t x, size_t y, const void *src,
	size_t size, cudaMemcpyKind kind, struct rt_order order);
int rt_copy_flat_from_array(void *dst, cudaArray_const_t src, size_t x, size_t y,
	size_t size, cudaMemcpyKind kind, struct rt_order order);
