/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions: kernels of a module, with their attributes
 *
 * Every call that takes a CUfunction also takes the CUkernel of a library, and uses its
 * function in the current context.
 */

#include <stdio.h>
#include <string.h>

#include "vgpu/log.h"
#include "vgpu/rate.h"

#include "api/launch.h"
#include "ptx/module.h"

/* Decodes the kernel unless that is done. */
static CUresult function_decode(CUfunction function, struct softgpu_message *message)
{
	const struct softgpu_kernel *kernel;
	CUmodule module = function->module;
	CUresult result;

	/* Partner: the store below. */
	if (__atomic_load_n(&function->kernel, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&module->lock);
	result =
		softgpu_program_kernel(module->program, function->name, &kernel, message);
	/* Another thread may have been here first, and launches read both. */
	if (!result && !function->kernel) {
		function->info = softgpu_kernel_info(kernel);
		__atomic_store_n(&function->kernel, kernel, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&module->lock);
	return result;
}

CUresult function_look_up(CUfunction function)
{
	struct softgpu_message message = { 0 };
	CUresult result;

	/* A kernel that cannot be run is refused at its launch: a program may never
	 * launch it. */
	result = function_decode(function, &message);
	return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_SUCCESS;
}

static CUresult decode_or_log(CUfunction function, struct softgpu_message *message)
{
	static struct rate rate;
	CUresult result = function_decode(function, message);

	if (result && rate_allows(&rate))
		vgpu_log_error("kernel %s cannot be run, CUDA error %d: %s",
			function->name, result, message->text);
	return result;
}

CUresult function_load_logged(CUfunction function)
{
	struct softgpu_message message = { 0 };

	return decode_or_log(function, &message);
}

CUresult function_load(CUfunction function)
{
	struct softgpu_message message = { 0 };
	char text[512];
	CUresult result;

	result = decode_or_log(function, &message);
	if (!result)
		return CUDA_SUCCESS;
	snprintf(text, sizeof(text), "softgpu cannot run kernel %.200s: %s%s",
		function->name, message.text,
		result == CUDA_ERROR_NOT_SUPPORTED ? "; a host with a GPU can" : "");
	device_explain(text);
	return result;
}

/* The function itself, whether it can be run or not. */
static CUresult function_find(CUfunction handle, CUfunction *functionp)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (object_hold(handle, OBJECT_FUNCTION)) {
		*functionp = handle;
		return CUDA_SUCCESS;
	}
	if (!object_hold(handle, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	return library_function((CUkernel)handle, context, functionp);
}

CUresult function_get(CUfunction handle, CUfunction *functionp)
{
	CUresult result;

	result = function_find(handle, functionp);
	return result ? result : function_load(*functionp);
}

uint32_t function_dynamic_shared_max(CUfunction function)
{
	uint32_t used = function->info->static_shared_size;
	uint32_t set = setting_get(function->dynamic_shared_max);

	if (set != UINT32_MAX)
		return set;
	return used < API_BLOCK_SHARED ? API_BLOCK_SHARED - used : 0;
}

void function_required_cluster(CUfunction function, uint32_t cluster[3])
{
	const struct softgpu_kernel_info *info = function->info;

	if (info->required_cluster[0]) {
		memcpy(cluster, info->required_cluster, sizeof(info->required_cluster));
		return;
	}
	cluster[0] = (uint32_t)setting_get(function->cluster_width);
	cluster[1] = (uint32_t)setting_get(function->cluster_height);
	cluster[2] = (uint32_t)setting_get(function->cluster_depth);
}

uint32_t function_cluster_max(CUfunction function)
{
	uint32_t max = setting_get(function->allows_larger_clusters)
			       ? SOFTGPU_CLUSTER_MAX
			       : SOFTGPU_CLUSTER_PORTABLE;

	if (softgpu_device.cc < API_CC_CLUSTER_MIN)
		return 1;
	return function->info->max_cluster && function->info->max_cluster < max
		       ? function->info->max_cluster
		       : max;
}

static int required_cluster(CUfunction function, unsigned int i)
{
	uint32_t cluster[3];

	function_required_cluster(function, cluster);
	return (int)cluster[i];
}

static CUresult function_attribute(
	CUfunction function, CUfunction_attribute attribute, int *valuep)
{
	const struct softgpu_kernel_info *info = function->info;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*valuep = info->max_threads;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*valuep = info->static_shared_size;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*valuep = info->const_size;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*valuep = info->local_size;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*valuep = info->n_registers < 255 ? info->n_registers : 255;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*valuep = info->target;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*valuep = softgpu_device.cc;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*valuep = function_dynamic_shared_max(function);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*valuep = setting_get(function->carveout);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*valuep = info->is_cluster_explicit && !required_cluster(function, 0);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
		*valuep = required_cluster(function, 0);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
		*valuep = required_cluster(function, 1);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*valuep = required_cluster(function, 2);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*valuep = setting_get(function->allows_larger_clusters);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*valuep = setting_get(function->cluster_policy);
		return CUDA_SUCCESS;
	default:
		if ((unsigned int)attribute >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		/* No cache is chosen by the compiler. */
		*valuep = 0;
		return CUDA_SUCCESS;
	}
}

/* Launches check what the three are together. */
static CUresult function_set_cluster(CUfunction function, int *to, int value)
{
	if (value < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (function->info->required_cluster[0])
		return CUDA_ERROR_NOT_PERMITTED;
	setting_set(*to, value);
	return CUDA_SUCCESS;
}

static CUresult function_set_attribute(
	CUfunction function, CUfunction_attribute attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || function->info->static_shared_size + (uint64_t)value >
					 API_BLOCK_SHARED_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		setting_set(function->dynamic_shared_max, (uint32_t)value);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		setting_set(function->carveout, value);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
		return function_set_cluster(function, &function->cluster_width, value);
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
		return function_set_cluster(function, &function->cluster_height, value);
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return function_set_cluster(function, &function->cluster_depth, value);
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		setting_set(function->allows_larger_clusters, value != 0);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		if ((unsigned int)value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
			return CUDA_ERROR_INVALID_VALUE;
		setting_set(function->cluster_policy, value);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_get(hfunc, &function);
	if (result)
		return result;
	return pi ? function_attribute(function, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_get(hfunc, &function);
	return result ? result : function_set_attribute(function, attrib, value);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_find(hfunc, &function);
	if (result)
		return result;
	if ((unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	setting_set(function->cache_config, config);
	return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_find(hfunc, &function);
	if (result)
		return result;
	if ((unsigned int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_find(hfunc, &function);
	if (result)
		return result;
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	*hmod = function->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = function_find(hfunc, &function);
	if (result)
		return result;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	object_keep_for_thread(&function->object);
	*name = function->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(
	CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	API_CALL;
	const struct ptx_function *declared;
	const struct ptx_module *ptx;
	CUfunction function;
	CUresult result;

	result = function_find(func, &function);
	if (result)
		return result;
	/* Known without decoding: who cannot be launched can be asked about. */
	ptx = function->module->ptx;
	declared = &ptx->functions[ptx_module_find_function(ptx, function->name)];
	if (!paramOffset || paramIndex >= declared->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*paramOffset = declared->params[paramIndex].offset;
	if (paramSize)
		*paramSize = declared->params[paramIndex].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(function, OBJECT_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = __atomic_load_n(&function->kernel, __ATOMIC_ACQUIRE)
			 ? CU_FUNCTION_LOADING_STATE_LOADED
			 : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	API_CALL;
	CUfunction loaded;

	return function_get(function, &loaded);
}

/*
 * The same for kernels: settings apply to every context
 */

CUresult cuKernelGetAttribute(
	int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	API_CALL;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	return cuFuncGetAttribute(pi, attrib, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(
	CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	API_CALL;
	CUfunction function;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!object_hold(kernel, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	result = function_get((CUfunction)kernel, &function);
	if (!result)
		result = function_set_attribute(function, attrib, val);
	if (!result && attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		setting_set(kernel->dynamic_shared_max, (uint32_t)val);
	return result;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	API_CALL;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	return cuFuncSetCacheConfig((CUfunction)kernel, config);
}
