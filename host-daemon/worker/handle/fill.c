/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills
 *
 * All are stream-ordered and without a reply, and check addresses as copies do.
 */

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/session.h"
#include "worker/memory/access.h"

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
	return access_check(call, address, size);
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
	return access_check_side(call,
		&(struct access_side){
			.address = address, .pitch = pitch, .rows = height },
		width, height, 1);
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
