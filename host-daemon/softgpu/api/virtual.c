/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: reserved addresses and mappings
 *
 * A mapping that ends closes its pages to kernels, so one that still runs, which CUDA
 * leaves undefined, faults or reads zeros.
 */

#include <errno.h>

#include "api/api.h"
#include "mem/virtual.h"

static struct memory *const memory = &softgpu_device.memory;

/* Conditions of virtual.h. CUDA has no numbers of their own for them. */
static CUresult fold(int r)
{
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case -ENOMEM:
	case MEMORY_E_FULL:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
	CUdeviceptr addr, unsigned long long flags)
{
	API_CALL;
	uint64_t address;
	CUresult result;

	result = device_begin();
	if (result)
		return result;
	if (!ptr || flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = fold(virtual_reserve(memory, size, alignment, addr, &address));
	if (!result)
		*ptr = address;
	return result;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	API_CALL;
	CUresult result;

	result = device_begin();
	return result ? result : fold(virtual_free(memory, ptr, size));
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	API_CALL;
	struct physical *physical;
	CUresult result;

	result = device_begin();
	if (result)
		return result;
	/* CUDA's manual: the offset must be zero. */
	if (flags || offset)
		return CUDA_ERROR_INVALID_VALUE;
	physical = allocation_memory(handle);
	if (!physical)
		return CUDA_ERROR_INVALID_VALUE;
	result = fold(virtual_map(memory, ptr, size, offset, physical));
	physical_unref(memory, physical);
	return result;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	API_CALL;
	CUresult result;

	result = device_begin();
	return result ? result : fold(virtual_unmap(memory, ptr, size));
}

static bool is_access(CUmemAccess_flags flags)
{
	return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
	       flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
	       flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

_Static_assert(
	CU_MEM_ACCESS_FLAGS_PROT_READ == (int)SOFTGPU_READ &&
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE == (int)(SOFTGPU_READ | SOFTGPU_WRITE),
	"passed on as they are");

/* The host is given access to memory that is there only. */
static CUresult check_access(const CUmemAccessDesc *desc, bool on_host, uint32_t *devicep)
{
	CUresult result;

	if (!is_access(desc->flags))
		return CUDA_ERROR_INVALID_VALUE;
	result = location_get(&desc->location, devicep);
	if (!result && *devicep == RANGE_HOST_ACCESS && !on_host)
		return CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	API_CALL;
	CUresult result;
	uint32_t device;
	bool on_host;

	result = device_begin();
	if (result)
		return result;
	if (!desc || !count || !virtual_is_whole(memory, ptr, size, &on_host))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		result = check_access(&desc[i], on_host, &device);
	for (size_t i = 0; i < count && !result; i++) {
		location_get(&desc[i].location, &device);
		result = fold(virtual_set_access(
			memory, ptr, size, device, (uint8_t)desc[i].flags));
	}
	return result;
}

CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	API_CALL;
	uint32_t device;
	CUresult result;
	uint8_t access;

	result = device_begin();
	if (result)
		return result;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	result = location_get(location, &device);
	if (result)
		return result;
	if (!virtual_get_access(memory, ptr, device, &access))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = access;
	return CUDA_SUCCESS;
}
