/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills
 *
 * All are stream-ordered and without a reply. An address is the guest's own, so it is
 * checked to lie in one allocation of this session or in its arena; there are no others
 * that mean anything. A copy from or to arena may ask for a word to be written behind it,
 * by which the guest learns that its staging block is free again.
 */

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/call.h"
#include "worker/session.h"

#define NO_WORD UINT32_MAX

/*
 * Writes the word behind a copy, also one that was refused: the guest waits for it. One
 * that is told of the refusal waits for nothing, and may use block and word again on
 * another stream before this one would come to write.
 */
static CUresult finish_copy(struct call *call, CUstream stream, uint32_t word,
	uint64_t value, CUresult result)
{
	bool is_told = call->frame->flags & VGPU_FRAME_REPLY;
	CUresult written;

	if (word == NO_WORD || (result != CUDA_SUCCESS && is_told))
		return result;
	written = fence_write_word(call->session, stream, word, value);
	return result == CUDA_SUCCESS ? written : result;
}

static CUresult check_host(struct call *call, uint64_t address, uint64_t size)
{
	return arena_covers(call->session, address, size) ? CUDA_SUCCESS
							  : CUDA_ERROR_INVALID_VALUE;
}

CUresult handle_cuMemcpyHtoDAsync_v2(struct call *call,
	const Vgpu__CuMemcpyHtoDAsyncV2Request *request,
	Vgpu__CuMemcpyHtoDAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = range_check(call, request->dst_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = check_host(call, request->src_host, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyHtoDAsync_v2(request->dst_device,
			(void *)(uintptr_t)request->src_host, request->byte_count,
			stream);
	if (result == CUDA_SUCCESS) {
		session_count(call->session, copies_h2d, 1);
		session_count(call->session, bytes_h2d, request->byte_count);
	}
	return finish_copy(call, stream, request->word, request->word_value, result);
}

CUresult handle_cuMemcpyDtoHAsync_v2(struct call *call,
	const Vgpu__CuMemcpyDtoHAsyncV2Request *request,
	Vgpu__CuMemcpyDtoHAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = range_check(call, request->src_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = check_host(call, request->dst_host, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyDtoHAsync_v2(
			(void *)(uintptr_t)request->dst_host, request->src_device,
			request->byte_count, stream);
	if (result == CUDA_SUCCESS) {
		session_count(call->session, copies_d2h, 1);
		session_count(call->session, bytes_d2h, request->byte_count);
	}
	return finish_copy(call, stream, request->word, request->word_value, result);
}

CUresult handle_cuMemcpyDtoDAsync_v2(struct call *call,
	const Vgpu__CuMemcpyDtoDAsyncV2Request *request,
	Vgpu__CuMemcpyDtoDAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = range_check(call, request->dst_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = range_check(call, request->src_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyDtoDAsync_v2(request->dst_device,
			request->src_device, request->byte_count, stream);
	if (result == CUDA_SUCCESS)
		session_count(call->session, copies_d2d, 1);
	return result;
}

/* Whether `height` rows of `width` bytes, `pitch` apart, lie where the guest may. */
static CUresult check_rectangle(struct call *call, uint64_t address, uint64_t pitch,
	uint64_t width, uint64_t height)
{
	uint64_t size;

	if (!width || !height)
		return CUDA_SUCCESS;
	if (width > pitch && height > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!vgpu_mul_u64(pitch, height - 1, &size) || !vgpu_add_u64(size, width, &size))
		return CUDA_ERROR_INVALID_VALUE;
	return range_check(call, address, size);
}

static void set_source(struct call *call, CUDA_MEMCPY2D *copy, uint64_t address)
{
	if (arena_covers(call->session, address, 1)) {
		copy->srcMemoryType = CU_MEMORYTYPE_HOST;
		copy->srcHost = (void *)(uintptr_t)address;
	} else {
		copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
		copy->srcDevice = address;
	}
}

static void set_destination(struct call *call, CUDA_MEMCPY2D *copy, uint64_t address)
{
	if (arena_covers(call->session, address, 1)) {
		copy->dstMemoryType = CU_MEMORYTYPE_HOST;
		copy->dstHost = (void *)(uintptr_t)address;
	} else {
		copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
		copy->dstDevice = address;
	}
}

static void count_rectangle(struct call *call, const CUDA_MEMCPY2D *copy)
{
	uint64_t size = copy->WidthInBytes * copy->Height;

	if (copy->srcMemoryType == CU_MEMORYTYPE_HOST) {
		session_count(call->session, copies_h2d, 1);
		session_count(call->session, bytes_h2d, size);
	} else if (copy->dstMemoryType == CU_MEMORYTYPE_HOST) {
		session_count(call->session, copies_d2h, 1);
		session_count(call->session, bytes_d2h, size);
	} else {
		session_count(call->session, copies_d2d, 1);
	}
}

static CUresult copy_rectangle(
	struct call *call, const Vgpu__CuMemcpy2DAsyncV2Request *request, CUstream stream)
{
	CUDA_MEMCPY2D copy = {
		.srcPitch = request->src_pitch,
		.dstPitch = request->dst_pitch,
		.WidthInBytes = request->width,
		.Height = request->height,
	};
	CUresult result;

	if (!call->driver->cuMemcpy2DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = check_rectangle(
		call, request->src, request->src_pitch, request->width, request->height);
	if (result == CUDA_SUCCESS)
		result = check_rectangle(call, request->dst, request->dst_pitch,
			request->width, request->height);
	if (result != CUDA_SUCCESS)
		return result;
	set_source(call, &copy, request->src);
	set_destination(call, &copy, request->dst);
	result = call->driver->cuMemcpy2DAsync_v2(&copy, stream);
	if (result == CUDA_SUCCESS)
		count_rectangle(call, &copy);
	return result;
}

CUresult handle_cuMemcpy2DAsync_v2(struct call *call,
	const Vgpu__CuMemcpy2DAsyncV2Request *request,
	Vgpu__CuMemcpy2DAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = copy_rectangle(call, request, stream);
	return finish_copy(call, stream, request->word, request->word_value, result);
}

/* The stream and the one-dimensional range of a fill. */
static CUresult prepare_fill(struct call *call, uint64_t handle, uint64_t address,
	uint64_t n, uint64_t element, void **streamp)
{
	CUresult result;
	uint64_t size;

	result = object_get(call, VGPU_HANDLE_STREAM, handle, false, streamp);
	if (result != CUDA_SUCCESS)
		return result;
	if (!vgpu_mul_u64(n, element, &size))
		return CUDA_ERROR_INVALID_VALUE;
	return range_check(call, address, size);
}

static CUresult count_fill(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		session_count(call->session, memsets, 1);
	return result;
}

CUresult handle_cuMemsetD8Async(struct call *call,
	const Vgpu__CuMemsetD8AsyncRequest *request, Vgpu__CuMemsetD8AsyncReply *reply)
{
	CUresult result;
	void *stream;

	result = prepare_fill(
		call, request->h_stream, request->dst_device, request->n, 1, &stream);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemsetD8Async(
			request->dst_device, request->uc, request->n, stream);
	return count_fill(call, result);
}

CUresult handle_cuMemsetD16Async(struct call *call,
	const Vgpu__CuMemsetD16AsyncRequest *request, Vgpu__CuMemsetD16AsyncReply *reply)
{
	CUresult result;
	void *stream;

	result = prepare_fill(
		call, request->h_stream, request->dst_device, request->n, 2, &stream);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemsetD16Async(
			request->dst_device, request->us, request->n, stream);
	return count_fill(call, result);
}

CUresult handle_cuMemsetD32Async(struct call *call,
	const Vgpu__CuMemsetD32AsyncRequest *request, Vgpu__CuMemsetD32AsyncReply *reply)
{
	CUresult result;
	void *stream;

	result = prepare_fill(
		call, request->h_stream, request->dst_device, request->n, 4, &stream);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemsetD32Async(
			request->dst_device, request->ui, request->n, stream);
	return count_fill(call, result);
}

/* The stream and the rectangle of a two-dimensional fill. */
static CUresult prepare_fill_2d(struct call *call, uint64_t handle, uint64_t address,
	uint64_t pitch, uint64_t n, uint64_t element, uint64_t height, void **streamp)
{
	CUresult result;
	uint64_t width;

	result = object_get(call, VGPU_HANDLE_STREAM, handle, false, streamp);
	if (result != CUDA_SUCCESS)
		return result;
	if (!vgpu_mul_u64(n, element, &width))
		return CUDA_ERROR_INVALID_VALUE;
	return check_rectangle(call, address, pitch, width, height);
}

CUresult handle_cuMemsetD2D8Async(struct call *call,
	const Vgpu__CuMemsetD2D8AsyncRequest *request,
	Vgpu__CuMemsetD2D8AsyncReply *reply)
{
	CUresult result;
	void *stream;

	if (!call->driver->cuMemsetD2D8Async)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = prepare_fill_2d(call, request->h_stream, request->dst_device,
		request->dst_pitch, request->width, 1, request->height, &stream);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemsetD2D8Async(request->dst_device,
			request->dst_pitch, request->uc, request->width, request->height,
			stream);
	return count_fill(call, result);
}

CUresult handle_cuMemsetD2D16Async(struct call *call,
	const Vgpu__CuMemsetD2D16AsyncRequest *request,
	Vgpu__CuMemsetD2D16AsyncReply *reply)
{
	CUresult result;
	void *stream;

	if (!call->driver->cuMemsetD2D16Async)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = prepare_fill_2d(call, request->h_stream, request->dst_device,
		request->dst_pitch, request->width, 2, request->height, &stream);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemsetD2D16Async(request->dst_device,
			request->dst_pitch, request->us, request->width, request->height,
			stream);
	return count_fill(call, result);
}

CUresult handle_cuMemsetD2D32Async(struct call *call,
	const Vgpu__CuMemsetD2D32AsyncRequest *request,
	Vgpu__CuMemsetD2D32AsyncReply *reply)
{
	CUresult result;
	void *stream;

	if (!call->driver->cuMemsetD2D32Async)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = prepare_fill_2d(call, request->h_stream, request->dst_device,
		request->dst_pitch, request->width, 4, request->height, &stream);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemsetD2D32Async(request->dst_device,
			request->dst_pitch, request->ui, request->width, request->height,
			stream);
	return count_fill(call, result);
}
