/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies
 */

#include "runtime/array.h"
#include "runtime/box.h"
#include "runtime/code.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/driver.h"

/* Makes the copy that the box describes. */
static int submit_box(const CUDA_MEMCPY3D *box, struct rt_order order)
{
	if (order.is_sync)
		return rt_driver.cuMemcpy3D_v2(box);
	return rt_order_end(order, rt_driver.cuMemcpy3DAsync_v2(box, order.stream));
}

/* The driver's call of two dimensions takes any pitch, that of three only aligned ones.
 */
static int submit_rectangle(const CUDA_MEMCPY3D *box, struct rt_order order)
{
	CUDA_MEMCPY2D rectangle = {
		.srcXInBytes = box->srcXInBytes,
		.srcY = box->srcY,
		.srcMemoryType = box->srcMemoryType,
		.srcHost = box->srcHost,
		.srcDevice = box->srcDevice,
		.srcArray = box->srcArray,
		.srcPitch = box->srcPitch,
		.dstXInBytes = box->dstXInBytes,
		.dstY = box->dstY,
		.dstMemoryType = box->dstMemoryType,
		.dstHost = box->dstHost,
		.dstDevice = box->dstDevice,
		.dstArray = box->dstArray,
		.dstPitch = box->dstPitch,
		.WidthInBytes = box->WidthInBytes,
		.Height = box->Height,
	};

	if (order.is_sync)
		return rt_driver.cuMemcpy2DUnaligned_v2(&rectangle);
	return rt_order_end(
		order, rt_driver.cuMemcpy2DAsync_v2(&rectangle, order.stream));
}

static int copy_rectangle(const struct rt_side *dst, const struct rt_side *src,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order)
{
	cudaExtent extent = { width, height, 1 };
	CUDA_MEMCPY3D box;
	int error;

	if (!width || !height)
		return 0;
	error = rt_box_fill(&box, dst, src, extent, kind);
	return error ? error : submit_rectangle(&box, order);
}

static int copy_sync(void *dst, const void *src, size_t size, cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_driver.cuMemcpyHtoD_v2((CUdeviceptr)dst, src, size);
	case cudaMemcpyDeviceToHost:
		return rt_driver.cuMemcpyDtoH_v2(dst, (CUdeviceptr)src, size);
	case cudaMemcpyDeviceToDevice:
		return rt_driver.cuMemcpyDtoD_v2(
			(CUdeviceptr)dst, (CUdeviceptr)src, size);
	default:
		return rt_driver.cuMemcpy((CUdeviceptr)dst, (CUdeviceptr)src, size);
	}
}

static int copy_async(
	void *dst, const void *src, size_t size, cudaMemcpyKind kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_driver.cuMemcpyHtoDAsync_v2(
			(CUdeviceptr)dst, src, size, stream);
	case cudaMemcpyDeviceToHost:
		return rt_driver.cuMemcpyDtoHAsync_v2(
			dst, (CUdeviceptr)src, size, stream);
	case cudaMemcpyDeviceToDevice:
		return rt_driver.cuMemcpyDtoDAsync_v2(
			(CUdeviceptr)dst, (CUdeviceptr)src, size, stream);
	default:
		return rt_driver.cuMemcpyAsync(
			(CUdeviceptr)dst, (CUdeviceptr)src, size, stream);
	}
}

int rt_copy(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
	struct rt_order order)
{
	CUmemorytype dst_type, src_type;

	if (!size)
		return 0;
	if (!rt_box_kinds(kind, &dst_type, &src_type))
		return cudaErrorInvalidMemcpyDirection;
	/* Only the call of two dimensions can be told that both are the host's. */
	if (kind == cudaMemcpyHostToHost)
		return copy_rectangle(&(struct rt_side){ .address = dst, .pitch = size },
			&(struct rt_side){ .address = src, .pitch = size }, size, 1, kind,
			order);
	if (order.is_sync)
		return copy_sync(dst, src, size, kind);
	return rt_order_end(order, copy_async(dst, src, size, kind, order.stream));
}

int rt_copy_peer(void *dst, int dst_device, const void *src, int src_device, size_t size,
	struct rt_order order)
{
	CUcontext dst_context, src_context;
	int error = rt_context_get(dst_device, &dst_context);

	if (!error)
		error = rt_context_get(src_device, &src_context);
	if (error)
		return error;
	if (order.is_sync)
		return rt_driver.cuMemcpyPeer((CUdeviceptr)dst, dst_context,
			(CUdeviceptr)src, src_context, size);
	return rt_order_end(
		order, rt_driver.cuMemcpyPeerAsync((CUdeviceptr)dst, dst_context,
			       (CUdeviceptr)src, src_context, size, order.stream));
}

int rt_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order)
{
	if (!width || !height)
		return 0;
	if (height > 1 && (width > dst_pitch || width > src_pitch))
		return cudaErrorInvalidPitchValue;
	return copy_rectangle(&(struct rt_side){ .address = dst, .pitch = dst_pitch },
		&(struct rt_side){ .address = src, .pitch = src_pitch }, width, height,
		kind, order);
}

int rt_copy_3d(const cudaMemcpy3DParms *params, struct rt_order order)
{
	CUDA_MEMCPY3D box;
	size_t dst_element, src_element;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	error = rt_array_element(params->dstArray, &dst_element);
	if (!error)
		error = rt_array_element(params->srcArray, &src_element);
	if (!error)
		error = rt_box_from_params(&box, params, dst_element, src_element);
	if (error)
		return error;
	return submit_box(&box, order);
}

int rt_copy_3d_peer(const cudaMemcpy3DPeerParms *params, struct rt_order order)
{
	cudaMemcpy3DParms same;
	CUDA_MEMCPY3D box;
	CUDA_MEMCPY3D_PEER peer;
	size_t dst_element, src_element;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	same = (cudaMemcpy3DParms){
		.srcArray = params->srcArray,
		.srcPos = params->srcPos,
		.srcPtr = params->srcPtr,
		.dstArray = params->dstArray,
		.dstPos = params->dstPos,
		.dstPtr = params->dstPtr,
		.extent = params->extent,
		.kind = cudaMemcpyDeviceToDevice,
	};
	error = rt_array_element(params->dstArray, &dst_element);
	if (!error)
		error = rt_array_element(params->srcArray, &src_element);
	if (!error)
		error = rt_box_from_params(&box, &same, dst_element, src_element);
	if (error)
		return error;
	peer = (CUDA_MEMCPY3D_PEER){
		.srcXInBytes = box.srcXInBytes,
		.srcY = box.srcY,
		.srcZ = box.srcZ,
		.srcMemoryType = box.srcMemoryType,
		.srcDevice = box.srcDevice,
		.srcArray = box.srcArray,
		.srcPitch = box.srcPitch,
		.srcHeight = box.srcHeight,
		.dstXInBytes = box.dstXInBytes,
		.dstY = box.dstY,
		.dstZ = box.dstZ,
		.dstMemoryType = box.dstMemoryType,
		.dstDevice = box.dstDevice,
		.dstArray = box.dstArray,
		.dstPitch = box.dstPitch,
		.dstHeight = box.dstHeight,
		.WidthInBytes = box.WidthInBytes,
		.Height = box.Height,
		.Depth = box.Depth,
	};
	error = rt_context_get(params->dstDevice, &peer.dstContext);
	if (!error)
		error = rt_context_get(params->srcDevice, &peer.srcContext);
	if (error)
		return error;
	if (order.is_sync)
		return rt_driver.cuMemcpy3DPeer(&peer);
	return rt_order_end(order, rt_driver.cuMemcpy3DPeerAsync(&peer, order.stream));
}

/*
 * Variables
 */

int rt_copy_symbol(const void *symbol, size_t size, size_t offset, void **addressp)
{
	size_t symbol_size, end;
	int error = rt_symbol_find(symbol, addressp, &symbol_size);

	if (error)
		return error;
	if (__builtin_add_overflow(offset, size, &end) || end > symbol_size)
		return cudaErrorInvalidValue;
	*addressp = (char *)*addressp + offset;
	return 0;
}

int rt_copy_to_symbol(const void *symbol, const void *src, size_t size, size_t offset,
	cudaMemcpyKind kind, struct rt_order order)
{
	void *address;
	int error;

	if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
		kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	error = rt_copy_symbol(symbol, size, offset, &address);
	return error ? error : rt_copy(address, src, size, kind, order);
}

int rt_copy_from_symbol(void *dst, const void *symbol, size_t size, size_t offset,
	cudaMemcpyKind kind, struct rt_order order)
{
	void *address;
	int error;

	if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
		kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	error = rt_copy_symbol(symbol, size, offset, &address);
	return error ? error : rt_copy(dst, address, size, kind, order);
}

/*
 * Arrays
 */

int rt_copy_to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order)
{
	if (!dst)
		return cudaErrorInvalidResourceHandle;
	if (!width || !height)
		return 0;
	if (height > 1 && width > pitch)
		return cudaErrorInvalidPitchValue;
	return copy_rectangle(&(struct rt_side){ .array = dst, .x = x, .y = y },
		&(struct rt_side){ .address = src, .pitch = pitch }, width, height, kind,
		order);
}

int rt_copy_from_array(void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
	size_t width, size_t height, cudaMemcpyKind kind, struct rt_order order)
{
	if (!src)
		return cudaErrorInvalidResourceHandle;
	if (!width || !height)
		return 0;
	if (height > 1 && width > pitch)
		return cudaErrorInvalidPitchValue;
	return copy_rectangle(&(struct rt_side){ .address = dst, .pitch = pitch },
		&(struct rt_side){ .array = src, .x = x, .y = y }, width, height, kind,
		order);
}

int rt_copy_arrays(cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src,
	size_t src_x, size_t src_y, size_t width, size_t height, cudaMemcpyKind kind,
	struct rt_order order)
{
	if (!dst || !src)
		return cudaErrorInvalidResourceHandle;
	return copy_rectangle(&(struct rt_side){ .array = dst, .x = dst_x, .y = dst_y },
		&(struct rt_side){ .array = src, .x = src_x, .y = src_y }, width, height,
		kind, order);
}

/* Bytes from (x, y) on: the rest of the first row, whole rows, the start of the last. */
static int copy_flat(cudaArray_const_t array, size_t x, size_t y, char *memory,
	size_t size, bool to_array, cudaMemcpyKind kind, struct rt_order order)
{
	size_t row, done = 0;
	int error;

	if (!array)
		return cudaErrorInvalidResourceHandle;
	error = rt_array_row(array, &row);
	if (!error && (!row || x >= row))
		error = cudaErrorInvalidValue;
	while (!error && done < size) {
		size_t width = size - done < row - x ? size - done : row - x;
		size_t height = x || width < row ? 1 : (size - done) / row;
		struct rt_side side = { .array = array, .x = x, .y = y };
		struct rt_side flat = { .address = memory + done, .pitch = width };

		error = copy_rectangle(to_array ? &side : &flat, to_array ? &flat : &side,
			width, height, kind, order);
		done += width * height;
		y += height;
		x = 0;
	}
	return error;
}

int rt_copy_flat_to_array(cudaArray_t dst, size_t x, size_t y, const void *src,
	size_t size, cudaMemcpyKind kind, struct rt_order order)
{
	return copy_flat(dst, x, y, (char *)src, size, true, kind, order);
}

int rt_copy_flat_from_array(void *dst, cudaArray_const_t src, size_t x, size_t y,
	size_t size, cudaMemcpyKind kind, struct rt_order order)
{
	return copy_flat(src, x, y, dst, size, false, kind, order);
}
