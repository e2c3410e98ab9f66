/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arrays and mipmapped arrays
 */

#include "runtime/types.h"

int rt_array_new(cudaArray_t *arrayp, const cudaChannelFormatDesc *desc, size_t width,
	size_t height, unsigned int flags);
int rt_array_new_3d(cudaArray_t *arrayp, const cudaChannelFormatDesc *desc,
	cudaExtent extent, unsigned int flags);
int rt_array_free(cudaArray_t array);
int rt_array_desc(cudaChannelFormatDesc *desc, cudaArray_const_t array);
int rt_array_info(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned int *flagsp,
	cudaArray_t array);
int rt_mipmap_new(cudaMipmappedArray_t *mipmapp, const cudaChannelFormatDesc *desc,
	cudaExtent extent, unsigned int n_levels, unsigned int flags);
int rt_mipmap_free(cudaMipmappedArray_t mipmap);

/* Size of an element, 0 of no array. */
int rt_array_element(cudaArray_const_t array, size_t *sizep);

/* Size of a row in bytes. */
int rt_array_row(cudaArray_const_t array, size_t *sizep);

/* The widest one-dimensional texture of linear memory, in elements. */
int rt_linear_width(size_t *widthp, const cudaChannelFormatDesc *desc, int device);
