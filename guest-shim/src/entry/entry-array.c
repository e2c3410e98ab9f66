/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: arrays, and linear copies from and to them
 */

#include "vgpu/g-driver.pb-c.h"

#include "memory/copy-array.h"
#include "memory/copy.h"
#include "process/call.h"
#include "process/device.h"

static void *as_handle(uint64_t handle)
{
	return (void *)(uintptr_t)handle;
}

/* Messages name the fields of a descriptor alike. */
#define SET_DESCRIPTOR(_request, _descriptor)                                            \
	do {                                                                             \
		(_request)->width = (_descriptor)->Width;                                \
		(_request)->height = (_descriptor)->Height;                              \
		(_request)->depth = (_descriptor)->Depth;                                \
		(_request)->format = (_descriptor)->Format;                              \
		(_request)->num_channels = (_descriptor)->NumChannels;                   \
		(_request)->flags = (_descriptor)->Flags;                                \
	} while (0)

CUresult shim_cuArray3DCreate_v2(
	CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	Vgpu__CuArray3DCreateV2Request request = VGPU__CU_ARRAY3_DCREATE_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuArray3DCreate_v2);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pHandle || !pAllocateArray)
		return shim_call_invalid(VGPU_CALL_cuArray3DCreate_v2);
	SET_DESCRIPTOR(&request, pAllocateArray);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_array3_dcreate_v2_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*pHandle = as_handle(
			((const Vgpu__CuArray3DCreateV2Reply *)reply)->p_handle);
	return result;
}

CUresult shim_cuArrayCreate_v2(
	CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {};

	if (!pAllocateArray)
		return shim_call_invalid(VGPU_CALL_cuArray3DCreate_v2);
	descriptor.Width = pAllocateArray->Width;
	descriptor.Height = pAllocateArray->Height;
	descriptor.Format = pAllocateArray->Format;
	descriptor.NumChannels = pAllocateArray->NumChannels;
	return shim_cuArray3DCreate_v2(pHandle, &descriptor);
}

CUresult shim_cuArray3DGetDescriptor_v2(
	CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	Vgpu__CuArray3DGetDescriptorV2Request request =
		VGPU__CU_ARRAY3_DGET_DESCRIPTOR_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuArray3DGetDescriptor_v2);
	const Vgpu__CuArray3DGetDescriptorV2Reply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!pArrayDescriptor)
		return shim_call_invalid(VGPU_CALL_cuArray3DGetDescriptor_v2);
	request.h_array = (uint64_t)(uintptr_t)hArray;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_array3_dget_descriptor_v2_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuArray3DGetDescriptorV2Reply *)message;
	*pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = reply->width,
		.Height = reply->height,
		.Depth = reply->depth,
		.Format = reply->format,
		.NumChannels = reply->num_channels,
		.Flags = reply->flags,
	};
	return CUDA_SUCCESS;
}

CUresult shim_cuArrayGetDescriptor_v2(
	CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUresult result;

	result = shim_cuArray3DGetDescriptor_v2(
		pArrayDescriptor ? &descriptor : NULL, hArray);
	if (result == CUDA_SUCCESS)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){
			.Width = descriptor.Width,
			.Height = descriptor.Height,
			.Format = descriptor.Format,
			.NumChannels = descriptor.NumChannels,
		};
	return result;
}

/*
 * First forms, whose descriptors have 32 bits
 */

CUresult shim_cuArray3DCreate(
	CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {};

	if (!pAllocateArray)
		return shim_call_invalid(VGPU_CALL_cuArray3DCreate_v2);
	descriptor.Width = pAllocateArray->Width;
	descriptor.Height = pAllocateArray->Height;
	descriptor.Depth = pAllocateArray->Depth;
	descriptor.Format = pAllocateArray->Format;
	descriptor.NumChannels = pAllocateArray->NumChannels;
	descriptor.Flags = pAllocateArray->Flags;
	return shim_cuArray3DCreate_v2(pHandle, &descriptor);
}

CUresult shim_cuArrayCreate(
	CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {};

	if (!pAllocateArray)
		return shim_call_invalid(VGPU_CALL_cuArray3DCreate_v2);
	descriptor.Width = pAllocateArray->Width;
	descriptor.Height = pAllocateArray->Height;
	descriptor.Format = pAllocateArray->Format;
	descriptor.NumChannels = pAllocateArray->NumChannels;
	return shim_cuArray3DCreate_v2(pHandle, &descriptor);
}

CUresult shim_cuArray3DGetDescriptor(
	CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUresult result;

	result = shim_cuArray3DGetDescriptor_v2(
		pArrayDescriptor ? &descriptor : NULL, hArray);
	if (result == CUDA_SUCCESS)
		*pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){
			.Width = (unsigned int)descriptor.Width,
			.Height = (unsigned int)descriptor.Height,
			.Depth = (unsigned int)descriptor.Depth,
			.Format = descriptor.Format,
			.NumChannels = descriptor.NumChannels,
			.Flags = descriptor.Flags,
		};
	return result;
}

CUresult shim_cuArrayGetDescriptor(
	CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUresult result;

	result = shim_cuArray3DGetDescriptor_v2(
		pArrayDescriptor ? &descriptor : NULL, hArray);
	if (result == CUDA_SUCCESS)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR_v1){
			.Width = (unsigned int)descriptor.Width,
			.Height = (unsigned int)descriptor.Height,
			.Format = descriptor.Format,
			.NumChannels = descriptor.NumChannels,
		};
	return result;
}

CUresult shim_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	Vgpu__CuMipmappedArrayCreateRequest request =
		VGPU__CU_MIPMAPPED_ARRAY_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMipmappedArrayCreate);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pHandle || !pMipmappedArrayDesc)
		return shim_call_invalid(VGPU_CALL_cuMipmappedArrayCreate);
	SET_DESCRIPTOR(&request, pMipmappedArrayDesc);
	request.num_mipmap_levels = numMipmapLevels;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mipmapped_array_create_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*pHandle = as_handle(
			((const Vgpu__CuMipmappedArrayCreateReply *)reply)->p_handle);
	return result;
}

/*
 * Memory requirements of an array to which memory is bound later
 */

#define GET_SPARSE(_reply, _properties)                                                  \
	do {                                                                             \
		*(_properties) = (CUDA_ARRAY_SPARSE_PROPERTIES){                         \
			.tileExtent = { (_reply)->tile_width, (_reply)->tile_height,     \
				(_reply)->tile_depth },                                  \
			.miptailFirstLevel = (_reply)->tail_first_level,                 \
			.miptailSize = (_reply)->tail_size,                              \
			.flags = (_reply)->flags,                                        \
		};                                                                       \
	} while (0)

CUresult shim_cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	Vgpu__CuArrayGetSparsePropertiesRequest request =
		VGPU__CU_ARRAY_GET_SPARSE_PROPERTIES_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuArrayGetSparseProperties);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!sparseProperties)
		return shim_call_invalid(VGPU_CALL_cuArrayGetSparseProperties);
	request.array = (uint64_t)(uintptr_t)array;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_array_get_sparse_properties_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		GET_SPARSE((const Vgpu__CuArrayGetSparsePropertiesReply *)reply,
			sparseProperties);
	return result;
}

CUresult shim_cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	Vgpu__CuMipmappedArrayGetSparsePropertiesRequest request =
		VGPU__CU_MIPMAPPED_ARRAY_GET_SPARSE_PROPERTIES_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuMipmappedArrayGetSparseProperties);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!sparseProperties)
		return shim_call_invalid(VGPU_CALL_cuMipmappedArrayGetSparseProperties);
	request.mipmap = (uint64_t)(uintptr_t)mipmap;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mipmapped_array_get_sparse_properties_reply__descriptor,
		&reply);
	if (result == CUDA_SUCCESS)
		GET_SPARSE((const Vgpu__CuMipmappedArrayGetSparsePropertiesReply *)reply,
			sparseProperties);
	return result;
}

CUresult shim_cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
	CUdevice device)
{
	Vgpu__CuArrayGetMemoryRequirementsRequest request =
		VGPU__CU_ARRAY_GET_MEMORY_REQUIREMENTS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuArrayGetMemoryRequirements);
	const Vgpu__CuArrayGetMemoryRequirementsReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!memoryRequirements)
		return shim_call_invalid(VGPU_CALL_cuArrayGetMemoryRequirements);
	request.array = (uint64_t)(uintptr_t)array;
	request.device = shim_device_to_host(device);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_array_get_memory_requirements_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuArrayGetMemoryRequirementsReply *)message;
	*memoryRequirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
		.size = reply->size,
		.alignment = reply->alignment,
	};
	return CUDA_SUCCESS;
}

CUresult shim_cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
	CUdevice device)
{
	Vgpu__CuMipmappedArrayGetMemoryRequirementsRequest request =
		VGPU__CU_MIPMAPPED_ARRAY_GET_MEMORY_REQUIREMENTS_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuMipmappedArrayGetMemoryRequirements);
	const Vgpu__CuMipmappedArrayGetMemoryRequirementsReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!memoryRequirements)
		return shim_call_invalid(VGPU_CALL_cuMipmappedArrayGetMemoryRequirements);
	request.mipmap = (uint64_t)(uintptr_t)mipmap;
	request.device = shim_device_to_host(device);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mipmapped_array_get_memory_requirements_reply__descriptor,
		&message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMipmappedArrayGetMemoryRequirementsReply *)message;
	*memoryRequirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
		.size = reply->size,
		.alignment = reply->alignment,
	};
	return CUDA_SUCCESS;
}

/*
 * Linear copies: a part of the first row
 */

static CUresult copy(CUarray to, uint64_t to_at, CUarray from, uint64_t from_at,
	uint64_t size, CUstream stream, bool waits)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuCopyArray);
	struct shim_array_box box = {
		.to = to,
		.from = from,
		.box = { .width = size, .height = 1, .depth = 1 },
	};
	CUresult result = shim_call_check(call.id);

	*(to ? &box.box.to.x : &box.box.to.address) = to_at;
	*(from ? &box.box.from.x : &box.box.from.address) = from_at;
	box.box.to.pitch = box.box.from.pitch = size;
	box.box.to.rows = box.box.from.rows = 1;
	return result == CUDA_SUCCESS ? shim_copy_array(&box, stream, waits) : result;
}

static CUresult copy_to_array(CUarray to, uint64_t offset, uint64_t from, uint64_t size,
	CUstream stream, bool waits, bool is_device)
{
	if (!to || (size && !from) ||
		(is_device && shim_copy_place(from) == SHIM_PLACE_PAGEABLE))
		return shim_call_invalid(VGPU_CALL_vgpuCopyArray);
	return copy(to, offset, NULL, from, size, stream, waits);
}

static CUresult copy_from_array(uint64_t to, CUarray from, uint64_t offset, uint64_t size,
	CUstream stream, bool waits, bool is_device)
{
	if (!from || (size && !to) ||
		(is_device && shim_copy_place(to) == SHIM_PLACE_PAGEABLE))
		return shim_call_invalid(VGPU_CALL_vgpuCopyArray);
	return copy(NULL, to, from, offset, size, stream, waits);
}

static CUresult copy_between(CUarray to, uint64_t to_at, CUarray from, uint64_t from_at,
	uint64_t size, CUstream stream)
{
	if (!to || !from)
		return shim_call_invalid(VGPU_CALL_vgpuCopyArray);
	return copy(to, to_at, from, from_at, size, stream, true);
}

CUresult shim_cuMemcpyHtoA_v2_on(CUarray dstArray, size_t dstOffset, const void *srcHost,
	size_t ByteCount, CUstream stream)
{
	return copy_to_array(dstArray, dstOffset, shim_address(srcHost), ByteCount,
		stream, true, false);
}

CUresult shim_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset,
	const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_to_array(dstArray, dstOffset, shim_address(srcHost), ByteCount,
		hStream, false, false);
}

CUresult shim_cuMemcpyAtoH_v2_on(void *dstHost, CUarray srcArray, size_t srcOffset,
	size_t ByteCount, CUstream stream)
{
	return copy_from_array(shim_address(dstHost), srcArray, srcOffset, ByteCount,
		stream, true, false);
}

CUresult shim_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
	size_t ByteCount, CUstream hStream)
{
	return copy_from_array(shim_address(dstHost), srcArray, srcOffset, ByteCount,
		hStream, false, false);
}

CUresult shim_cuMemcpyDtoA_v2_on(CUarray dstArray, size_t dstOffset,
	CUdeviceptr srcDevice, size_t ByteCount, CUstream stream)
{
	return copy_to_array(
		dstArray, dstOffset, srcDevice, ByteCount, stream, true, true);
}

CUresult shim_cuMemcpyAtoD_v2_on(CUdeviceptr dstDevice, CUarray srcArray,
	size_t srcOffset, size_t ByteCount, CUstream stream)
{
	return copy_from_array(
		dstDevice, srcArray, srcOffset, ByteCount, stream, true, true);
}

CUresult shim_cuMemcpyAtoA_v2_on(CUarray dstArray, size_t dstOffset, CUarray srcArray,
	size_t srcOffset, size_t ByteCount, CUstream stream)
{
	return copy_between(dstArray, dstOffset, srcArray, srcOffset, ByteCount, stream);
}
