/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches
 */

#include <limits.h>

#include "runtime/code.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/launch.h"
#include "runtime/register.h"
#include "runtime/thread.h"

unsigned int __cudaPushCallConfiguration(
	dim3 grid, dim3 block, size_t shared_size, cudaStream_t stream)
{
	struct rt_thread *thread = &rt_thread;

	if (thread->n_configurations >= RT_MAX_CONFIGURATIONS)
		return rt_leave(cudaErrorMemoryAllocation);
	thread->configurations[thread->n_configurations++] = (struct rt_configuration){
		.grid = grid,
		.block = block,
		.shared_size = shared_size,
		.stream = stream,
	};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(
	dim3 *gridp, dim3 *blockp, size_t *shared_sizep, void *streamp)
{
	struct rt_thread *thread = &rt_thread;
	const struct rt_configuration *top;

	if (!thread->n_configurations)
		return rt_leave(cudaErrorMissingConfiguration);
	top = &thread->configurations[--thread->n_configurations];
	*gridp = top->grid;
	*blockp = top->block;
	*shared_sizep = top->shared_size;
	*(cudaStream_t *)streamp = top->stream;
	return cudaSuccess;
}

/*
 * Errors
 */

static bool is_below(unsigned int value, int attribute)
{
	CUdevice device;
	int limit;

	if (rt_driver.cuCtxGetDevice(&device) ||
		rt_driver.cuDeviceGetAttribute(
			&limit, (CUdevice_attribute)attribute, device))
		return true;
	return value <= (unsigned int)limit;
}

static bool is_legal_axis(unsigned int grid, unsigned int block, int axis)
{
	return grid && block &&
	       is_below(grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis) &&
	       is_below(block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
}

static bool has_legal_sizes(
	CUkernel kernel, const dim3 *grid, const dim3 *block, size_t shared_size)
{
	CUdevice device;
	int max_shared;

	/* The maxima of the axes are at most 1024, so the product does not overflow. */
	if (!is_legal_axis(grid->x, block->x, 0) ||
		!is_legal_axis(grid->y, block->y, 1) ||
		!is_legal_axis(grid->z, block->z, 2) ||
		!is_below(block->x * block->y * block->z,
			CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
		return false;
	if (rt_driver.cuCtxGetDevice(&device) ||
		rt_driver.cuKernelGetAttribute(&max_shared,
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, device))
		return true;
	return shared_size <= (size_t)max_shared;
}

/* The driver has one code for all invalid arguments, the runtime a separate one for the
 * sizes of a launch. */
static int launch_error(CUresult result, CUkernel kernel, const dim3 *grid,
	const dim3 *block, size_t shared_size)
{
	if (result != CUDA_ERROR_INVALID_VALUE ||
		has_legal_sizes(kernel, grid, block, shared_size))
		return result;
	return cudaErrorInvalidConfiguration;
}

/*
 * Calls
 */

int rt_launch_kernel(CUkernel kernel, dim3 grid, dim3 block, void **params,
	size_t shared_size, cudaStream_t stream)
{
	CUresult result;

	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	if (shared_size > UINT_MAX)
		return cudaErrorInvalidConfiguration;
	result = rt_driver.cuLaunchKernel((CUfunction)kernel, grid.x, grid.y, grid.z,
		block.x, block.y, block.z, shared_size, stream, params, NULL);
	return launch_error(result, kernel, &grid, &block, shared_size);
}

int rt_launch(const void *function, dim3 grid, dim3 block, void **params,
	size_t shared_size, cudaStream_t stream)
{
	CUkernel kernel;
	int error = rt_kernel_get(&kernel, function);

	if (error)
		return error;
	return rt_launch_kernel(kernel, grid, block, params, shared_size, stream);
}

int rt_launch_cooperative(const void *function, dim3 grid, dim3 block, void **params,
	size_t shared_size, cudaStream_t stream)
{
	CUkernel kernel;
	CUresult result;
	int error = rt_kernel_get(&kernel, function);

	if (error)
		return error;
	if (shared_size > UINT_MAX)
		return cudaErrorInvalidConfiguration;
	result = rt_driver.cuLaunchCooperativeKernel((CUfunction)kernel, grid.x, grid.y,
		grid.z, block.x, block.y, block.z, shared_size, stream, params);
	return launch_error(result, kernel, &grid, &block, shared_size);
}

/* 0, or the error of a configuration that the driver cannot be given. */
static int convert_config(CUlaunchConfig *converted, const cudaLaunchConfig_t *config)
{
	if (!config)
		return cudaErrorInvalidValue;
	if (config->dynamicSmemBytes > UINT_MAX)
		return cudaErrorInvalidConfiguration;
	*converted = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = config->attrs,
		.numAttrs = config->numAttrs,
	};
	return 0;
}

int rt_launch_ex(const cudaLaunchConfig_t *config, const void *function, void **params,
	struct rt_order order)
{
	CUlaunchConfig converted;
	CUkernel kernel;
	CUresult result;
	int error = convert_config(&converted, config);

	if (!error)
		error = rt_kernel_get(&kernel, function);
	if (error)
		return error;
	if (order.is_sync_per_thread)
		converted.hStream = rt_per_thread(converted.hStream);
	result = rt_driver.cuLaunchKernelEx(&converted, (CUfunction)kernel, params, NULL);
	return launch_error(result, kernel, &config->gridDim, &config->blockDim,
		config->dynamicSmemBytes);
}

int rt_occupancy(int *np, const void *function, int block_size, size_t shared_size,
	unsigned int flags)
{
	CUkernel kernel;
	int error = rt_kernel_get(&kernel, function);

	if (error)
		return error;
	return rt_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		np, (CUfunction)kernel, block_size, shared_size, flags);
}

int rt_occupancy_shared(size_t *sizep, const void *function, int n_blocks, int block_size)
{
	CUkernel kernel;
	int error = rt_kernel_get(&kernel, function);

	if (error)
		return error;
	return rt_driver.cuOccupancyAvailableDynamicSMemPerBlock(
		sizep, (CUfunction)kernel, n_blocks, block_size);
}

int rt_occupancy_cluster(
	int *sizep, const void *function, const cudaLaunchConfig_t *config)
{
	CUlaunchConfig converted;
	CUkernel kernel;
	int error = convert_config(&converted, config);

	if (!error)
		error = rt_kernel_get(&kernel, function);
	if (error)
		return error;
	return rt_driver.cuOccupancyMaxPotentialClusterSize(
		sizep, (CUfunction)kernel, &converted);
}

int rt_occupancy_clusters(int *np, const void *function, const cudaLaunchConfig_t *config)
{
	CUlaunchConfig converted;
	CUkernel kernel;
	int error = convert_config(&converted, config);

	if (!error)
		error = rt_kernel_get(&kernel, function);
	if (error)
		return error;
	return rt_driver.cuOccupancyMaxActiveClusters(np, (CUfunction)kernel, &converted);
}
