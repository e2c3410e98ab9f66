/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points by name
 *
 * Each call exists in one ABI, under the name that the newest cuda.h gives it; where
 * an older ABI of the same call had other parameters, a request for it is refused.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

/* Calls whose parameters changed: the ABI from that version on, the newest first. */
static const struct {
	const char *name;
	const char *symbol;
	int since;
} changed[] = {
	{ "cuCtxCreate", "cuCtxCreate_v4", 12050 },
	{ "cuCtxGetDevice", "cuCtxGetDevice_v2", 13000 },
	{ "cuCtxSynchronize", "cuCtxSynchronize_v2", 13000 },
	{ "cuGetProcAddress", "cuGetProcAddress_v2", 12000 },
	{ "cuGraphAddDependencies", "cuGraphAddDependencies_v2", 12030 },
	{ "cuGraphAddKernelNode", "cuGraphAddKernelNode_v2", 12000 },
	{ "cuGraphAddNode", "cuGraphAddNode_v2", 12030 },
	{ "cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2", 12000 },
	{ "cuGraphExecUpdate", "cuGraphExecUpdate_v2", 12000 },
	{ "cuGraphGetEdges", "cuGraphGetEdges_v2", 12030 },
	{ "cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000 },
	{ "cuGraphInstantiate", "cuGraphInstantiate_v2", 11000 },
	{ "cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams_v2", 12000 },
	{ "cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2", 12000 },
	{ "cuGraphNodeGetDependencies", "cuGraphNodeGetDependencies_v2", 12030 },
	{ "cuGraphNodeGetDependentNodes", "cuGraphNodeGetDependentNodes_v2", 12030 },
	{ "cuGraphRemoveDependencies", "cuGraphRemoveDependencies_v2", 12030 },
	{ "cuStreamBeginCapture", "cuStreamBeginCapture_v2", 10010 },
	{ "cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030 },
	{ "cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", 11030 },
	{ "cuStreamUpdateCaptureDependencies", "cuStreamUpdateCaptureDependencies_v2",
		12030 },
};

/* Looks a name up in this library alone, whatever else is loaded. */
static void *entry_lookup(const char *symbol)
{
	void *library, *found;
	Dl_info info;

	if (!dladdr(&softgpu_device, &info))
		return NULL;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return NULL;
	found = dlsym(library, symbol);
	/* Symbols of libraries that this one depends on are not exported. */
	if (found && (!dladdr(found, &info) || strncmp(symbol, "cu", 2)))
		found = NULL;
	dlclose(library);
	return found;
}

static void *entry_find(const char *name, int version)
{
	bool is_changed = false;
	char newer[128];
	void *found;

	for (size_t i = 0; i < sizeof(changed) / sizeof(*changed); i++)
		if (!strcmp(changed[i].name, name)) {
			if (version >= changed[i].since)
				return entry_lookup(changed[i].symbol);
			is_changed = true;
		}
	if (is_changed)
		return entry_lookup(name);
	snprintf(newer, sizeof(newer), "%s_v2", name);
	found = entry_lookup(newer);
	return found ? found : entry_lookup(name);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
	cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
	void *found;

	if (!symbol || !pfn || cudaVersion > API_DRIVER_VERSION ||
		flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	if (symbolStatus)
		*symbolStatus = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	/* There are no variants with the default stream of a thread. */
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_NOT_SUPPORTED;
	found = entry_find(symbol, cudaVersion);
	*pfn = found;
	if (found && symbolStatus)
		*symbolStatus = CU_GET_PROC_ADDRESS_SUCCESS;
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(
	const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUresult result = cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);

	return !result && !*pfn ? CUDA_ERROR_NOT_FOUND : result;
}

/* NVIDIA's runtime library asks for these; it runs on top of the shim, not of this. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* No profiler is ever attached, so there is none to start. */
CUresult cuProfilerStart(void)
{
	return device_check();
}

CUresult cuProfilerStop(void)
{
	return device_check();
}
