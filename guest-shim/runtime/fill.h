/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fills
 */

#include "runtime/order.h"
#include "runtime/types.h"

int rt_fill(void *dst, int value, size_t size, struct rt_order order);
int rt_fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height,
	struct rt_order order);
int rt_fill_3d(
	cudaPitchedPtr pitched, int value, cudaExtent extent, struct rt_order order);
