/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: what is known of a pointer
 */

#include <string.h>

#include "entry/pool-block.h"
#include "memory/copy.h"
#include "memory/range.h"
#include "memory/registered.h"
#include "process/context.h"
#include "process/device.h"
#include "process/shim.h"
#include "process/thread.h"

/* Pinned and registered memory, and what is created or pooled on the host. */
static bool is_host_memory(const struct shim_range *range)
{
	return shim_range_is_on_host(range) ||
	       (range->kind == SHIM_RANGE_MAPPED && range->device == SHIM_NO_DEVICE);
}

/* Writes one attribute of a range to where the program wants it. */
static CUresult answer(const struct shim_range *range, CUpointer_attribute attribute,
	uint64_t address, void *data)
{
	bool is_pinned = is_host_memory(range);
	bool is_managed = shim_range_is_managed(range);
	bool is_on_host = is_pinned || is_managed;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = shim_context_public(range->context);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data =
			is_pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = is_on_host
					 ? shim_pointer(shim_registered_on_host(address))
					 : NULL;
		return is_on_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned int *)data = range->syncs && !is_pinned;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = is_managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned int *)data = range->kind == SHIM_RANGE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(unsigned int *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data =
			range->is_exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
					     : CU_MEM_HANDLE_TYPE_NONE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = range->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		/* A managed variable of a library is no device's, nor is memory that is
		 * created on the host: the first has it. */
		*(int *)data = range->context ? range->context->device
			       : is_pinned    ? 0
					      : range->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = range->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = range->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)data = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = range->kind == SHIM_RANGE_MAPPED
						? (CUmemoryPool)(uintptr_t)range->owner
						: NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Unknown memory: all attributes are 0, and the device ordinal is negative. Return: false
 * for an unknown attribute. */
static bool answer_unknown(CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(unsigned int *)data = 0;
		return true;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(uint64_t *)data = 0;
		return true;
	default:
		return false;
	}
}

/* Finds what is known of an address. *addressp becomes the device's if the program has
 * registered the memory. */
static bool find(CUdeviceptr *addressp, struct shim_range *range)
{
	*addressp = shim_registered_reach(*addressp, 1);
	return shim_pool_find_range(*addressp, range);
}

CUresult shim_cuPointerGetAttribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct shim_range range;

	SHIM_CHECK_READY();
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find(&ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return answer(&range, attribute, ptr, data);
}

/* Unlike the call for one, this succeeds for any pointer. */
CUresult shim_cuPointerGetAttributes(unsigned int numAttributes,
	CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct shim_range range;
	bool is_known;

	SHIM_CHECK_READY();
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	is_known = find(&ptr, &range);
	for (unsigned int i = 0; i < numAttributes; i++) {
		if (!data[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (!answer_unknown(attributes[i], data[i]))
			return attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS
				       ? CUDA_ERROR_NOT_SUPPORTED
				       : CUDA_ERROR_INVALID_VALUE;
		if (is_known)
			answer(&range, attributes[i], ptr, data[i]);
	}
	return CUDA_SUCCESS;
}

/* One attribute can be set, of memory that the device has. */
CUresult shim_cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct shim_range range;

	SHIM_CHECK_READY();
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find(&ptr, &range) || is_host_memory(&range) ||
		!shim_range_set_syncs(ptr, *(const unsigned int *)value != 0))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
