/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Attributes of kernels, and functions of the driver
 */

#include "runtime/order.h"
#include "runtime/types.h"

int rt_function_get(CUfunction *functionp, const void *symbol);
int rt_function_param(const void *function, size_t i, size_t *offsetp, size_t *sizep);
int rt_function_attributes(cudaFuncAttributes *attributes, const void *function);
int rt_function_set_attribute(
	const void *function, cudaFuncAttribute attribute, int value);
int rt_function_set_cache(const void *function, cudaFuncCache config);
int rt_function_set_banks(const void *function, cudaSharedMemConfig config);

/* version 0: that of this library. */
int rt_entry_point(const char *name, void **functionp, unsigned int version,
	unsigned long long flags, cudaDriverEntryPointQueryResult *statusp,
	struct rt_order order);
