/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes in the terms of both APIs
 */

#include <string.h>

#include "test.h"

#include "runtime/box.h"

static char host[64], device[64];
static cudaArray_t array = (cudaArray_t)0x100;

static cudaMemcpy3DParms params_of(cudaMemcpyKind kind)
{
	return (cudaMemcpy3DParms){
		.srcPtr = { host, 32, 32, 4 },
		.srcPos = { 1, 2, 3 },
		.dstPtr = { device, 48, 48, 5 },
		.dstPos = { 4, 5, 6 },
		.extent = { 16, 3, 2 },
		.kind = kind,
	};
}

TEST(memory_is_counted_in_bytes)
{
	cudaMemcpy3DParms params = params_of(cudaMemcpyHostToDevice), again;
	CUDA_MEMCPY3D box;

	check_eq(rt_box_from_params(&box, &params, 0, 0), 0);
	check_eq(box.srcMemoryType, CU_MEMORYTYPE_HOST);
	check_eq(box.dstMemoryType, CU_MEMORYTYPE_DEVICE);
	check(box.srcHost == host && box.dstDevice == (CUdeviceptr)device);
	check_eq(box.srcXInBytes, 1);
	check_eq(box.dstZ, 6);
	check_eq(box.srcPitch, 32);
	check_eq(box.dstHeight, 5);
	check_eq(box.WidthInBytes, 16);
	check_eq(box.Depth, 2);
	rt_box_to_params(&again, &box, 0, 0);
	check(again.srcPtr.ptr == host && again.dstPtr.ptr == device);
	check_eq(again.srcPtr.pitch, 32);
	check_eq(again.dstPos.x, 4);
	check_eq(again.extent.width, 16);
	check_eq(again.kind, cudaMemcpyHostToDevice);
}

TEST(arrays_are_counted_in_elements)
{
	cudaMemcpy3DParms params = params_of(cudaMemcpyHostToDevice), again;
	CUDA_MEMCPY3D box;

	params.dstPtr.ptr = NULL;
	params.dstArray = array;
	check_eq(rt_box_from_params(&box, &params, 8, 0), 0);
	check_eq(box.dstMemoryType, CU_MEMORYTYPE_ARRAY);
	check(box.dstArray == array);
	check_eq(box.dstXInBytes, 4 * 8);
	check_eq(box.srcXInBytes, 1);
	check_eq(box.WidthInBytes, 16 * 8);
	rt_box_to_params(&again, &box, 8, 0);
	check(again.dstArray == array && !again.dstPtr.ptr);
	check_eq(again.extent.width, 16);
	check_eq(again.dstPos.x, 4);
	check_eq(again.kind, cudaMemcpyHostToDevice);
	/* Elements of another size; a width whose bytes are too many. */
	params.srcPtr.ptr = NULL;
	params.srcArray = array;
	params.kind = cudaMemcpyDeviceToDevice;
	check_eq(rt_box_from_params(&box, &params, 8, 4), cudaErrorInvalidValue);
	params.extent.width = SIZE_MAX / 4;
	check_eq(rt_box_from_params(&box, &params, 8, 8), cudaErrorInvalidValue);
}

TEST(each_side_is_either_memory_or_an_array)
{
	cudaMemcpy3DParms params = params_of(cudaMemcpyDeviceToDevice);
	CUDA_MEMCPY3D box;

	params.dstArray = array;
	check_eq(rt_box_from_params(&box, &params, 4, 0), cudaErrorInvalidValue);
	params = params_of(cudaMemcpyDeviceToDevice);
	params.srcPtr.ptr = NULL;
	check_eq(rt_box_from_params(&box, &params, 0, 0), cudaErrorInvalidValue);
}

TEST(directions_are_checked)
{
	cudaMemcpy3DParms params = params_of((cudaMemcpyKind)77);
	CUmemorytype dst, src;
	CUDA_MEMCPY3D box;

	check_eq(
		rt_box_from_params(&box, &params, 0, 0), cudaErrorInvalidMemcpyDirection);
	/* No array is in the host's memory. */
	params = params_of(cudaMemcpyDeviceToHost);
	params.dstPtr.ptr = NULL;
	params.dstArray = array;
	check_eq(
		rt_box_from_params(&box, &params, 4, 0), cudaErrorInvalidMemcpyDirection);
	for (int kind = 0; kind <= cudaMemcpyDefault; kind++) {
		cudaMemcpy3DParms again;

		check(rt_box_kinds((cudaMemcpyKind)kind, &dst, &src));
		params = params_of((cudaMemcpyKind)kind);
		check_eq(rt_box_from_params(&box, &params, 0, 0), 0);
		rt_box_to_params(&again, &box, 0, 0);
		check_eq((int)again.kind, kind);
		check(again.srcPtr.ptr == host && again.dstPtr.ptr == device);
	}
	check(!rt_box_kinds((cudaMemcpyKind)-1, &dst, &src));
}

TEST(rows_and_layers_do_not_overlap)
{
	cudaMemcpy3DParms params = params_of(cudaMemcpyHostToDevice);
	CUDA_MEMCPY3D box;

	params.srcPtr.pitch = 8;
	check_eq(rt_box_from_params(&box, &params, 0, 0), cudaErrorInvalidPitchValue);
	params.extent = (cudaExtent){ 16, 1, 1 };
	check_eq(rt_box_from_params(&box, &params, 0, 0), 0);
	params = params_of(cudaMemcpyHostToDevice);
	params.dstPtr.ysize = 2;
	check_eq(rt_box_from_params(&box, &params, 0, 0), cudaErrorInvalidPitchValue);
	params.extent.depth = 0;
	check_eq(rt_box_from_params(&box, &params, 0, 0), cudaErrorInvalidValue);
}
