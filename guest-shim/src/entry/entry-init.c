/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: start, and the way to all others
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/procaddr.h"

#include "entry/open.h"
#include "process/shim.h"

/* Known without an entry: the name is younger than the version asked for. */
struct lookup {
	const struct vgpu_procaddr *entry;
	bool is_known;
};

CUresult shim_cuInit(unsigned int Flags)
{
	return Flags ? CUDA_ERROR_INVALID_VALUE : shim_open();
}

CUresult shim_cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = CUDA_VERSION;
	return CUDA_SUCCESS;
}

/* Finds the youngest entry of the name that is not younger than the version. The table
 * is sorted by name, then by version. */
static struct lookup find(const char *name, int version)
{
	struct lookup found = {};
	size_t low = 0, high = vgpu_n_procaddr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(vgpu_procaddr[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < vgpu_n_procaddr && !strcmp(vgpu_procaddr[low].name, name); low++) {
		found.is_known = true;
		if (vgpu_procaddr[low].since <= version)
			found.entry = &vgpu_procaddr[low];
	}
	return found;
}

static void *choose(const struct vgpu_procaddr *entry, int version, cuuint64_t flags)
{
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && entry->pt &&
		entry->pt_since <= version)
		return entry->pt;
	return entry->plain;
}

CUresult shim_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
	cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	struct lookup found;

	/* A flag or none: the two that there are exclude each other. */
	if (!symbol || !pfn || cudaVersion > CUDA_VERSION ||
		flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	found = find(symbol, cudaVersion);
	if (!found.is_known)
		status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	else if (!found.entry)
		status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	*pfn = found.entry ? choose(found.entry, cudaVersion, flags) : NULL;
	if (symbolStatus)
		*symbolStatus = status;
	/* A name that is not found is reported by the status and by NULL. */
	return CUDA_SUCCESS;
}

/* Called by programs built for 11.3 to 11.8; it has no status parameter. */
CUresult shim_cuGetProcAddress(
	const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUresult result = shim_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);

	return result == CUDA_SUCCESS && !*pfn ? CUDA_ERROR_NOT_FOUND : result;
}
