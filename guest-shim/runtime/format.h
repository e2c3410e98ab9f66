/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Formats of array elements, in the terms of both APIs
 */

#include <stdbool.h>

#include "runtime/types.h"

struct rt_format {
	CUarray_format format;
	unsigned int n_channels;
};

/* Return: whether there is such a format. */
bool rt_format_from_desc(struct rt_format *format, const cudaChannelFormatDesc *desc);
bool rt_format_to_desc(cudaChannelFormatDesc *desc, const struct rt_format *format);

/* Size of an element in bytes, 0 of a block-compressed or planar format. */
size_t rt_format_size(const struct rt_format *format);
