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

/* A local error comes after the errors that every call may return. */
static CUresult invalid(enum vgpu_call id)
{
	struct shim_call call = SHIM_CALL_INIT(id);

	return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
}

static CUresult begin(enum vgpu_call id)
{
	struct shim_call call = SHIM_CALL_INIT(id);

	return shim_call_check(&call);
}

static uint64_t address(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static CUresult copy(uint64_t to, uint64_t from, size_t size, CUstream stream, bool waits)
{
	CUresult result = begin(VGPU_CALL_cuMemcpyDtoDAsync_v2);

	return result == CUDA_SUCCESS ? shim_copy(to, from, size, stream, waits) : result;
}

static CUresult copy_to_device(
	CUdeviceptr to, const void *from, size_t size, CUstream stream, bool waits)
{
	if (size && (!from || shim_place(to) == SHIM_PLACE_PAGEABLE))
		return invalid(VGPU_CALL_cuMemcpyHtoDAsync_v2);
	return copy(to, address(from), size, stream, waits);
}

static CUresult copy_from_device(
	void *to, CUdeviceptr from, size_t size, CUstream stream, bool waits)
{
	if (size && (!to || shim_place(from) == SHIM_PLACE_PAGEABLE))
		return invalid(VGPU_CALL_cuMemcpyDtoHAsync_v2);
	return copy(address(to), from, size, stream, waits);
}

static CUresult copy_within_device(
	CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	if (size && (shim_place(to) == SHIM_PLACE_PAGEABLE ||
			    shim_place(from) == SHIM_PLACE_PAGEABLE))
		return invalid(VGPU_CALL_cuMemcpyDtoDAsync_v2);
	return copy(to, from, size, stream, true);
}

CUresult shim_cuMemcpyHtoD_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_to_device(dstDevice, srcHost, ByteCount, NULL, true);
}

CUresult shim_cuMemcpyHtoD_v2_ptds(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_to_device(dstDevice, srcHost, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult shim_cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_to_device(dstDevice, srcHost, ByteCount, hStream, false);
}

CUresult shim_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_from_device(dstHost, srcDevice, ByteCount, NULL, true);
}

CUresult shim_cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_from_device(
		dstHost, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult shim_cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_from_device(dstHost, srcDevice, ByteCount, hStream, false);
}

CUresult shim_cuMemcpyDtoD_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_within_device(dstDevice, srcDevice, ByteCount, NULL);
}

CUresult shim_cuMemcpyDtoD_v2_ptds(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_within_device(dstDevice, srcDevice, ByteCount, CU_STREAM_PER_THREAD);
}

CUresult shim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy(dst, src, ByteCount, NULL, true);
}

CUresult shim_cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy(dst, src, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult shim_cuMemcpyAsync(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy(dst, src, ByteCount, hStream, false);
}
