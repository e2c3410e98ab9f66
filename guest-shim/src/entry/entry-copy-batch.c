/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: batches of copies
 *
 * Each is an ordinary copy in stream order. A batch adds when the source may be read:
 * these copies read pageable memory during the call and everything else in stream order,
 * so the call waits for the stream before or after a copy that is to be read at the other
 * time.
 */

#include <stdint.h>

#include "vgpu/g-calls.h"

#include "memory/copy.h"
#include "process/call.h"
#include "process/stream.h"

/* No operation is to blame. */
#define NOBODY SIZE_MAX

static CUresult check_batch(CUstream stream, bool is_complete)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpyBatchAsync);
	/* The legacy stream would order a batch against all others. */
	bool is_ordered = stream && stream != CU_STREAM_LEGACY;

	return shim_call_error(&call,
		is_complete && is_ordered ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static bool order_is_valid(CUmemcpySrcAccessOrder order)
{
	return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
	       order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
	       order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool flags_are_valid(unsigned int flags)
{
	return !(flags & ~(unsigned int)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
}

static CUresult copy_in_order(
	const struct shim_box *box, CUmemcpySrcAccessOrder order, CUstream stream)
{
	enum shim_place place = shim_copy_place(box->from.address);
	CUresult result = CUDA_SUCCESS;

	if (order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && place == SHIM_PLACE_PAGEABLE)
		result = shim_stream_synchronize(stream);
	if (result == CUDA_SUCCESS)
		result = shim_copy_box(box, stream, false);
	if (result == CUDA_SUCCESS &&
		order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
		place != SHIM_PLACE_PAGEABLE)
		result = shim_stream_synchronize(stream);
	return result;
}

/*
 * Ranges
 */

struct batch {
	const CUdeviceptr *to;
	const CUdeviceptr *from;
	const size_t *sizes;
	size_t n;
	const CUmemcpyAttributes *attributes;
	const size_t *first; /* by attributes: the operation they begin with */
	size_t n_attributes;
};

/* Attributes apply to runs of operations, of which the first begins at the first
 * operation. */
static bool attributes_are_valid(const struct batch *batch)
{
	if (!batch->attributes || !batch->first || !batch->n_attributes ||
		batch->n_attributes > batch->n || batch->first[0])
		return false;
	for (size_t i = 0; i < batch->n_attributes; i++)
		if ((i && batch->first[i] <= batch->first[i - 1]) ||
			batch->first[i] >= batch->n ||
			!order_is_valid(batch->attributes[i].srcAccessOrder) ||
			!flags_are_valid(batch->attributes[i].flags))
			return false;
	return true;
}

static CUresult copy_batch(const struct batch *batch, CUstream stream, size_t *failp)
{
	CUresult result;
	size_t run = 0;

	*failp = NOBODY;
	result = check_batch(stream, batch->to && batch->from && batch->sizes &&
					     batch->n && attributes_are_valid(batch));
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < batch->n && result == CUDA_SUCCESS; i++) {
		const struct shim_box box = {
			.to = { batch->to[i], batch->sizes[i], 1 },
			.from = { batch->from[i], batch->sizes[i], 1 },
			.width = batch->sizes[i],
			.height = 1,
			.depth = 1,
		};

		if (run + 1 < batch->n_attributes && batch->first[run + 1] == i)
			run++;
		*failp = i;
		result = batch->sizes[i] && batch->to[i] && batch->from[i]
				 ? copy_in_order(&box,
					   batch->attributes[run].srcAccessOrder, stream)
				 : CUDA_ERROR_INVALID_VALUE;
	}
	if (result == CUDA_SUCCESS)
		*failp = NOBODY;
	return result;
}

CUresult shim_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	CUstream hStream)
{
	const struct batch batch = { dsts, srcs, sizes, count, attrs, attrsIdxs,
		numAttrs };
	size_t fail;

	return copy_batch(&batch, hStream, &fail);
}

CUresult shim_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	size_t *failIdx, CUstream hStream)
{
	const struct batch batch = { dsts, srcs, sizes, count, attrs, attrsIdxs,
		numAttrs };
	size_t fail;

	return copy_batch(&batch, hStream, failIdx ? failIdx : &fail);
}

/*
 * Boxes
 */

/* Lengths of an operand are in elements, which are bytes if neither side is an array; 0
 * means no gap between rows or layers. */
static CUresult find_side(const CUmemcpy3DOperand *operand, const CUextent3D *extent,
	struct shim_side *side)
{
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER || !operand->op.ptr.ptr)
		return CUDA_ERROR_INVALID_VALUE;
	*side = (struct shim_side){
		.address = operand->op.ptr.ptr,
		.pitch = operand->op.ptr.rowLength ? operand->op.ptr.rowLength
						   : extent->width,
		.rows = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight
						    : extent->height,
	};
	if (side->pitch < extent->width || side->rows < extent->height)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy_operation(const CUDA_MEMCPY3D_BATCH_OP *operation, CUstream stream)
{
	struct shim_box box = {
		.width = operation->extent.width,
		.height = operation->extent.height,
		.depth = operation->extent.depth,
	};
	CUresult result;

	if (!order_is_valid(operation->srcAccessOrder) ||
		!flags_are_valid(operation->flags) || !box.width || !box.height ||
		!box.depth)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_side(&operation->dst, &operation->extent, &box.to);
	if (result == CUDA_SUCCESS)
		result = find_side(&operation->src, &operation->extent, &box.from);
	if (result != CUDA_SUCCESS)
		return result;
	return copy_in_order(&box, operation->srcAccessOrder, stream);
}

static CUresult copy_boxes(const CUDA_MEMCPY3D_BATCH_OP *operations, size_t n,
	unsigned long long flags, CUstream stream, size_t *failp)
{
	CUresult result;

	*failp = NOBODY;
	result = check_batch(stream, operations && n && !flags);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		*failp = i;
		result = copy_operation(&operations[i], stream);
	}
	if (result == CUDA_SUCCESS)
		*failp = NOBODY;
	return result;
}

CUresult shim_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
	unsigned long long flags, CUstream hStream)
{
	size_t fail;

	return copy_boxes(opList, numOps, flags, hStream, &fail);
}

CUresult shim_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
	size_t *failIdx, unsigned long long flags, CUstream hStream)
{
	size_t fail;

	return copy_boxes(opList, numOps, flags, hStream, failIdx ? failIdx : &fail);
}
