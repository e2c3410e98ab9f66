/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: copies of rectangles and boxes
 *
 * All structures of the API come down to a box of two sides; what a side may be is
 * decided in find_side() alone.
 */

#include "vgpu/g-driver.pb-c.h"

#include "memory/copy-array.h"
#include "memory/copy.h"
#include "process/call.h"
#include "process/context.h"
#include "process/stream.h"

/* One side as the structures of the API describe it. */
struct operand {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, rows;
};

/* Of a structure with fields named for their side. */
#define OPERAND(_copy, _side, _z, _rows)                                                 \
	{                                                                                \
		.type = (_copy)->_side##MemoryType, .host = (_copy)->_side##Host,        \
		.device = (_copy)->_side##Device, .array = (_copy)->_side##Array,        \
		.x = (_copy)->_side##XInBytes, .y = (_copy)->_side##Y, .z = (_z),        \
		.pitch = (_copy)->_side##Pitch, .rows = (_rows),                         \
	}

/* The first byte of what is copied on one side. */
static CUresult find_side(const struct operand *operand, struct shim_side *side)
{
	uint64_t base;

	switch (operand->type) {
	case CU_MEMORYTYPE_HOST:
		base = (uint64_t)(uintptr_t)operand->host;
		break;
	case CU_MEMORYTYPE_DEVICE:
		if (shim_copy_place(operand->device) == SHIM_PLACE_PAGEABLE)
			return CUDA_ERROR_INVALID_VALUE;
		base = operand->device;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		base = operand->device;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	side->pitch = operand->pitch;
	side->rows = operand->rows;
	side->address =
		base + (operand->z * side->rows + operand->y) * side->pitch + operand->x;
	return CUDA_SUCCESS;
}

/* Of an array the place in it counts. */
static CUresult find_array_side(
	const struct operand *operand, struct vgpu_array_side *side, CUarray *arrayp)
{
	struct shim_side memory;
	CUresult result;

	if (operand->type == CU_MEMORYTYPE_ARRAY) {
		*arrayp = operand->array;
		*side = (struct vgpu_array_side){
			.x = operand->x,
			.y = operand->y,
			.z = operand->z,
		};
		return operand->array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	result = find_side(operand, &memory);
	if (result == CUDA_SUCCESS)
		*side = (struct vgpu_array_side){
			.address = memory.address,
			.pitch = memory.pitch,
			.rows = memory.rows,
		};
	return result;
}

static CUresult copy_with_array(const struct shim_box *box, const struct operand *to,
	const struct operand *from, CUstream stream, bool waits)
{
	struct shim_array_box sent = {
		.box = { .width = box->width,
			.height = box->height,
			.depth = box->depth },
	};
	CUresult result;

	/* Between contexts, each array is its context's; that is not remoted. */
	if (box->to_context || box->from_context)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = find_array_side(to, &sent.box.to, &sent.to);
	if (result == CUDA_SUCCESS)
		result = find_array_side(from, &sent.box.from, &sent.from);
	return result == CUDA_SUCCESS ? shim_copy_array(&sent, stream, waits) : result;
}

/* Whether the rows of a side are as long, and its layers as high, as what is copied. */
static bool side_fits(const struct shim_box *box, const struct operand *operand)
{
	if (operand->type == CU_MEMORYTYPE_ARRAY)
		return true;
	if (operand->pitch < operand->x + box->width &&
		(box->height > 1 || box->depth > 1))
		return false;
	return operand->rows >= operand->y + box->height || box->depth <= 1;
}

static CUresult copy_operands(struct shim_box *box, struct operand *to,
	struct operand *from, CUstream stream, bool waits)
{
	CUresult result;

	/* A pitch of 0 means rows without gaps, and a height of 0 layers without gaps. */
	to->pitch = to->pitch ? to->pitch : box->width;
	from->pitch = from->pitch ? from->pitch : box->width;
	to->rows = to->rows ? to->rows : box->height;
	from->rows = from->rows ? from->rows : box->height;
	if (!side_fits(box, to) || !side_fits(box, from))
		return CUDA_ERROR_INVALID_VALUE;
	if (to->type == CU_MEMORYTYPE_ARRAY || from->type == CU_MEMORYTYPE_ARRAY)
		return copy_with_array(box, to, from, stream, waits);
	result = find_side(to, &box->to);
	if (result == CUDA_SUCCESS)
		result = find_side(from, &box->from);
	return result == CUDA_SUCCESS ? shim_copy_box(box, stream, waits) : result;
}

/*
 * Rectangles
 */

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, bool waits)
{
	struct operand to, from;
	struct shim_box box;
	CUresult result;

	if (!copy)
		return shim_call_invalid(VGPU_CALL_cuMemcpy2DAsync_v2);
	result = shim_call_check(VGPU_CALL_cuMemcpy2DAsync_v2);
	if (result != CUDA_SUCCESS)
		return result;
	box = (struct shim_box){
		.width = copy->WidthInBytes,
		.height = copy->Height,
		.depth = 1,
	};
	to = (struct operand)OPERAND(copy, dst, 0, 0);
	from = (struct operand)OPERAND(copy, src, 0, 0);
	return copy_operands(&box, &to, &from, stream, waits);
}

CUresult shim_cuMemcpy2D_v2_on(const CUDA_MEMCPY2D *pCopy, CUstream stream)
{
	return copy_2d(pCopy, stream, true);
}

CUresult shim_cuMemcpy2DUnaligned_v2_on(const CUDA_MEMCPY2D *pCopy, CUstream stream)
{
	return copy_2d(pCopy, stream, true);
}

CUresult shim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy_2d(pCopy, hStream, false);
}

/*
 * Boxes
 */

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, bool waits)
{
	struct operand to, from;
	struct shim_box box;
	CUresult result;

	if (!copy)
		return shim_call_invalid(VGPU_CALL_cuMemcpy3DAsync_v2);
	result = shim_call_check(VGPU_CALL_cuMemcpy3DAsync_v2);
	if (result != CUDA_SUCCESS)
		return result;
	if (copy->dstLOD || copy->srcLOD || copy->reserved0 || copy->reserved1)
		return CUDA_ERROR_INVALID_VALUE;
	box = (struct shim_box){
		.width = copy->WidthInBytes,
		.height = copy->Height,
		.depth = copy->Depth,
	};
	to = (struct operand)OPERAND(copy, dst, copy->dstZ, copy->dstHeight);
	from = (struct operand)OPERAND(copy, src, copy->srcZ, copy->srcHeight);
	return copy_operands(&box, &to, &from, stream, waits);
}

CUresult shim_cuMemcpy3D_v2_on(const CUDA_MEMCPY3D *pCopy, CUstream stream)
{
	return copy_3d(pCopy, stream, true);
}

CUresult shim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy_3d(pCopy, hStream, false);
}

/*
 * Between contexts
 */

static CUresult check_contexts(CUcontext to, CUcontext from)
{
	const struct shim_context *to_context = shim_context_find(to);
	const struct shim_context *from_context = shim_context_find(from);
	CUresult result = shim_context_check(to_context);

	return result == CUDA_SUCCESS ? shim_context_check(from_context) : result;
}

static CUresult copy_between(const CUDA_MEMCPY3D_PEER *copy, CUstream stream, bool waits)
{
	struct operand to, from;
	struct shim_box box;

	if (copy->dstLOD || copy->srcLOD)
		return CUDA_ERROR_INVALID_VALUE;
	box = (struct shim_box){
		.width = copy->WidthInBytes,
		.height = copy->Height,
		.depth = copy->Depth,
		.to_context = (uint64_t)(uintptr_t)copy->dstContext,
		.from_context = (uint64_t)(uintptr_t)copy->srcContext,
	};
	to = (struct operand)OPERAND(copy, dst, copy->dstZ, copy->dstHeight);
	from = (struct operand)OPERAND(copy, src, copy->srcZ, copy->srcHeight);
	return copy_operands(&box, &to, &from, stream, waits);
}

static CUresult check_between(const CUDA_MEMCPY3D_PEER *copy)
{
	CUresult result;

	if (!copy)
		return shim_call_invalid(VGPU_CALL_cuMemcpy3DPeerAsync);
	result = shim_call_check(VGPU_CALL_cuMemcpy3DPeerAsync);
	return result == CUDA_SUCCESS ? check_contexts(copy->dstContext, copy->srcContext)
				      : result;
}

CUresult shim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	CUresult result = check_between(pCopy);

	return result == CUDA_SUCCESS ? copy_between(pCopy, hStream, false) : result;
}

/* It comes after all that was begun in either context, and before all that is begun
 * later. */
static CUresult copy_in_turn(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	CUresult result = check_between(copy);

	if (result == CUDA_SUCCESS)
		result = shim_cuCtxSynchronize_v2(copy->dstContext);
	if (result == CUDA_SUCCESS)
		result = shim_cuCtxSynchronize_v2(copy->srcContext);
	if (result == CUDA_SUCCESS)
		result = copy_between(copy, stream, true);
	return result == CUDA_SUCCESS ? shim_stream_synchronize(stream) : result;
}

CUresult shim_cuMemcpy3DPeer_on(const CUDA_MEMCPY3D_PEER *pCopy, CUstream stream)
{
	return copy_in_turn(pCopy, stream);
}

/* Checks that both forms of the linear copy between contexts share. */
static CUresult check_peers(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
	CUcontext from_context, size_t size)
{
	CUresult result = shim_call_check(VGPU_CALL_cuMemcpyPeer);

	if (result == CUDA_SUCCESS)
		result = check_contexts(to_context, from_context);
	if (result != CUDA_SUCCESS || !size)
		return result;
	if (shim_copy_place(to) == SHIM_PLACE_PAGEABLE ||
		shim_copy_place(from) == SHIM_PLACE_PAGEABLE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* It waits for both contexts, so the stream makes no difference. */
CUresult shim_cuMemcpyPeer_on(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream stream)
{
	Vgpu__CuMemcpyPeerRequest request = VGPU__CU_MEMCPY_PEER_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpyPeer);
	CUresult result;

	result = check_peers(dstDevice, dstContext, srcDevice, srcContext, ByteCount);
	if (result != CUDA_SUCCESS || !ByteCount)
		return result;
	request.dst_device = dstDevice;
	request.dst_context = (uint64_t)(uintptr_t)dstContext;
	request.src_device = srcDevice;
	request.src_context = (uint64_t)(uintptr_t)srcContext;
	request.byte_count = ByteCount;
	return shim_call_sync(
		&call, &request.base, &vgpu__cu_memcpy_peer_reply__descriptor, NULL);
}

CUresult shim_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	Vgpu__CuMemcpyPeerAsyncRequest request = VGPU__CU_MEMCPY_PEER_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpyPeerAsync);
	const struct shim_side to = { .address = dstDevice },
			       from = { .address = srcDevice };
	CUresult result;

	result = check_peers(dstDevice, dstContext, srcDevice, srcContext, ByteCount);
	if (result != CUDA_SUCCESS || !ByteCount)
		return result;
	call.wants_result = !shim_side_is_known(&to, ByteCount, 1, 1) ||
			    !shim_side_is_known(&from, ByteCount, 1, 1);
	request.dst_device = dstDevice;
	request.dst_context = (uint64_t)(uintptr_t)dstContext;
	request.src_device = srcDevice;
	request.src_context = (uint64_t)(uintptr_t)srcContext;
	request.byte_count = ByteCount;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	return shim_call_async(&call, &request.base, hStream);
}
