/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: fills
 *
 * A fill of device memory is asynchronous unless the program has set SYNC_MEMOPS; one of
 * pinned or managed memory is complete when the call returns. There is no reply, so
 * errors are found here: a rectangle that is not within an allocation.
 */

#include "vgpu/checked.h"
#include "vgpu/g-driver.pb-c.h"

#include "memory/copy.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/stream.h"

static CUresult finish(CUresult result, CUdeviceptr address, CUstream stream)
{
	if (result == CUDA_SUCCESS && (shim_copy_place(address) == SHIM_PLACE_ARENA ||
					      shim_range_syncs(address, address)))
		return shim_stream_synchronize(stream);
	return result;
}

/* Whether a rectangle of elements can be filled. Returns: the error or success. */
static CUresult check_rectangle(struct shim_call *call, CUdeviceptr address, size_t pitch,
	size_t width, size_t element, size_t height)
{
	struct shim_side side = { .address = address, .pitch = pitch, .rows = height };
	uint64_t size;

	if (address % element || (pitch % element && height > 1) ||
		!vgpu_mul_u64(width, element, &size) || (pitch < size && height > 1))
		return CUDA_ERROR_INVALID_VALUE;
	return shim_side_is_held(&side, size, height, 1, &call->wants_result)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* All three forms of a fill in two dimensions name their fields alike. */
#define FILL_2D(_call, _request, _address, _pitch, _field, _value, _element, _width,     \
	_height, _stream)                                                                \
	({                                                                               \
		CUresult result_ = check_rectangle(                                      \
			(_call), (_address), (_pitch), (_width), (_element), (_height)); \
		(_request)->dst_device = (_address);                                     \
		(_request)->dst_pitch = (_pitch);                                        \
		(_request)->_field = (_value);                                           \
		(_request)->width = (_width);                                            \
		(_request)->height = (_height);                                          \
		(_request)->h_stream = (uint64_t)(uintptr_t)(_stream);                   \
		result_ == CUDA_SUCCESS                                                  \
			? shim_call_async((_call), &(_request)->base, (_stream))         \
			: shim_call_error((_call), result_);                             \
	})

CUresult shim_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	Vgpu__CuMemsetD2D8AsyncRequest request =
		VGPU__CU_MEMSET_D2_D8_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemsetD2D8Async);

	return FILL_2D(
		&call, &request, dstDevice, dstPitch, uc, uc, 1, Width, Height, hStream);
}

CUresult shim_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned short us, size_t Width, size_t Height, CUstream hStream)
{
	Vgpu__CuMemsetD2D16AsyncRequest request =
		VGPU__CU_MEMSET_D2_D16_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemsetD2D16Async);

	return FILL_2D(
		&call, &request, dstDevice, dstPitch, us, us, 2, Width, Height, hStream);
}

CUresult shim_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream hStream)
{
	Vgpu__CuMemsetD2D32AsyncRequest request =
		VGPU__CU_MEMSET_D2_D32_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemsetD2D32Async);

	return FILL_2D(
		&call, &request, dstDevice, dstPitch, ui, ui, 4, Width, Height, hStream);
}

CUresult shim_cuMemsetD8_v2_on(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream stream)
{
	return finish(shim_cuMemsetD8Async(dstDevice, uc, N, stream), dstDevice, stream);
}

CUresult shim_cuMemsetD16_v2_on(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream stream)
{
	return finish(shim_cuMemsetD16Async(dstDevice, us, N, stream), dstDevice, stream);
}

CUresult shim_cuMemsetD32_v2_on(
	CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream stream)
{
	return finish(shim_cuMemsetD32Async(dstDevice, ui, N, stream), dstDevice, stream);
}

CUresult shim_cuMemsetD2D8_v2_on(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream stream)
{
	return finish(
		shim_cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, stream),
		dstDevice, stream);
}

CUresult shim_cuMemsetD2D16_v2_on(CUdeviceptr dstDevice, size_t dstPitch,
	unsigned short us, size_t Width, size_t Height, CUstream stream)
{
	return finish(
		shim_cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, stream),
		dstDevice, stream);
}

CUresult shim_cuMemsetD2D32_v2_on(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream stream)
{
	return finish(
		shim_cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, stream),
		dstDevice, stream);
}
