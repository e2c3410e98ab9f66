/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills
 */

#include "runtime/driver.h"
#include "runtime/fill.h"

int rt_fill(void *dst, int value, size_t size, struct rt_order order)
{
	CUdeviceptr address = (CUdeviceptr)dst;

	if (!size)
		return 0;
	if (order.is_sync)
		return rt_driver.cuMemsetD8_v2(address, value, size);
	return rt_order_end(
		order, rt_driver.cuMemsetD8Async(address, value, size, order.stream));
}

int rt_fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height,
	struct rt_order order)
{
	CUdeviceptr address = (CUdeviceptr)dst;

	if (!width || !height)
		return 0;
	if (height > 1 && width > pitch)
		return cudaErrorInvalidValue;
	if (order.is_sync)
		return rt_driver.cuMemsetD2D8_v2(address, pitch, value, width, height);
	return rt_order_end(order, rt_driver.cuMemsetD2D8Async(address, pitch, value,
					   width, height, order.stream));
}

int rt_fill_3d(
	cudaPitchedPtr pitched, int value, cudaExtent extent, struct rt_order order)
{
	char *layer = pitched.ptr;
	size_t n_rows;
	int error = 0;

	if (!extent.width || !extent.height || !extent.depth)
		return 0;
	if (extent.width > pitched.pitch || extent.height > pitched.ysize)
		return cudaErrorInvalidValue;
	/* Layers without a gap are one rectangle. */
	if (extent.height == pitched.ysize &&
		!__builtin_mul_overflow(extent.height, extent.depth, &n_rows))
		return rt_fill_2d(
			layer, pitched.pitch, value, extent.width, n_rows, order);
	for (size_t z = 0; !error && z < extent.depth; z++) {
		error = rt_fill_2d(
			layer, pitched.pitch, value, extent.width, extent.height, order);
		layer += pitched.pitch * pitched.ysize;
	}
	return error;
}
