/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies
 *
 * The device side of a copy lies within allocations or registrations, which is
 * checked before it is submitted. The host side may be any memory of the program: a
 * copy with ordinary memory is waited for, also where it is called asynchronous, so
 * that the program may use that memory at once, as CUDA promises for its source.
 */

#include "vgpu/checked.h"

#include "api/api.h"

enum copy_side {
	COPY_HOST,
	COPY_DEVICE,
	COPY_UNIFIED, /* either: the address tells */
};

/* A rectangle of memory: its address is that of the first byte. */
struct copy_plane {
	enum copy_side side;
	uint64_t address;
	uint64_t pitch;
};

/* Return: whether the plane exists; *pageablep is set if it is ordinary memory. */
static bool copy_check(
	const struct copy_plane *plane, uint64_t width, uint64_t height, bool *pageablep)
{
	uint64_t size, end;

	if (!vgpu_mul_u64(plane->pitch, height - 1, &size) ||
		!vgpu_add_u64(size, width, &size) ||
		!vgpu_add_u64(plane->address, size, &end))
		return false;
	if (memory_covers(&softgpu_device.memory, plane->address, size))
		return true;
	*pageablep = true;
	return plane->side != COPY_DEVICE && plane->address;
}

static CUresult copy_submit(struct sched_stream *stream, const struct copy_plane *to,
	const struct copy_plane *from, uint64_t width, uint64_t height, bool wait)
{
	struct sched_op op = {
		.kind = SCHED_COPY,
		.copy = {
			.to = to->address,
			.from = from->address,
			.width = width,
			.height = height,
			.depth = 1,
			.to_pitch = to->pitch,
			.from_pitch = from->pitch,
		},
	};
	bool pageable = false;

	if (!width || !height)
		return CUDA_SUCCESS;
	if (!copy_check(to, width, height, &pageable) ||
		!copy_check(from, width, height, &pageable))
		return CUDA_ERROR_INVALID_VALUE;
	return sched_submit(stream, &op, wait || pageable);
}

static CUresult copy_linear(CUstream handle, enum copy_side to_side, uint64_t to,
	enum copy_side from_side, uint64_t from, size_t size, bool wait)
{
	struct copy_plane to_plane = { .side = to_side, .address = to };
	struct copy_plane from_plane = { .side = from_side, .address = from };
	struct sched_stream *stream;
	CUresult r;

	r = stream_get(handle, &stream);
	return r ? r : copy_submit(stream, &to_plane, &from_plane, size, 1, wait);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_linear(NULL, COPY_DEVICE, dstDevice, COPY_HOST, (uintptr_t)srcHost,
		ByteCount, true);
}

CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_linear(hStream, COPY_DEVICE, dstDevice, COPY_HOST, (uintptr_t)srcHost,
		ByteCount, false);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_linear(NULL, COPY_HOST, (uintptr_t)dstHost, COPY_DEVICE, srcDevice,
		ByteCount, true);
}

CUresult cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_linear(hStream, COPY_HOST, (uintptr_t)dstHost, COPY_DEVICE, srcDevice,
		ByteCount, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_linear(
		NULL, COPY_DEVICE, dstDevice, COPY_DEVICE, srcDevice, ByteCount, true);
}

CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_linear(hStream, COPY_DEVICE, dstDevice, COPY_DEVICE, srcDevice,
		ByteCount, false);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy_linear(NULL, COPY_UNIFIED, dst, COPY_UNIFIED, src, ByteCount, true);
}

CUresult cuMemcpyAsync(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy_linear(
		hStream, COPY_UNIFIED, dst, COPY_UNIFIED, src, ByteCount, false);
}

/*
 * Rectangles
 */

/* One side of a CUDA_MEMCPY2D. */
struct copy_side_2d {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t x, y, pitch;
};

static CUresult copy_plane_2d(struct copy_plane *plane, const struct copy_side_2d *side,
	uint64_t width, uint64_t height)
{
	uint64_t row_end, skipped, start;

	switch (side->type) {
	case CU_MEMORYTYPE_HOST:
		plane->side = COPY_HOST;
		start = (uintptr_t)side->host;
		break;
	case CU_MEMORYTYPE_DEVICE:
		plane->side = COPY_DEVICE;
		start = side->device;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		plane->side = COPY_UNIFIED;
		start = side->device;
		break;
	case CU_MEMORYTYPE_ARRAY:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!vgpu_add_u64(side->x, width, &row_end) ||
		(height > 1 && side->pitch < row_end) ||
		!vgpu_mul_u64(side->y, side->pitch, &skipped) ||
		!vgpu_add_u64(skipped, side->x, &skipped) ||
		!vgpu_add_u64(start, skipped, &plane->address))
		return CUDA_ERROR_INVALID_VALUE;
	plane->pitch = side->pitch;
	return CUDA_SUCCESS;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream handle, bool wait)
{
	struct copy_plane to, from;
	struct sched_stream *stream;
	CUresult r;

	r = stream_get(handle, &stream);
	if (r)
		return r;
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	r = copy_plane_2d(&to,
		&(struct copy_side_2d){ copy->dstMemoryType, copy->dstHost,
			copy->dstDevice, copy->dstXInBytes, copy->dstY, copy->dstPitch },
		copy->WidthInBytes, copy->Height);
	if (!r)
		r = copy_plane_2d(&from,
			&(struct copy_side_2d){ copy->srcMemoryType, copy->srcHost,
				copy->srcDevice, copy->srcXInBytes, copy->srcY,
				copy->srcPitch },
			copy->WidthInBytes, copy->Height);
	if (r)
		return r;
	return copy_submit(stream, &to, &from, copy->WidthInBytes, copy->Height, wait);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy_2d(pCopy, hStream, false);
}
