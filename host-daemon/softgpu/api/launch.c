/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "api/api.h"

/* What a launch asks for, wherever it was said. */
struct launch {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_size;
	bool is_cooperative;
	CUstream stream;
};

static uint64_t launch_blocks(const struct launch *launch)
{
	return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* The limits of the device, and of this function. */
static CUresult launch_check(CUfunction function, const struct launch *launch)
{
	uint64_t n_threads = 1;

	for (unsigned int i = 0; i < 3; i++) {
		uint32_t grid_max = i ? API_GRID_YZ_MAX : API_GRID_X_MAX;
		uint32_t block_max = i < 2 ? SOFTGPU_BLOCK_THREADS_MAX : API_BLOCK_Z_MAX;

		if (!launch->grid[i] || launch->grid[i] > grid_max || !launch->block[i] ||
			launch->block[i] > block_max)
			return CUDA_ERROR_INVALID_VALUE;
		n_threads *= launch->block[i];
	}
	if (n_threads > SOFTGPU_BLOCK_THREADS_MAX ||
		launch->shared_size > function_dynamic_shared_max(function))
		return CUDA_ERROR_INVALID_VALUE;
	if (n_threads > function->info->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	/* All blocks of a cooperative grid are resident at once. */
	if (launch->is_cooperative &&
		launch_blocks(launch) > (uint64_t)softgpu_device.n_threads *
						occupancy_blocks(function, n_threads,
							launch->shared_size))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

/* Copies parameters that the program has in places of their own. */
static CUresult launch_gather(CUfunction function, void **params, uint8_t *to)
{
	const struct softgpu_kernel_info *info = function->info;

	if (info->n_params && !params)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < info->n_params; i++) {
		if (!params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(to + info->params[i].offset, params[i], info->params[i].size);
	}
	return CUDA_SUCCESS;
}

/* Copies parameters that the program has packed into one block. */
static CUresult launch_unpack(CUfunction function, void **extra, uint8_t *to)
{
	const void *from = NULL;
	size_t size = 0;

	for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			from = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
			size = *(const size_t *)extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (function->info->params_size && !from)
		return CUDA_ERROR_INVALID_VALUE;
	if (size < function->info->params_size)
		return CUDA_ERROR_INVALID_VALUE;
	if (from)
		memcpy(to, from, function->info->params_size);
	return CUDA_SUCCESS;
}

static void launch_describe(
	struct sched_grid *grid, CUfunction function, const struct launch *launch)
{
	CUcontext context = function->module->object.context;

	grid->launch = (struct softgpu_launch){
		.kernel = function->kernel,
		.dynamic_shared_size = launch->shared_size,
		.params_size = function->info->params_size,
		.space = &context->space,
		.hooks = &context->hooks,
		.textures = texture_table(),
		.n_sms = softgpu_device.n_threads,
		.stack_size = (uint32_t)__atomic_load_n(
			&context->limits[CU_LIMIT_STACK_SIZE], __ATOMIC_RELAXED),
	};
	memcpy(grid->launch.grid, launch->grid, sizeof(launch->grid));
	memcpy(grid->launch.block, launch->block, sizeof(launch->block));
	grid->n_blocks = launch_blocks(launch);
	grid->is_cooperative = launch->is_cooperative;
}

static CUresult launch_submit(
	CUfunction handle, const struct launch *launch, void **params, void **extra)
{
	struct sched_op op = { .kind = SCHED_LAUNCH };
	struct sched_stream *stream;
	CUfunction function;
	uint8_t *block = op.grid.params;
	CUresult r;

	r = stream_get(launch->stream, &stream);
	if (!r)
		r = function_get(handle, &function);
	if (!r)
		r = launch_check(function, launch);
	if (r)
		return r;
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (function->module->object.context != stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	print_flush(stream_context(stream));
	launch_describe(&op.grid, function, launch);
	if (function->info->params_size > SCHED_PARAMS_INLINE) {
		block = op.grid.long_params = calloc(1, function->info->params_size);
		if (!block)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	op.grid.launch.params = block;
	r = extra ? launch_unpack(function, extra, block)
		  : launch_gather(function, params, block);
	if (!r)
		r = softgpu_launch_check(&op.grid.launch);
	if (r) {
		free(op.grid.long_params);
		return r;
	}
	return sched_submit(stream, &op, false);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams, void **extra)
{
	struct launch launch = {
		.grid = { gridDimX, gridDimY, gridDimZ },
		.block = { blockDimX, blockDimY, blockDimZ },
		.shared_size = sharedMemBytes,
		.stream = hStream,
	};

	return launch_submit(f, &launch, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
	unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
	unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
	CUstream hStream, void **kernelParams)
{
	struct launch launch = {
		.grid = { gridDimX, gridDimY, gridDimZ },
		.block = { blockDimX, blockDimY, blockDimZ },
		.shared_size = sharedMemBytes,
		.is_cooperative = true,
		.stream = hStream,
	};

	return launch_submit(f, &launch, kernelParams, NULL);
}

/* Return: 0 for an attribute that is carried out or that is only a hint. */
static CUresult launch_attribute(
	struct launch *launch, const CUlaunchAttribute *attribute)
{
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		launch->is_cooperative = attribute->value.cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return (uint64_t)attribute->value.clusterDim.x *
					       attribute->value.clusterDim.y *
					       attribute->value.clusterDim.z ==
				       1
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_SUPPORTED;
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	/* A kernel that starts after the one before it has ended keeps this promise. */
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	struct launch launch;
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	launch = (struct launch){
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared_size = config->sharedMemBytes,
		.stream = config->hStream,
	};
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		r = launch_attribute(&launch, &config->attrs[i]);
		if (r)
			return r;
	}
	return launch_submit(f, &launch, kernelParams, extra);
}
