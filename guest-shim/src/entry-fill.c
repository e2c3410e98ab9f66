/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: fills
 *
 * A fill of device memory is never waited for; one of pinned host memory is done when
 * the call returns.
 */

#include "copy.h"
#include "shim.h"
#include "stream.h"

static CUresult finish(CUresult result, CUdeviceptr address, CUstream stream)
{
	if (result == CUDA_SUCCESS && shim_place(address) == SHIM_PLACE_ARENA)
		return shim_stream_synchronize(stream);
	return result;
}

SHIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return finish(cuMemsetD8Async(dstDevice, uc, N, NULL), dstDevice, NULL);
}

SHIM_EXPORT CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return finish(cuMemsetD8Async(dstDevice, uc, N, CU_STREAM_PER_THREAD), dstDevice,
		CU_STREAM_PER_THREAD);
}

SHIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return finish(cuMemsetD16Async(dstDevice, us, N, NULL), dstDevice, NULL);
}

SHIM_EXPORT CUresult cuMemsetD16_v2_ptds(
	CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return finish(cuMemsetD16Async(dstDevice, us, N, CU_STREAM_PER_THREAD), dstDevice,
		CU_STREAM_PER_THREAD);
}

SHIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return finish(cuMemsetD32Async(dstDevice, ui, N, NULL), dstDevice, NULL);
}

SHIM_EXPORT CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return finish(cuMemsetD32Async(dstDevice, ui, N, CU_STREAM_PER_THREAD), dstDevice,
		CU_STREAM_PER_THREAD);
}

SHIM_EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned char uc, size_t Width, size_t Height)
{
	return finish(cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, NULL),
		dstDevice, NULL);
}

SHIM_EXPORT CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned char uc, size_t Width, size_t Height)
{
	return finish(cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height,
			      CU_STREAM_PER_THREAD),
		dstDevice, CU_STREAM_PER_THREAD);
}

SHIM_EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned short us, size_t Width, size_t Height)
{
	return finish(cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, NULL),
		dstDevice, NULL);
}

SHIM_EXPORT CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned short us, size_t Width, size_t Height)
{
	return finish(cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height,
			      CU_STREAM_PER_THREAD),
		dstDevice, CU_STREAM_PER_THREAD);
}

SHIM_EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned int ui, size_t Width, size_t Height)
{
	return finish(cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, NULL),
		dstDevice, NULL);
}

SHIM_EXPORT CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned int ui, size_t Width, size_t Height)
{
	return finish(cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height,
			      CU_STREAM_PER_THREAD),
		dstDevice, CU_STREAM_PER_THREAD);
}
