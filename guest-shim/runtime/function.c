/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of kernels, and functions of the driver
 */

#include "runtime/code.h"
#include "runtime/driver.h"
#include "runtime/function.h"
#include "runtime/version.h"

/* The kernel, and the device of the current context. */
static int find(CUkernel *kernelp, CUdevice *devicep, const void *function)
{
	int error = rt_kernel_get(kernelp, function);

	return error ? error : (int)rt_driver.cuCtxGetDevice(devicep);
}

int rt_function_get(CUfunction *functionp, const void *symbol)
{
	CUkernel kernel;
	int error = rt_kernel_get(&kernel, symbol);

	return error ? error : (int)rt_driver.cuKernelGetFunction(functionp, kernel);
}

int rt_function_param(const void *function, size_t i, size_t *offsetp, size_t *sizep)
{
	CUkernel kernel;
	int error = rt_kernel_get(&kernel, function);

	return error ? error
		     : (int)rt_driver.cuKernelGetParamInfo(kernel, i, offsetp, sizep);
}

int rt_function_attributes(cudaFuncAttributes *attributes, const void *function)
{
	cudaFuncAttributes a = { 0 };
	int shared_size, const_size, local_size;
	const struct {
		int *value;
		CUfunction_attribute id;
	} queries[] = {
		{ &a.maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK },
		{ &shared_size, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES },
		{ &const_size, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES },
		{ &local_size, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES },
		{ &a.numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS },
		{ &a.ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION },
		{ &a.binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION },
		{ &a.cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA },
		{ &a.maxDynamicSharedSizeBytes,
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES },
		{ &a.preferredShmemCarveout,
			CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT },
		{ &a.clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET },
		{ &a.requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH },
		{ &a.requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT },
		{ &a.requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH },
		{ &a.clusterSchedulingPolicyPreference,
			CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE },
		{ &a.nonPortableClusterSizeAllowed,
			CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED },
	};
	CUkernel kernel;
	CUdevice device;
	int error;

	if (!attributes)
		return cudaErrorInvalidValue;
	error = find(&kernel, &device, function);
	for (size_t i = 0; !error && i < sizeof(queries) / sizeof(queries[0]); i++)
		error = rt_driver.cuKernelGetAttribute(
			queries[i].value, queries[i].id, kernel, device);
	if (error)
		return error;
	a.sharedSizeBytes = shared_size;
	a.constSizeBytes = const_size;
	a.localSizeBytes = local_size;
	*attributes = a;
	return 0;
}

int rt_function_set_attribute(
	const void *function, cudaFuncAttribute attribute, int value)
{
	CUkernel kernel;
	CUdevice device;
	int error = find(&kernel, &device, function);

	if (error)
		return error;
	return rt_driver.cuKernelSetAttribute(attribute, value, kernel, device);
}

int rt_function_set_cache(const void *function, cudaFuncCache config)
{
	CUkernel kernel;
	CUdevice device;
	int error = find(&kernel, &device, function);

	return error ? error
		     : (int)rt_driver.cuKernelSetCacheConfig(kernel, config, device);
}

int rt_function_set_banks(const void *function, cudaSharedMemConfig config)
{
	CUfunction found;
	int error = rt_function_get(&found, function);

	return error ? error : (int)rt_driver.cuFuncSetSharedMemConfig(found, config);
}

int rt_entry_point(const char *name, void **functionp, unsigned int version,
	unsigned long long flags, cudaDriverEntryPointQueryResult *statusp,
	struct rt_order order)
{
	cudaDriverEntryPointQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	int error;

	if (!name || !functionp || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return cudaErrorInvalidValue;
	if (!flags && order.is_sync_per_thread)
		flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	error = rt_driver.cuGetProcAddress_v2(name, functionp,
		version ? version : (unsigned int)rt_version, flags, &status);
	if (statusp)
		*statusp = status;
	if (error && status != CU_GET_PROC_ADDRESS_SUCCESS) {
		*functionp = NULL;
		error = statusp ? 0 : cudaErrorSymbolNotFound;
	}
	return error;
}
