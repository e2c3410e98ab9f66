/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on tensor maps
 *
 * A map is 128 bytes of the driver's, which the guest passes to kernels like any other
 * parameter. It grants nothing: a device reaches through it what the kernel itself could
 * address.
 */

#include <string.h>

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/memory/access.h"

#define RANK_MAX 5u

/* Memory of the guest, or a place in the window where it may map some. */
static bool is_address(struct call *call, uint64_t address)
{
	const struct vgpu_window *window = &call->session->window;

	return address - window->base < window->size ||
	       access_check(call, address, 1) == CUDA_SUCCESS;
}

/* Copies an array of n elements. Return: false if the guest sent another number. */
static bool take(const ProtobufCBinaryData *bytes, void *array, size_t n, size_t size)
{
	if (bytes->len != n * size)
		return false;
	if (n)
		memcpy(array, bytes->data, bytes->len);
	return true;
}

/* What the three requests have in common. */
struct tensor {
	cuuint64_t sizes[RANK_MAX];
	cuuint64_t strides[RANK_MAX - 1];
	cuuint32_t steps[RANK_MAX];
	CUtensorMap map;
};

static CUresult take_tensor(struct call *call, uint32_t rank, uint64_t address,
	const ProtobufCBinaryData *sizes, const ProtobufCBinaryData *strides,
	const ProtobufCBinaryData *steps, struct tensor *tensor)
{
	memset(tensor, 0, sizeof(*tensor));
	if (!rank || rank > RANK_MAX || !is_address(call, address) ||
		!take(sizes, tensor->sizes, rank, sizeof(tensor->sizes[0])) ||
		!take(strides, tensor->strides, rank - 1, sizeof(tensor->strides[0])) ||
		!take(steps, tensor->steps, rank, sizeof(tensor->steps[0])))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult give_map(struct call *call, CUresult result, const CUtensorMap *map,
	ProtobufCBinaryData *bytes)
{
	void *copy;

	if (result != CUDA_SUCCESS)
		return result;
	copy = call_alloc(call, sizeof(*map));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, map, sizeof(*map));
	*bytes = (ProtobufCBinaryData){ sizeof(*map), copy };
	return CUDA_SUCCESS;
}

CUresult handle_cuTensorMapEncodeTiled(struct call *call,
	const Vgpu__CuTensorMapEncodeTiledRequest *request,
	Vgpu__CuTensorMapEncodeTiledReply *reply)
{
	cuuint32_t box[RANK_MAX] = {};
	struct tensor tensor;
	CUresult result;

	if (!call->driver->cuTensorMapEncodeTiled)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take_tensor(call, request->tensor_rank, request->global_address,
		&request->sizes, &request->strides, &request->steps, &tensor);
	if (result == CUDA_SUCCESS &&
		!take(&request->box, box, request->tensor_rank, sizeof(box[0])))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuTensorMapEncodeTiled(&tensor.map,
		request->tensor_data_type, request->tensor_rank,
		(void *)(uintptr_t)request->global_address, tensor.sizes, tensor.strides,
		box, tensor.steps, request->interleave, request->swizzle,
		request->l2_promotion, request->oob_fill);
	return give_map(call, result, &tensor.map, &reply->map);
}

CUresult handle_cuTensorMapEncodeIm2col(struct call *call,
	const Vgpu__CuTensorMapEncodeIm2colRequest *request,
	Vgpu__CuTensorMapEncodeIm2colReply *reply)
{
	int lower[RANK_MAX - 2] = {}, upper[RANK_MAX - 2] = {};
	uint32_t rank = request->tensor_rank;
	struct tensor tensor;
	CUresult result;

	if (!call->driver->cuTensorMapEncodeIm2col)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take_tensor(call, rank, request->global_address, &request->sizes,
		&request->strides, &request->steps, &tensor);
	if (result == CUDA_SUCCESS &&
		(rank < 3 || !take(&request->lower, lower, rank - 2, sizeof(lower[0])) ||
			!take(&request->upper, upper, rank - 2, sizeof(upper[0]))))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuTensorMapEncodeIm2col(&tensor.map,
		request->tensor_data_type, rank,
		(void *)(uintptr_t)request->global_address, tensor.sizes, tensor.strides,
		lower, upper, request->channels_per_pixel, request->pixels_per_column,
		tensor.steps, request->interleave, request->swizzle,
		request->l2_promotion, request->oob_fill);
	return give_map(call, result, &tensor.map, &reply->map);
}

CUresult handle_cuTensorMapEncodeIm2colWide(struct call *call,
	const Vgpu__CuTensorMapEncodeIm2colWideRequest *request,
	Vgpu__CuTensorMapEncodeIm2colWideReply *reply)
{
	struct tensor tensor;
	CUresult result;

	if (!call->driver->cuTensorMapEncodeIm2colWide)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take_tensor(call, request->tensor_rank, request->global_address,
		&request->sizes, &request->strides, &request->steps, &tensor);
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuTensorMapEncodeIm2colWide(&tensor.map,
		request->tensor_data_type, request->tensor_rank,
		(void *)(uintptr_t)request->global_address, tensor.sizes, tensor.strides,
		request->pixel_box_lower_corner_width,
		request->pixel_box_upper_corner_width, request->channels_per_pixel,
		request->pixels_per_column, tensor.steps, request->interleave,
		request->mode, request->swizzle, request->l2_promotion,
		request->oob_fill);
	return give_map(call, result, &tensor.map, &reply->map);
}

CUresult handle_cuTensorMapReplaceAddress(struct call *call,
	const Vgpu__CuTensorMapReplaceAddressRequest *request,
	Vgpu__CuTensorMapReplaceAddressReply *reply)
{
	CUtensorMap map;
	CUresult result;

	if (!call->driver->cuTensorMapReplaceAddress)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!take(&request->before, &map, 1, sizeof(map)) ||
		!is_address(call, request->global_address))
		return CUDA_ERROR_INVALID_VALUE;
	result = call->driver->cuTensorMapReplaceAddress(
		&map, (void *)(uintptr_t)request->global_address);
	return give_map(call, result, &map, &reply->map);
}
