/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "api/capture.h"
#include "vgpu/launch-attribute.h"

/*
 * Clusters
 */

static bool is_shape(const uint32_t cluster[3])
{
	return cluster[0] || cluster[1] || cluster[2];
}

/* Blocks of a cluster, which the kernel may have so many of. */
static bool is_size_legal(CUfunction function, const uint32_t cluster[3])
{
	uint32_t max = function_cluster_max(function);
	uint64_t n = 1;

	for (unsigned int i = 0; i < 3; i++) {
		if (!cluster[i] || cluster[i] > max)
			return false;
		n *= cluster[i];
	}
	return n <= max;
}

CUresult launch_cluster(
	CUfunction function, const struct launch *launch, uint32_t cluster[3])
{
	uint32_t required[3];

	function_required_cluster(function, required);
	memcpy(cluster, is_shape(launch->cluster) ? launch->cluster : required,
		sizeof(required));
	if (!is_shape(cluster))
		return function->info->is_cluster_explicit || is_shape(launch->preferred)
			       ? CUDA_ERROR_INVALID_CLUSTER_SIZE
			       : CUDA_SUCCESS;
	if (!is_size_legal(function, cluster) ||
		(is_shape(required) && memcmp(cluster, required, sizeof(required))))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	/* A substitute is made of whole clusters. Which one a device takes is its choice,
	 * and here it is never this. */
	for (unsigned int i = 0; i < 3 && is_shape(launch->preferred); i++)
		if (launch->preferred[i] % cluster[i])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return CUDA_SUCCESS;
}

/* Blocks in one dimension: the grid of some kernels counts clusters. */
static uint64_t launch_width(CUfunction function, const struct launch *launch,
	const uint32_t cluster[3], unsigned int i)
{
	return (uint64_t)launch->grid[i] *
	       (function->info->blocks_are_clusters && cluster[i] ? cluster[i] : 1);
}

static CUresult explain_cluster(CUfunction function, const struct launch *launch,
	const uint32_t cluster[3], CUresult result)
{
	uint32_t required[3];
	char text[512];

	if (result != CUDA_ERROR_INVALID_CLUSTER_SIZE)
		return result;
	function_required_cluster(function, required);
	snprintf(text, sizeof(text),
		"kernel %.200s cannot be launched in clusters of %u x %u x %u blocks "
		"with "
		"a grid of %u x %u x %u: a cluster of this kernel has at most %u "
		"blocks%s",
		function->name, cluster[0], cluster[1], cluster[2], launch->grid[0],
		launch->grid[1], launch->grid[2], function_cluster_max(function),
		is_shape(required) ? " and the shape that the kernel requires"
				   : ", and a grid is a multiple of its clusters");
	device_explain(text);
	return result;
}

static CUresult launch_check_grid(CUfunction function, const struct launch *launch)
{
	uint32_t cluster[3];
	CUresult result;

	result = launch_cluster(function, launch, cluster);
	for (unsigned int i = 0; i < 3 && !result; i++) {
		uint64_t n = launch_width(function, launch, cluster, i);

		if (!n || n > (i ? API_GRID_YZ_MAX : API_GRID_X_MAX))
			return CUDA_ERROR_INVALID_VALUE;
		if (cluster[i] && n % cluster[i])
			result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
	}
	return explain_cluster(function, launch, cluster, result);
}

static uint64_t launch_blocks(CUfunction function, const struct launch *launch)
{
	uint32_t cluster[3];
	uint64_t n = 1;

	if (launch_cluster(function, launch, cluster))
		return 0;
	for (unsigned int i = 0; i < 3; i++)
		n *= launch_width(function, launch, cluster, i);
	return n;
}

CUresult launch_check(CUfunction function, const struct launch *launch)
{
	uint64_t n_threads = 1;
	CUresult result;

	for (unsigned int i = 0; i < 3; i++) {
		uint32_t block_max = i < 2 ? SOFTGPU_BLOCK_THREADS_MAX : API_BLOCK_Z_MAX;

		if (!launch->grid[i] || !launch->block[i] || launch->block[i] > block_max)
			return CUDA_ERROR_INVALID_VALUE;
		n_threads *= launch->block[i];
	}
	result = launch_check_grid(function, launch);
	if (result)
		return result;
	if (n_threads > function->info->bound_threads ||
		launch->shared_size > function_dynamic_shared_max(function))
		return CUDA_ERROR_INVALID_VALUE;
	if (n_threads > function->info->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	/* All blocks of a cooperative grid are resident at once. */
	if (launch->is_cooperative &&
		launch_blocks(function, launch) >
			(uint64_t)softgpu_device.n_threads * occupancy_blocks(function,
								     n_threads,
								     launch->shared_size))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

/* Copies parameters from separate places of the program. */
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

CUresult launch_params(CUfunction function, void **params, void **extra, uint8_t *to)
{
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	return extra ? launch_unpack(function, extra, to)
		     : launch_gather(function, params, to);
}

void launch_describe(
	struct sched_grid *grid, CUfunction function, const struct launch *launch)
{
	CUcontext context = function->module->object.context;
	uint32_t cluster[3], size;

	grid->launch = (struct softgpu_launch){
		.kernel = function->kernel,
		.dynamic_shared_size = launch->shared_size,
		.params_size = function->info->params_size,
		.space = &context->space,
		.hooks = &context->hooks,
		.textures = texture_table(),
		.checks = softgpu_device.checks.kinds ? &softgpu_device.checks : NULL,
		.owner = function->module,
		.n_sms = softgpu_device.n_threads,
		.schedule = softgpu_device.schedule == SOFTGPU_CONFIG_FAIR
				    ? SOFTGPU_SCHEDULE_FAIR
				    : SOFTGPU_SCHEDULE_LONG,
		.stack_size = (uint32_t)__atomic_load_n(
			&context->limits[CU_LIMIT_STACK_SIZE], __ATOMIC_RELAXED),
	};
	memcpy(grid->launch.block, launch->block, sizeof(launch->block));
	if (!launch_cluster(function, launch, cluster))
		memcpy(grid->launch.cluster, cluster, sizeof(cluster));
	for (unsigned int i = 0; i < 3; i++)
		grid->launch.grid[i] =
			(uint32_t)launch_width(function, launch, grid->launch.cluster, i);
	size = is_shape(grid->launch.cluster)
		       ? grid->launch.cluster[0] * grid->launch.cluster[1] *
				 grid->launch.cluster[2]
		       : 1;
	grid->n_blocks = softgpu_launch_count(&grid->launch);
	grid->is_cooperative = launch->is_cooperative;
	grid->has_priority = launch->has_priority;
	grid->priority = launch->priority;
	/* As many as occupancy says, since programs count on that. */
	grid->resident_max =
		softgpu_device.n_threads *
		occupancy_blocks(function,
			(uint64_t)launch->block[0] * launch->block[1] * launch->block[2],
			launch->shared_size) /
		size;
}

/* The multiprocessors of a green context are fewer than launch_check() knows. */
static CUresult launch_check_confined(CUfunction function, const struct launch *launch,
	const struct sched_stream *stream)
{
	uint64_t n_threads =
		(uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

	if (launch->is_cooperative && stream->is_confined &&
		launch_blocks(function, launch) >
			(uint64_t)sched_sms_count(&stream->sms) *
				occupancy_blocks(
					function, n_threads, launch->shared_size))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

static CUresult launch_check_events(
	const struct launch *launch, struct sched_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; i < 2 && !result; i++)
		if (launch->events[i])
			result = event_check_untimed(launch->events[i], stream);
	return result;
}

static CUresult launch_record_events(
	const struct launch *launch, struct sched_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; i < 2 && !result; i++)
		if (launch->events[i])
			result = event_record(launch->events[i], stream);
	return result;
}

static CUresult launch_capture(CUfunction handle, CUfunction function,
	const struct launch *launch, struct sched_stream *stream, void **params,
	void **extra)
{
	struct graph_work work;
	CUkernel kernel = handle == function ? NULL : (CUkernel)handle;
	struct launch captured = *launch;
	CUresult result;

	/* A captured node has the priority of the stream (CUDA manual,
	 * cuGraphInstantiateWithFlags()). */
	if (!captured.has_priority) {
		captured.priority = sched_stream_priority(stream);
		captured.has_priority = captured.priority;
	}
	result = work_launch(&work, function, kernel, &captured, params, extra);
	if (!result)
		result = capture_add(stream, &work);
	return result;
}

static CUresult launch_run(CUfunction function, const struct launch *launch,
	struct sched_stream *stream, void **params, void **extra)
{
	struct sched_op op = { .kind = SCHED_LAUNCH };
	uint8_t *block = op.grid.params;
	int r;

	print_flush(stream_context(stream));
	launch_describe(&op.grid, function, launch);
	if (function->info->params_size > SCHED_PARAMS_INLINE) {
		block = op.grid.long_params = calloc(1, function->info->params_size);
		if (!block)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	op.grid.launch.params = block;
	r = launch_params(function, params, extra, block);
	if (!r)
		r = softgpu_launch_check(&op.grid.launch);
	if (r) {
		free(op.grid.long_params);
		return (CUresult)r;
	}
	/* Not where the module has ended since the function was found. */
	r = sched_submit_if(stream, &op, &function->module->n_ends, 0);
	return r == SCHED_E_CHANGED ? CUDA_ERROR_INVALID_HANDLE : (CUresult)r;
}

static CUresult launch_submit(
	CUfunction handle, const struct launch *launch, void **params, void **extra)
{
	struct sched_stream *stream;
	CUfunction function;
	CUresult result;

	result = stream_get_work(launch->stream, &stream);
	if (!result)
		result = function_get(handle, &function);
	if (!result)
		result = launch_check(function, launch);
	if (!result)
		result = launch_check_confined(function, launch, stream);
	if (!result)
		result = launch_check_events(launch, stream);
	if (result)
		return result;
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (function->module->object.context != stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream_is_captured(stream))
		result = launch_capture(handle, function, launch, stream, params, extra);
	else
		result = launch_run(function, launch, stream, params, extra);
	return result ? result : launch_record_events(launch, stream);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams, void **extra)
{
	API_CALL;
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
	API_CALL;
	struct launch launch = {
		.grid = { gridDimX, gridDimY, gridDimZ },
		.block = { blockDimX, blockDimY, blockDimZ },
		.shared_size = sharedMemBytes,
		.is_cooperative = true,
		.stream = hStream,
	};

	return launch_submit(f, &launch, kernelParams, NULL);
}

/* Which kernels may have it is known later. */
static CUresult launch_shape(
	uint32_t to[3], unsigned int x, unsigned int y, unsigned int z)
{
	if (!x || !y || !z)
		return CUDA_ERROR_INVALID_VALUE;
	to[0] = x;
	to[1] = y;
	to[2] = z;
	return CUDA_SUCCESS;
}

/* Notes an event. The only flag of a record is for captured ones. */
static CUresult launch_event(CUevent *to, CUevent event, int flags)
{
	*to = event;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult launch_check_that(bool is_legal)
{
	return is_legal ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult launch_attribute(struct launch *launch, const CUlaunchAttribute *attribute)
{
	const CUlaunchAttributeValue *value = &attribute->value;

	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		launch->is_cooperative = value->cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return launch_shape(launch->cluster, value->clusterDim.x,
			value->clusterDim.y, value->clusterDim.z);
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		return launch_shape(launch->preferred, value->preferredClusterDim.x,
			value->preferredClusterDim.y, value->preferredClusterDim.z);
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return launch_event(&launch->events[0], value->programmaticEvent.event,
			value->programmaticEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return launch_event(&launch->events[1],
			value->launchCompletionEvent.event,
			value->launchCompletionEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return launch_check_that(
			(unsigned int)value->clusterSchedulingPolicyPreference <=
			CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return launch_check_that((int)value->sharedMemCarveout >= -1 &&
					 (int)value->sharedMemCarveout <= 100);
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return launch_check_that((unsigned int)value->memSyncDomain <=
					 CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
	/* The device has one domain. */
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return launch_check_that(!value->memSyncDomainMap.default_ &&
					 !value->memSyncDomainMap.remote);
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return launch_check_that(value->nvlinkUtilCentricScheduling <= 1);
	/* The scheduler clamps it to the range; nodes tell what was asked for. */
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		launch->has_priority = true;
		launch->priority = value->priority;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	/* A kernel that starts after the one before it has ended keeps this promise. */
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return launch_check_that(!value->accessPolicyWindow.num_bytes);
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	API_CALL;
	struct launch launch;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!config || (config->numAttrs && !config->attrs) ||
		config->numAttrs > VGPU_LAUNCH_ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	launch = (struct launch){
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared_size = config->sharedMemBytes,
		.stream = config->hStream,
	};
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		result = launch_attribute(&launch, &config->attrs[i]);
		if (result)
			return result;
	}
	return launch_submit(f, &launch, kernelParams, extra);
}
