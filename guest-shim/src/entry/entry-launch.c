/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: launches and occupancy
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "code/function.h"
#include "code/launch-config.h"
#include "code/launch.h"
#include "code/memo.h"
#include "code/runtime.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"

CUresult shim_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams, void **extra)
{
	struct shim_launch launch = {
		.function = f,
		.dims = {
			.axis = { vgpu_launch_axis_make(gridDimX, blockDimX),
				vgpu_launch_axis_make(gridDimY, blockDimY),
				vgpu_launch_axis_make(gridDimZ, blockDimZ) },
		},
		.stream = hStream,
		.params = kernelParams,
		.extra = extra,
	};

	vgpu_launch_dims_begin(&launch.dims, sharedMemBytes, 0);
	return shim_launch(&launch);
}

CUresult shim_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
	unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
	unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
	CUstream hStream, void **kernelParams)
{
	const struct shim_launch launch = {
		.function = f,
		.dims = {
			.axis = { { gridDimX, blockDimX }, { gridDimY, blockDimY },
				{ gridDimZ, blockDimZ } },
			.shared_bytes = sharedMemBytes,
			.flags = VGPU_LAUNCH_COOPERATIVE,
		},
		.stream = hStream,
		.params = kernelParams,
	};

	return shim_launch(&launch);
}

static CUresult launch_config(const CUlaunchConfig *config, CUfunction f, CUstream stream,
	void **kernelParams, void **extra)
{
	struct shim_launch_config taken;
	struct shim_launch launch = {
		.function = f,
		.stream = stream,
		.params = kernelParams,
		.extra = extra,
		.attributes = taken.attributes,
	};
	CUresult result;

	result = shim_launch_config_take(&taken, config);
	if (result != CUDA_SUCCESS)
		return result;
	launch.dims = taken.dims;
	launch.n_attributes = taken.n_attributes;
	return shim_launch(&launch);
}

CUresult shim_cuLaunchKernelEx_on(const CUlaunchConfig *config, CUfunction f,
	void **kernelParams, void **extra, CUstream stream)
{
	SHIM_CHECK_READY();
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_config(config, f, config->hStream ? config->hStream : stream,
		kernelParams, extra);
}

/* Keeps a name for as long as the process lives: the program gets a pointer to it. */
static CUresult keep_name(CUfunction handle, const char *received, const char **name)
{
	struct shim_function *function;
	char *copy = strdup(received), *none = NULL;
	CUresult result;

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_function_get(handle, &function);
	if (result != CUDA_SUCCESS ||
		!__atomic_compare_exchange_n(&function->name, &none, copy, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		free(copy);
	if (result == CUDA_SUCCESS)
		*name = __atomic_load_n(&function->name, __ATOMIC_ACQUIRE);
	return result;
}

CUresult shim_cuFuncGetName(const char **name, CUfunction hfunc)
{
	Vgpu__CuFuncGetNameRequest request = VGPU__CU_FUNC_GET_NAME_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuFuncGetName);
	const ProtobufCMessage *reply;
	char received[2048];
	CUresult result;

	if (!name)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.hfunc = (uint64_t)(uintptr_t)hfunc;
	result = shim_memo_call(
		&call, &request.base, &vgpu__cu_func_get_name_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	strncpy(received, ((const Vgpu__CuFuncGetNameReply *)reply)->function_name,
		sizeof(received) - 1);
	received[sizeof(received) - 1] = '\0';
	return keep_name(hfunc, received, name);
}

CUresult shim_cuKernelGetName(const char **name, CUkernel hfunc)
{
	Vgpu__CuKernelGetNameRequest request = VGPU__CU_KERNEL_GET_NAME_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuKernelGetName);
	const ProtobufCMessage *reply;
	char received[2048];
	CUresult result;

	if (!name)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.hfunc = (uint64_t)(uintptr_t)hfunc;
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_kernel_get_name_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	strncpy(received, ((const Vgpu__CuKernelGetNameReply *)reply)->kernel_name,
		sizeof(received) - 1);
	received[sizeof(received) - 1] = '\0';
	return keep_name((CUfunction)hfunc, received, name);
}

CUresult shim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks,
	CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	return shim_runtime_function_result(
		func, shim_remote_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			      numBlocks, func, blockSize, dynamicSMemSize, flags));
}

CUresult shim_cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	return shim_runtime_function_result(
		func, shim_remote_cuOccupancyAvailableDynamicSMemPerBlock(
			      dynamicSmemSize, func, numBlocks, blockSize));
}

static int n_sms_of(
	const struct shim_context *context, const struct vgpu_device_info *device)
{
	return context->green
		       ? (int)context->n_sms
		       : device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
}

/* The block size with the most threads resident on a multiprocessor, tried downwards warp
 * by warp; a callback of the program gives the shared memory of a size. */
CUresult shim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
	size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)
{
	struct shim_thread *thread;
	const struct vgpu_device_info *device;
	int most = 0, best = 0, best_blocks = 0, limit = 0, warp;
	CUresult result;

	if (!minGridSize || !blockSize)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_cuFuncGetAttribute(
		&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func);
	if (result != CUDA_SUCCESS)
		return result;
	thread = shim_thread_get();
	device = shim_device_get(shim_thread_context(thread)->device);
	warp = device->attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
	warp = warp > 0 ? warp : 32;
	if (blockSizeLimit > 0 && blockSizeLimit < limit)
		limit = blockSizeLimit;
	for (int size = limit - limit % warp ? limit - limit % warp : limit; size > 0;
		size -= warp) {
		size_t shared = blockSizeToDynamicSMemSize
					? blockSizeToDynamicSMemSize(size)
					: dynamicSMemSize;
		int blocks = 0;

		result = shim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			&blocks, func, size, shared, flags);
		if (result != CUDA_SUCCESS)
			return result;
		if (blocks * size > most) {
			most = blocks * size;
			best = size;
			best_blocks = blocks;
		}
		if (most == device->attributes
				    [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR])
			break;
	}
	*blockSize = best;
	*minGridSize = best_blocks * n_sms_of(shim_thread_top(thread), device);
	return CUDA_SUCCESS;
}

CUresult shim_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
	size_t dynamicSMemSize, int blockSizeLimit)
{
	return shim_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize,
		func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
		CU_OCCUPANCY_DEFAULT);
}

CUresult shim_cuOccupancyMaxActiveClusters(
	int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	Vgpu__CuOccupancyMaxActiveClustersRequest request =
		VGPU__CU_OCCUPANCY_MAX_ACTIVE_CLUSTERS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuOccupancyMaxActiveClusters);
	CUresult result = shim_call_check(call.id);
	struct shim_launch_config taken;
	const ProtobufCMessage *reply;

	if (result != CUDA_SUCCESS)
		return result;
	if (!numClusters || !config)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_launch_config_take(&taken, config);
	if (result != CUDA_SUCCESS)
		return result;
	request.func = (uint64_t)(uintptr_t)func;
	request.h_stream = (uint64_t)(uintptr_t)config->hStream;
	request.dims.data = (uint8_t *)&taken.dims;
	request.dims.len = sizeof(taken.dims);
	request.attributes.data = (uint8_t *)taken.attributes;
	request.attributes.len = taken.n_attributes * sizeof(taken.attributes[0]);
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_occupancy_max_active_clusters_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*numClusters = ((const Vgpu__CuOccupancyMaxActiveClustersReply *)reply)
				       ->num_clusters;
	return shim_runtime_function_result(func, result);
}

CUresult shim_cuOccupancyMaxPotentialClusterSize(
	int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	Vgpu__CuOccupancyMaxPotentialClusterSizeRequest request =
		VGPU__CU_OCCUPANCY_MAX_POTENTIAL_CLUSTER_SIZE_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuOccupancyMaxPotentialClusterSize);
	CUresult result = shim_call_check(call.id);
	struct shim_launch_config taken;
	const ProtobufCMessage *reply;

	if (result != CUDA_SUCCESS)
		return result;
	if (!clusterSize || !config)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_launch_config_take(&taken, config);
	if (result != CUDA_SUCCESS)
		return result;
	request.func = (uint64_t)(uintptr_t)func;
	request.h_stream = (uint64_t)(uintptr_t)config->hStream;
	request.dims.data = (uint8_t *)&taken.dims;
	request.dims.len = sizeof(taken.dims);
	request.attributes.data = (uint8_t *)taken.attributes;
	request.attributes.len = taken.n_attributes * sizeof(taken.attributes[0]);
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_occupancy_max_potential_cluster_size_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*clusterSize =
			((const Vgpu__CuOccupancyMaxPotentialClusterSizeReply *)reply)
				->cluster_size;
	return shim_runtime_function_result(func, result);
}
