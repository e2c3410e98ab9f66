/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy: how many blocks of a kernel a multiprocessor holds
 *
 * As many as the limits of a real multiprocessor of this compute capability allow, so
 * that programs choose block and grid sizes as they would there.
 */

#include "api/launch.h"

static uint64_t round_up(uint64_t value, uint64_t step)
{
	return (value + step - 1) / step * step;
}

uint32_t occupancy_blocks(
	CUfunction function, uint64_t n_threads, uint64_t dynamic_shared)
{
	const struct softgpu_kernel_info *info = function->info;
	uint64_t threads = round_up(n_threads, SOFTGPU_WARP_SIZE);
	uint64_t registers = round_up(info->n_registers, 8) * threads;
	uint64_t shared = round_up(info->static_shared_size + dynamic_shared, 128) +
			  API_BLOCK_SHARED_RESERVED;
	uint64_t n = API_SM_BLOCKS;

	if (!n_threads || n_threads > info->max_threads)
		return 0;
	if (n > API_SM_THREADS / threads)
		n = API_SM_THREADS / threads;
	if (n > API_SM_SHARED / shared)
		n = API_SM_SHARED / shared;
	if (registers && n > API_SM_REGISTERS / registers)
		n = API_SM_REGISTERS / registers;
	return n;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks,
	CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_get(func, &function);
	if (result)
		return result;
	if (!numBlocks || blockSize <= 0 || dynamicSMemSize > API_SM_SHARED ||
		flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	*numBlocks = occupancy_blocks(function, blockSize, dynamicSMemSize);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
	size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)
{
	API_CALL;
	uint32_t best_threads = 0, best_blocks = 0, limit;
	CUfunction function;
	CUresult result;

	result = function_get(func, &function);
	if (result)
		return result;
	if (!minGridSize || !blockSize || blockSizeLimit < 0 ||
		flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	limit = function->info->max_threads;
	if (blockSizeLimit && (uint32_t)blockSizeLimit < limit)
		limit = blockSizeLimit;
	/* The largest block wins among those that keep most threads resident. */
	for (uint32_t threads = round_up(limit, SOFTGPU_WARP_SIZE); threads;
		threads -= SOFTGPU_WARP_SIZE) {
		uint32_t size = threads < limit ? threads : limit, blocks;
		size_t shared = blockSizeToDynamicSMemSize
					? blockSizeToDynamicSMemSize(size)
					: dynamicSMemSize;

		blocks = occupancy_blocks(function, size, shared);
		if (blocks * size > best_blocks * best_threads) {
			best_threads = size;
			best_blocks = blocks;
		}
	}
	*blockSize = best_threads;
	*minGridSize = best_blocks * green_current_sms();
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
	size_t dynamicSMemSize, int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
		blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
		CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	API_CALL;
	uint64_t each, used;
	CUfunction function;
	CUresult result;

	result = function_get(func, &function);
	if (result)
		return result;
	if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0 ||
		occupancy_blocks(function, blockSize, 0) < (uint32_t)numBlocks)
		return CUDA_ERROR_INVALID_VALUE;
	each = API_SM_SHARED / numBlocks / 128 * 128;
	used = API_BLOCK_SHARED_RESERVED +
	       round_up(function->info->static_shared_size, 128);
	each = each > used ? each - used : 0;
	if (each > API_BLOCK_SHARED_OPTIN - function->info->static_shared_size)
		each = API_BLOCK_SHARED_OPTIN - function->info->static_shared_size;
	*dynamicSmemSize = each;
	return CUDA_SUCCESS;
}

/*
 * Clusters
 */

/* The function and the threads of a block of a launch that is asked about. */
static CUresult cluster_launch(CUfunction handle, const CUlaunchConfig *config,
	CUfunction *functionp, uint64_t *n_threadsp)
{
	CUresult result;

	result = function_get(handle, functionp);
	if (result)
		return result;
	if (!config || (config->numAttrs && !config->attrs) ||
		config->blockDimX > SOFTGPU_BLOCK_THREADS_MAX ||
		config->blockDimY > SOFTGPU_BLOCK_THREADS_MAX ||
		config->blockDimZ > SOFTGPU_BLOCK_THREADS_MAX ||
		config->sharedMemBytes > API_SM_SHARED)
		return CUDA_ERROR_INVALID_VALUE;
	*n_threadsp = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
	return *n_threadsp && *n_threadsp <= SOFTGPU_BLOCK_THREADS_MAX
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxActiveClusters(
	int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	API_CALL;
	uint32_t cluster[3], size, n;
	struct launch launch = {};
	CUfunction function;
	uint64_t n_threads;
	CUresult result;

	result = cluster_launch(func, config, &function, &n_threads);
	if (result)
		return result;
	if (!numClusters)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
			launch_attribute(&launch, &config->attrs[i]))
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	result = launch_cluster(function, &launch, cluster);
	if (result)
		return result;
	size = cluster[0] * cluster[1] * cluster[2];
	if (!size)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	n = green_current_sms() *
	    occupancy_blocks(function, n_threads, config->sharedMemBytes);
	/* One always runs: its blocks need no more than one kernel thread. */
	*numClusters = (int)(n && n < size ? 1 : n / size);
	return CUDA_SUCCESS;
}

/* A size that the configuration has is not looked at. */
CUresult cuOccupancyMaxPotentialClusterSize(
	int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	API_CALL;
	CUfunction function;
	uint64_t n_threads;
	CUresult result;

	result = cluster_launch(func, config, &function, &n_threads);
	if (result)
		return result;
	if (!clusterSize)
		return CUDA_ERROR_INVALID_VALUE;
	*clusterSize = (int)function_cluster_max(function);
	return CUDA_SUCCESS;
}
