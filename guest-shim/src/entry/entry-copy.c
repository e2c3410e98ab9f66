/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: copies
 *
 * The synchronous calls use the asynchronous ones: the default stream, or the per-thread
 * default stream for programs that were built for it, gives them their order.
 */

#include "vgpu/g-calls.h"

#include "memory/copy.h"
#include "process/call.h"

static CUresult copy(uint64_t to, uint64_t from, size_t size, CUstream stream, bool waits)
{
	CUresult result = shim_call_check(VGPU_CALL_cuMemcpyDtoDAsync_v2);

	return result == CUDA_SUCCESS ? shim_copy(to, from, size, stream, waits) : result;
}

static CUresult copy_to_device(
	CUdeviceptr to, const void *from, size_t size, CUstream stream, bool waits)
{
	if (size && (!from || shim_copy_place(to) == SHIM_PLACE_PAGEABLE))
		return shim_call_invalid(VGPU_CALL_cuMemcpyHtoDAsync_v2);
	return copy(to, shim_address(from), size, stream, waits);
}

static CUresult copy_from_device(
	void *to, CUdeviceptr from, size_t size, CUstream stream, bool waits)
{
	if (size && (!to || shim_copy_place(from) == SHIM_PLACE_PAGEABLE))
		return shim_call_invalid(VGPU_CALL_cuMemcpyDtoHAsync_v2);
	return copy(shim_address(to), from, size, stream, waits);
}

static CUresult copy_within_device(
	CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	if (size && (shim_copy_place(to) == SHIM_PLACE_PAGEABLE ||
			    shim_copy_place(from) == SHIM_PLACE_PAGEABLE))
		return shim_call_invalid(VGPU_CALL_cuMemcpyDtoDAsync_v2);
	return copy(to, from, size, stream, true);
}

CUresult shim_cuMemcpyHtoD_v2_on(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream stream)
{
	return copy_to_device(dstDevice, srcHost, ByteCount, stream, true);
}

CUresult shim_cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_to_device(dstDevice, srcHost, ByteCount, hStream, false);
}

CUresult shim_cuMemcpyDtoH_v2_on(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream stream)
{
	return copy_from_device(dstHost, srcDevice, ByteCount, stream, true);
}

CUresult shim_cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_from_device(dstHost, srcDevice, ByteCount, hStream, false);
}

CUresult shim_cuMemcpyDtoD_v2_on(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream stream)
{
	return copy_within_device(dstDevice, srcDevice, ByteCount, stream);
}

CUresult shim_cuMemcpy_on(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream stream)
{
	return copy(dst, src, ByteCount, stream, true);
}

CUresult shim_cuMemcpyAsync(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy(dst, src, ByteCount, hStream, false);
}
