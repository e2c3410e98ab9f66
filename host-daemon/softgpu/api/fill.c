/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills: cuMemset and its kind
 */

#include "vgpu/checked.h"

#include "api/capture.h"
#include "api/copy.h"

static CUresult fill_check(const struct sched_fill *fill)
{
	uint64_t row, size;

	if (fill->to % fill->element || !vgpu_mul_u64(fill->width, fill->element, &row) ||
		(fill->height > 1 &&
			(fill->pitch < row || fill->pitch % fill->element)) ||
		!vgpu_mul_u64(fill->pitch, fill->height - 1, &size) ||
		!vgpu_add_u64(size, row, &size) ||
		!context_reaches(NULL, fill->to, size, SOFTGPU_WRITE))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult fill_prepare(struct sched_fill *to, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	*to = (struct sched_fill){
		.to = fill->dst,
		.width = fill->width,
		.height = fill->height,
		.pitch = fill->pitch,
		.element = fill->elementSize,
		.value = fill->value,
	};
	if (!fill->width || !fill->height ||
		(fill->elementSize != 1 && fill->elementSize != 2 &&
			fill->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	return fill_check(to);
}

static CUresult fill_capture(struct sched_stream *stream, const struct sched_fill *fill)
{
	const CUDA_MEMSET_NODE_PARAMS params = {
		.dst = fill->to,
		.pitch = fill->pitch,
		.value = fill->value,
		.elementSize = fill->element,
		.width = fill->width,
		.height = fill->height,
	};
	struct graph_work work;
	CUresult result;

	result = work_fill(&work, &params, stream_context(stream));
	return result ? result : capture_add(stream, &work);
}

static CUresult fill_submit(CUstream handle, const struct sched_fill *fill, bool wait)
{
	struct sched_op op = { .kind = SCHED_FILL, .fill = *fill };
	struct sched_stream *stream;
	CUresult result;

	result = stream_get_work(handle, &stream);
	if (result)
		return result;
	if (!fill->width || !fill->height)
		return CUDA_SUCCESS;
	if (stream_is_captured(stream))
		return fill_capture(stream, fill);
	result = fill_check(fill);
	return result ? result : (CUresult)sched_submit(stream, &op, wait);
}

static CUresult fill_linear(CUstream stream, CUdeviceptr to, uint32_t value,
	uint32_t element, size_t n, bool wait)
{
	struct sched_fill fill = {
		.to = to,
		.width = n,
		.height = 1,
		.element = element,
		.value = value,
	};

	return fill_submit(stream, &fill, wait);
}

static CUresult fill_2d(CUstream stream, CUdeviceptr to, size_t pitch, uint32_t value,
	uint32_t element, size_t width, size_t height, bool wait)
{
	struct sched_fill fill = {
		.to = to,
		.width = width,
		.height = height,
		.pitch = pitch,
		.element = element,
		.value = value,
	};

	return fill_submit(stream, &fill, wait);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	API_CALL;

	return fill_linear(NULL, dstDevice, uc, 1, N, true);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	API_CALL;

	return fill_linear(NULL, dstDevice, us, 2, N, true);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	API_CALL;

	return fill_linear(NULL, dstDevice, ui, 4, N, true);
}

CUresult cuMemsetD8Async(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	API_CALL;

	return fill_linear(hStream, dstDevice, uc, 1, N, false);
}

CUresult cuMemsetD16Async(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	API_CALL;

	return fill_linear(hStream, dstDevice, us, 2, N, false);
}

CUresult cuMemsetD32Async(
	CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	API_CALL;

	return fill_linear(hStream, dstDevice, ui, 4, N, false);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height)
{
	API_CALL;

	return fill_2d(NULL, dstDevice, dstPitch, uc, 1, Width, Height, true);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height)
{
	API_CALL;

	return fill_2d(NULL, dstDevice, dstPitch, us, 2, Width, Height, true);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height)
{
	API_CALL;

	return fill_2d(NULL, dstDevice, dstPitch, ui, 4, Width, Height, true);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	API_CALL;

	return fill_2d(hStream, dstDevice, dstPitch, uc, 1, Width, Height, false);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height, CUstream hStream)
{
	API_CALL;

	return fill_2d(hStream, dstDevice, dstPitch, us, 2, Width, Height, false);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream hStream)
{
	API_CALL;

	return fill_2d(hStream, dstDevice, dstPitch, ui, 4, Width, Height, false);
}
