/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launches, and what fits on a device
 */

#include "runtime/order.h"
#include "runtime/types.h"

/* With a registered host function, or the handle of a kernel. */
int rt_launch(const void *function, dim3 grid, dim3 block, void **params,
	size_t shared_size, cudaStream_t stream);
int rt_launch_cooperative(const void *function, dim3 grid, dim3 block, void **params,
	size_t shared_size, cudaStream_t stream);
int rt_launch_ex(const cudaLaunchConfig_t *config, const void *function, void **params,
	struct rt_order order);

/* With a handle that __cudaGetKernel() returned. */
int rt_launch_kernel(CUkernel kernel, dim3 grid, dim3 block, void **params,
	size_t shared_size, cudaStream_t stream);

int rt_occupancy(int *np, const void *function, int block_size, size_t shared_size,
	unsigned int flags);
int rt_occupancy_shared(
	size_t *sizep, const void *function, int n_blocks, int block_size);
int rt_occupancy_cluster(
	int *sizep, const void *function, const cudaLaunchConfig_t *config);
int rt_occupancy_clusters(
	int *np, const void *function, const cudaLaunchConfig_t *config);
