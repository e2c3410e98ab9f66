/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of pointers
 */

#include "api/api.h"

/* An address and what is there. */
struct pointer {
	bool is_known;
	uint64_t address;
	struct range range;
};

/* Memory on the host that is mapped at reserved addresses. */
static bool is_mapped_host(const struct pointer *pointer)
{
	return pointer->range.kind == RANGE_MAPPED &&
	       pointer->range.flags & RANGE_ON_HOST;
}

static CUresult pointer_handle_types(const struct pointer *pointer, void *data)
{
	bool is_shared = pointer->range.kind == RANGE_MAPPED &&
			 pointer->range.flags & RANGE_SHARED;

	*(unsigned long long *)data = is_shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE;
	return CUDA_SUCCESS;
}

static CUresult pointer_context(const struct pointer *pointer, void *data)
{
	*(CUcontext *)data = pointer->range.owner;
	return CUDA_SUCCESS;
}

static CUresult pointer_type(const struct pointer *pointer, void *data)
{
	bool is_host = pointer->range.kind == RANGE_HOST ||
		       pointer->range.kind == RANGE_REGISTERED || is_mapped_host(pointer);

	*(unsigned int *)data = is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	return CUDA_SUCCESS;
}

static CUresult pointer_host(const struct pointer *pointer, void *data)
{
	bool is_visible = pointer->range.kind == RANGE_HOST ||
			  pointer->range.kind == RANGE_REGISTERED ||
			  pointer->range.kind == RANGE_MANAGED || is_mapped_host(pointer);

	*(void **)data = is_visible ? (void *)(uintptr_t)pointer->address : NULL;
	return is_visible ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool exists(CUpointer_attribute attribute)
{
	return attribute > 0 &&
	       attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

static CUresult pointer_query(
	const struct pointer *pointer, CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return pointer_context(pointer, data);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return pointer_type(pointer, data);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = pointer->address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return pointer_host(pointer, data);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(unsigned int *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return pointer_handle_types(pointer, data);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = pointer->range.id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = pointer->range.kind == RANGE_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = (int)pointer->range.device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = pointer->range.address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = pointer->range.size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)data = 1;
		return CUDA_SUCCESS;
	default:
		return exists(attribute) ? CUDA_ERROR_NOT_SUPPORTED
					 : CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult pointer_find(struct pointer *pointer, CUdeviceptr address)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	pointer->address = address;
	pointer->is_known = memory_find(&softgpu_device.memory, address, &pointer->range);
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	API_CALL;
	struct pointer pointer;
	CUresult result;

	result = pointer_find(&pointer, ptr);
	if (result)
		return result;
	if (!data || !pointer.is_known)
		return CUDA_ERROR_INVALID_VALUE;
	return pointer_query(&pointer, attribute, data);
}

/* An attribute that does not apply has a special value and is not an error. */
static void pointer_absent(CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)data = 0;
		break;
	default:
		*(uint64_t *)data = 0;
		break;
	}
}

CUresult cuPointerGetAttributes(unsigned int numAttributes,
	CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	API_CALL;
	struct pointer pointer;
	CUresult result;

	result = pointer_find(&pointer, ptr);
	if (result)
		return result;
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < numAttributes; i++) {
		if (!exists(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
		if (!pointer.is_known) {
			pointer_absent(attributes[i], data[i]);
			continue;
		}
		result = pointer_query(&pointer, attributes[i], data[i]);
		if (result == CUDA_ERROR_NOT_SUPPORTED)
			return result;
	}
	return CUDA_SUCCESS;
}
