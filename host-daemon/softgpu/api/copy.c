/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies
 *
 * The device side of a copy has to be within allocations or registrations, which is
 * checked before it is submitted. The host side may be any memory of the program: a copy
 * with pageable memory is synchronous, also if the call is asynchronous, so that the
 * program may reuse that memory at once, as CUDA promises for its source.
 */

#include "vgpu/checked.h"

#include "api/array.h"
#include "api/capture.h"
#include "api/copy.h"

enum copy_side {
	COPY_HOST,
	COPY_DEVICE,
	COPY_UNIFIED, /* either: depends on the address */
	COPY_ARRAY,   /* checked against the array */
};

/* A box of memory, with the address of its first byte. */
struct copy_place {
	enum copy_side side;
	uint64_t address;
	uint64_t pitch; /* from row to row */
	uint64_t rows;	/* from layer to layer */
	/* Whose device has to have access, held by the call; NULL: the current one. */
	CUcontext context;
};

struct copy_extent {
	uint64_t width, height, depth;
};

/* Return: whether the box exists and the access is permitted; *pageablep is set if it is
 * ordinary memory. */
static bool copy_check(const struct copy_place *place, const struct copy_extent *extent,
	unsigned int access, bool *pageablep)
{
	uint64_t n_rows, size, end;

	if (!vgpu_mul_u64(place->rows, extent->depth - 1, &n_rows) ||
		!vgpu_add_u64(n_rows, extent->height - 1, &n_rows) ||
		!vgpu_mul_u64(place->pitch, n_rows, &size) ||
		!vgpu_add_u64(size, extent->width, &size) ||
		!vgpu_add_u64(place->address, size, &end))
		return false;
	if (place->side == COPY_ARRAY ||
		context_reaches(place->context, place->address, size, access))
		return true;
	if (memory_is_device(&softgpu_device.memory, place->address))
		return false;
	*pageablep = true;
	return place->side != COPY_DEVICE && place->address;
}

static CUresult copy_describe(struct sched_copy *copy, const struct copy_place *to,
	const struct copy_place *from, const struct copy_extent *extent, bool *pageablep)
{
	*copy = (struct sched_copy){
		.to = to->address,
		.from = from->address,
		.width = extent->width,
		.height = extent->height,
		.depth = extent->depth,
		.to_pitch = to->pitch,
		.from_pitch = from->pitch,
		.to_slice = to->pitch * to->rows,
		.from_slice = from->pitch * from->rows,
	};
	if (!copy_check(to, extent, SOFTGPU_WRITE, pageablep) ||
		!copy_check(from, extent, SOFTGPU_READ, pageablep))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static bool copy_is_empty(const struct copy_extent *extent)
{
	return !extent->width || !extent->height || !extent->depth;
}

static CUresult copy_submit(struct sched_stream *stream, const struct copy_place *to,
	const struct copy_place *from, const struct copy_extent *extent, bool wait)
{
	struct sched_op op = { .kind = SCHED_COPY };
	bool pageable = false;
	CUresult result;

	if (copy_is_empty(extent))
		return CUDA_SUCCESS;
	result = copy_describe(&op.copy, to, from, extent, &pageable);
	if (result)
		return result;
	result = sched_submit(stream, &op, wait || pageable);
	if (wait)
		print_flush(stream_context(stream));
	return result;
}

/* A captured copy has the form that nodes have. */
static CUresult copy_capture(struct sched_stream *stream, const CUDA_MEMCPY3D *copy)
{
	struct graph_work work;
	CUresult result;

	if (copy_is_empty(&(struct copy_extent){
		    copy->WidthInBytes, copy->Height, copy->Depth }))
		return CUDA_SUCCESS;
	result = work_copy(&work, copy, stream_context(stream));
	return result ? result : capture_add(stream, &work);
}

static CUresult copy_capture_linear(struct sched_stream *stream,
	const struct copy_place *to, const struct copy_place *from, size_t size)
{
	static const CUmemorytype types[] = {
		[COPY_HOST] = CU_MEMORYTYPE_HOST,
		[COPY_DEVICE] = CU_MEMORYTYPE_DEVICE,
		[COPY_UNIFIED] = CU_MEMORYTYPE_UNIFIED,
	};
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = types[from->side],
		.srcPitch = size,
		.srcHeight = 1,
		.dstMemoryType = types[to->side],
		.dstPitch = size,
		.dstHeight = 1,
		.WidthInBytes = size,
		.Height = 1,
		.Depth = 1,
	};

	if (from->side == COPY_HOST)
		copy.srcHost = (const void *)(uintptr_t)from->address;
	else
		copy.srcDevice = from->address;
	if (to->side == COPY_HOST)
		copy.dstHost = (void *)(uintptr_t)to->address;
	else
		copy.dstDevice = to->address;
	return copy_capture(stream, &copy);
}

static CUresult copy_row(CUstream handle, const struct copy_place *to,
	const struct copy_place *from, size_t size, bool wait)
{
	const struct copy_extent extent = { size, 1, 1 };
	struct sched_stream *stream;
	CUresult result;

	result = stream_get_work(handle, &stream);
	if (!result && stream_is_captured(stream))
		return copy_capture_linear(stream, to, from, size);
	return result ? result : copy_submit(stream, to, from, &extent, wait);
}

static CUresult copy_linear(CUstream handle, enum copy_side to_side, uint64_t to,
	enum copy_side from_side, uint64_t from, size_t size, bool wait)
{
	const struct copy_place to_place = { .side = to_side, .address = to };
	const struct copy_place from_place = { .side = from_side, .address = from };

	return copy_row(handle, &to_place, &from_place, size, wait);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	API_CALL;

	return copy_linear(NULL, COPY_DEVICE, dstDevice, COPY_HOST, (uintptr_t)srcHost,
		ByteCount, true);
}

CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	API_CALL;

	return copy_linear(hStream, COPY_DEVICE, dstDevice, COPY_HOST, (uintptr_t)srcHost,
		ByteCount, false);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	API_CALL;

	return copy_linear(NULL, COPY_HOST, (uintptr_t)dstHost, COPY_DEVICE, srcDevice,
		ByteCount, true);
}

CUresult cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	API_CALL;

	return copy_linear(hStream, COPY_HOST, (uintptr_t)dstHost, COPY_DEVICE, srcDevice,
		ByteCount, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	API_CALL;

	return copy_linear(
		NULL, COPY_DEVICE, dstDevice, COPY_DEVICE, srcDevice, ByteCount, true);
}

CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	API_CALL;

	return copy_linear(hStream, COPY_DEVICE, dstDevice, COPY_DEVICE, srcDevice,
		ByteCount, false);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	API_CALL;

	return copy_linear(NULL, COPY_UNIFIED, dst, COPY_UNIFIED, src, ByteCount, true);
}

CUresult cuMemcpyAsync(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	API_CALL;

	return copy_linear(
		hStream, COPY_UNIFIED, dst, COPY_UNIFIED, src, ByteCount, false);
}

/*
 * Rectangles and boxes
 */

/* One side as the structures of the API describe it. */
struct copy_operand {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, rows;
};

/* Of a structure with fields named for their side. */
#define COPY_OPERAND(_copy, _side, _z, _rows)                                            \
	{                                                                                \
		.type = (_copy)->_side##MemoryType, .host = (_copy)->_side##Host,        \
		.device = (_copy)->_side##Device, .array = (_copy)->_side##Array,        \
		.x = (_copy)->_side##XInBytes, .y = (_copy)->_side##Y, .z = (_z),        \
		.pitch = (_copy)->_side##Pitch, .rows = (_rows),                         \
	}

static CUresult copy_find_array(struct copy_place *place,
	const struct copy_operand *operand, const struct copy_extent *extent)
{
	const struct array_box box = { operand->x, operand->y, operand->z, extent->width,
		extent->height, extent->depth };

	place->side = COPY_ARRAY;
	if (!array_find(
		    operand->array, &box, &place->address, &place->pitch, &place->rows))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy_find_place(struct copy_place *place,
	const struct copy_operand *operand, const struct copy_extent *extent)
{
	uint64_t row_end, rows_end, skipped, start;

	switch (operand->type) {
	case CU_MEMORYTYPE_HOST:
		place->side = COPY_HOST;
		start = (uintptr_t)operand->host;
		break;
	case CU_MEMORYTYPE_DEVICE:
		place->side = COPY_DEVICE;
		start = operand->device;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		place->side = COPY_UNIFIED;
		start = operand->device;
		break;
	case CU_MEMORYTYPE_ARRAY:
		return copy_find_array(place, operand, extent);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!vgpu_add_u64(operand->x, extent->width, &row_end) ||
		!vgpu_add_u64(operand->y, extent->height, &rows_end) ||
		((extent->height > 1 || extent->depth > 1) && operand->pitch < row_end) ||
		(extent->depth > 1 && operand->rows < rows_end) ||
		!vgpu_mul_u64(operand->z, operand->rows, &skipped) ||
		!vgpu_add_u64(skipped, operand->y, &skipped) ||
		!vgpu_mul_u64(skipped, operand->pitch, &skipped) ||
		!vgpu_add_u64(skipped, operand->x, &skipped) ||
		!vgpu_add_u64(start, skipped, &place->address))
		return CUDA_ERROR_INVALID_VALUE;
	place->pitch = operand->pitch;
	place->rows = operand->rows;
	return CUDA_SUCCESS;
}

/* Translates both sides: all calls for rectangles and boxes have the same parameters as
 * this one. */
static CUresult copy_find(struct copy_place *to, struct copy_place *from,
	const struct copy_extent *extent, const CUDA_MEMCPY3D *copy)
{
	CUresult result;

	result = copy_find_place(to,
		&(struct copy_operand)COPY_OPERAND(
			copy, dst, copy->dstZ, copy->dstHeight),
		extent);
	if (!result)
		result = copy_find_place(from,
			&(struct copy_operand)COPY_OPERAND(
				copy, src, copy->srcZ, copy->srcHeight),
			extent);
	return result;
}

CUresult copy_prepare(struct sched_copy *to, const CUDA_MEMCPY3D *copy, bool *pageablep)
{
	const struct copy_extent extent = { copy->WidthInBytes, copy->Height,
		copy->Depth };
	struct copy_place to_place = {}, from_place = {};
	bool pageable;
	CUresult result;

	if (copy_is_empty(&extent))
		return CUDA_ERROR_INVALID_VALUE;
	result = copy_find(&to_place, &from_place, &extent, copy);
	if (!result)
		result = copy_describe(to, &to_place, &from_place, &extent,
			pageablep ? pageablep : &pageable);
	return result;
}

/* @to_context, @from_context:	as in struct copy_place */
static CUresult copy_box(const CUDA_MEMCPY3D *copy, CUcontext to_context,
	CUcontext from_context, CUstream handle, bool wait)
{
	struct copy_place to = { .context = to_context };
	struct copy_place from = { .context = from_context };
	struct copy_extent extent;
	struct sched_stream *stream;
	CUresult result;

	result = stream_get_work(handle, &stream);
	if (result)
		return result;
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream_is_captured(stream))
		return copy_capture(stream, copy);
	extent = (struct copy_extent){ copy->WidthInBytes, copy->Height, copy->Depth };
	result = copy_find(&to, &from, &extent, copy);
	return result ? result : copy_submit(stream, &to, &from, &extent, wait);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream handle, bool wait)
{
	return copy_box(copy, NULL, NULL, handle, wait);
}

/* A box that is one rectangle. */
static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream handle, bool wait)
{
	CUDA_MEMCPY3D box;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	box = (CUDA_MEMCPY3D){
		.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcMemoryType = copy->srcMemoryType,
		.srcHost = copy->srcHost,
		.srcDevice = copy->srcDevice,
		.srcArray = copy->srcArray,
		.srcPitch = copy->srcPitch,
		.srcHeight = copy->Height,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstMemoryType = copy->dstMemoryType,
		.dstHost = copy->dstHost,
		.dstDevice = copy->dstDevice,
		.dstArray = copy->dstArray,
		.dstPitch = copy->dstPitch,
		.dstHeight = copy->Height,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = 1,
	};
	return copy_3d(&box, handle, wait);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	API_CALL;

	return copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	API_CALL;

	return copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	API_CALL;

	return copy_2d(pCopy, hStream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	API_CALL;

	return copy_3d(pCopy, NULL, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	API_CALL;

	return copy_3d(pCopy, hStream, false);
}

/*
 * Between contexts
 *
 * Addresses are unique among devices, so the contexts matter for the order alone, and
 * for mapped memory, to which the device of its side has to have access.
 */

/* Replaces each by the context itself, which the call holds. */
static CUresult copy_check_contexts(CUcontext *top, CUcontext *fromp)
{
	CUgreenCtx green;

	*top = context_hold(*top, &green);
	*fromp = context_hold(*fromp, &green);
	if (!*top || !*fromp)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_is_active(*top) || !context_is_active(*fromp))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return CUDA_SUCCESS;
}

/* The calls that are not asynchronous come after all that was begun on either side. */
static CUresult copy_wait_contexts(CUcontext *top, CUcontext *fromp)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (!result)
		result = copy_check_contexts(top, fromp);
	if (!result)
		result = sched_context_wait(&(*top)->sched);
	if (!result)
		result = sched_context_wait(&(*fromp)->sched);
	return result;
}

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
	CUcontext from_context, size_t size, CUstream handle, bool wait)
{
	const struct copy_place to_place = {
		.side = COPY_DEVICE,
		.address = to,
		.context = to_context,
	};
	const struct copy_place from_place = {
		.side = COPY_DEVICE,
		.address = from,
		.context = from_context,
	};

	return copy_row(handle, &to_place, &from_place, size, wait);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	API_CALL;
	CUresult result;

	result = copy_check_contexts(&dstContext, &srcContext);
	if (result)
		return result;
	return copy_peer(
		dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, false);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount)
{
	API_CALL;
	CUresult result;

	result = copy_wait_contexts(&dstContext, &srcContext);
	if (result)
		return result;
	return copy_peer(
		dstDevice, dstContext, srcDevice, srcContext, ByteCount, NULL, true);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy, CUcontext to, CUcontext from,
	CUstream handle, bool wait)
{
	const CUDA_MEMCPY3D box = {
		.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcZ = copy->srcZ,
		.srcMemoryType = copy->srcMemoryType,
		.srcHost = copy->srcHost,
		.srcDevice = copy->srcDevice,
		.srcArray = copy->srcArray,
		.srcPitch = copy->srcPitch,
		.srcHeight = copy->srcHeight,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstZ = copy->dstZ,
		.dstMemoryType = copy->dstMemoryType,
		.dstHost = copy->dstHost,
		.dstDevice = copy->dstDevice,
		.dstArray = copy->dstArray,
		.dstPitch = copy->dstPitch,
		.dstHeight = copy->dstHeight,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = copy->Depth,
	};

	return copy_box(&box, to, from, handle, wait);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	API_CALL;
	struct sched_stream *stream;
	CUcontext to, from;
	CUresult result;

	result = stream_get_work(hStream, &stream);
	if (!result && !pCopy)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	to = pCopy->dstContext;
	from = pCopy->srcContext;
	result = copy_check_contexts(&to, &from);
	return result ? result : copy_3d_peer(pCopy, to, from, hStream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	API_CALL;
	CUcontext to, from;
	CUresult result;

	if (!pCopy)
		return CUDA_ERROR_INVALID_VALUE;
	to = pCopy->dstContext;
	from = pCopy->srcContext;
	result = copy_wait_contexts(&to, &from);
	return result ? result : copy_3d_peer(pCopy, to, from, NULL, true);
}
