/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes in the terms of both APIs
 */

#include "runtime/box.h"

bool rt_box_kinds(cudaMemcpyKind kind, CUmemorytype *dst_typep, CUmemorytype *src_typep)
{
	const CUmemorytype host = CU_MEMORYTYPE_HOST, device = CU_MEMORYTYPE_DEVICE;

	switch (kind) {
	case cudaMemcpyHostToHost:
		*dst_typep = host;
		*src_typep = host;
		return true;
	case cudaMemcpyHostToDevice:
		*dst_typep = device;
		*src_typep = host;
		return true;
	case cudaMemcpyDeviceToHost:
		*dst_typep = host;
		*src_typep = device;
		return true;
	case cudaMemcpyDeviceToDevice:
		*dst_typep = device;
		*src_typep = device;
		return true;
	case cudaMemcpyDefault:
		*dst_typep = CU_MEMORYTYPE_UNIFIED;
		*src_typep = CU_MEMORYTYPE_UNIFIED;
		return true;
	}
	return false;
}

int rt_box_fill(CUDA_MEMCPY3D *box, const struct rt_side *dst, const struct rt_side *src,
	cudaExtent extent, cudaMemcpyKind kind)
{
	CUmemorytype dst_type, src_type;

	if (!rt_box_kinds(kind, &dst_type, &src_type))
		return cudaErrorInvalidMemcpyDirection;
	/* An array is on a device, whichever. */
	if ((dst->array && dst_type == CU_MEMORYTYPE_HOST) ||
		(src->array && src_type == CU_MEMORYTYPE_HOST))
		return cudaErrorInvalidMemcpyDirection;
	*box = (CUDA_MEMCPY3D){
		.srcXInBytes = src->x,
		.srcY = src->y,
		.srcZ = src->z,
		.srcMemoryType = src->array ? CU_MEMORYTYPE_ARRAY : src_type,
		.srcArray = (CUarray)src->array,
		.srcPitch = src->pitch,
		.srcHeight = src->height,
		.dstXInBytes = dst->x,
		.dstY = dst->y,
		.dstZ = dst->z,
		.dstMemoryType = dst->array ? CU_MEMORYTYPE_ARRAY : dst_type,
		.dstArray = (CUarray)dst->array,
		.dstPitch = dst->pitch,
		.dstHeight = dst->height,
		.WidthInBytes = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
	};
	if (src_type == CU_MEMORYTYPE_HOST)
		box->srcHost = src->address;
	else
		box->srcDevice = (CUdeviceptr)src->address;
	if (dst_type == CU_MEMORYTYPE_HOST)
		box->dstHost = (void *)dst->address;
	else
		box->dstDevice = (CUdeviceptr)dst->address;
	return 0;
}

static struct rt_side side_of(cudaArray_const_t array, const cudaPos *pos,
	const cudaPitchedPtr *pitched, size_t element)
{
	return (struct rt_side){
		.address = array ? NULL : pitched->ptr,
		.pitch = array ? 0 : pitched->pitch,
		.height = array ? 0 : pitched->ysize,
		.array = array,
		.x = pos->x * (element ? element : 1),
		.y = pos->y,
		.z = pos->z,
	};
}

/* Whether rows and layers of memory do not overlap. */
static bool is_wide_enough(const struct rt_side *side, cudaExtent extent)
{
	if ((extent.height > 1 || extent.depth > 1) && side->pitch < extent.width)
		return false;
	return extent.depth <= 1 || side->height >= extent.height;
}

int rt_box_from_params(CUDA_MEMCPY3D *box, const cudaMemcpy3DParms *params,
	size_t dst_element, size_t src_element)
{
	size_t element = dst_element ? dst_element : src_element;
	cudaExtent extent = params->extent;
	struct rt_side dst, src;

	if (!extent.width || !extent.height || !extent.depth)
		return cudaErrorInvalidValue;
	/* Exactly one of array and pointer on each side. */
	if (!params->dstArray == !params->dstPtr.ptr ||
		!params->srcArray == !params->srcPtr.ptr)
		return cudaErrorInvalidValue;
	if (dst_element && src_element && dst_element != src_element)
		return cudaErrorInvalidValue;
	if (element && __builtin_mul_overflow(extent.width, element, &extent.width))
		return cudaErrorInvalidValue;
	dst = side_of(params->dstArray, &params->dstPos, &params->dstPtr, dst_element);
	src = side_of(params->srcArray, &params->srcPos, &params->srcPtr, src_element);
	/* Copies of arrays are left to the driver. */
	if (!dst.array && !src.array &&
		(!is_wide_enough(&dst, extent) || !is_wide_enough(&src, extent)))
		return cudaErrorInvalidPitchValue;
	return rt_box_fill(box, &dst, &src, extent, params->kind);
}

/* Which direction has these kinds of memory; arrays are on a device. */
static cudaMemcpyKind kind_of(CUmemorytype dst, CUmemorytype src)
{
	if (dst == CU_MEMORYTYPE_UNIFIED || src == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (src == CU_MEMORYTYPE_HOST)
		return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost
						 : cudaMemcpyHostToDevice;
	return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost
					 : cudaMemcpyDeviceToDevice;
}

void rt_box_to_params(cudaMemcpy3DParms *params, const CUDA_MEMCPY3D *box,
	size_t dst_element, size_t src_element)
{
	size_t element = dst_element ? dst_element : src_element;
	bool src_is_array = box->srcMemoryType == CU_MEMORYTYPE_ARRAY;
	bool dst_is_array = box->dstMemoryType == CU_MEMORYTYPE_ARRAY;

	*params = (cudaMemcpy3DParms){
		.srcPos = { box->srcXInBytes / (src_element ? src_element : 1), box->srcY,
			box->srcZ },
		.dstPos = { box->dstXInBytes / (dst_element ? dst_element : 1), box->dstY,
			box->dstZ },
		.extent = { box->WidthInBytes / (element ? element : 1), box->Height,
			box->Depth },
		.kind = kind_of(box->dstMemoryType, box->srcMemoryType),
	};
	if (src_is_array) {
		params->srcArray = box->srcArray;
	} else {
		params->srcPtr = (cudaPitchedPtr){
			.ptr = box->srcMemoryType == CU_MEMORYTYPE_HOST
				       ? (void *)box->srcHost
				       : (void *)box->srcDevice,
			.pitch = box->srcPitch,
			.ysize = box->srcHeight,
		};
	}
	if (dst_is_array) {
		params->dstArray = box->dstArray;
	} else {
		params->dstPtr = (cudaPitchedPtr){
			.ptr = box->dstMemoryType == CU_MEMORYTYPE_HOST
				       ? box->dstHost
				       : (void *)box->dstDevice,
			.pitch = box->dstPitch,
			.ysize = box->dstHeight,
		};
	}
}
