/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: tensor maps
 *
 * The host's driver encodes them, because their format is the device's. Arrays are sent
 * with as many elements as the rank says, so an illegal rank is refused here; everything
 * else is the driver's to check.
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "g-remote.h"
#include "process/call.h"

#define RANK_MAX 5u
#define MAP_ALIGNMENT 64u

static bool is_map(const CUtensorMap *map)
{
	return map && (uintptr_t)map % MAP_ALIGNMENT == 0;
}

static bool is_legal(const CUtensorMap *map, cuuint32_t rank, cuuint32_t rank_min)
{
	return is_map(map) && rank >= rank_min && rank <= RANK_MAX;
}

static ProtobufCBinaryData bytes_of(const void *array, size_t n, size_t size)
{
	return (ProtobufCBinaryData){ n * size, (uint8_t *)(uintptr_t)array };
}

static CUresult take_map(const ProtobufCBinaryData *bytes, CUtensorMap *map)
{
	if (bytes->len != sizeof(*map))
		return CUDA_ERROR_UNKNOWN;
	memcpy(map, bytes->data, sizeof(*map));
	return CUDA_SUCCESS;
}

/* The fields that the three requests share. */
#define SET_TENSOR(_request)                                                             \
	do {                                                                             \
		(_request)->tensor_data_type = (int32_t)tensorDataType;                  \
		(_request)->tensor_rank = tensorRank;                                    \
		(_request)->global_address = (uint64_t)(uintptr_t)globalAddress;         \
		(_request)->interleave = (int32_t)interleave;                            \
		(_request)->swizzle = (int32_t)swizzle;                                  \
		(_request)->l2_promotion = (int32_t)l2Promotion;                         \
		(_request)->oob_fill = (int32_t)oobFill;                                 \
		(_request)->sizes = bytes_of(globalDim, tensorRank, sizeof(*globalDim)); \
		(_request)->strides =                                                    \
			bytes_of(globalStrides, tensorRank - 1, sizeof(*globalStrides)); \
		(_request)->steps =                                                      \
			bytes_of(elementStrides, tensorRank, sizeof(*elementStrides));   \
	} while (0)

CUresult shim_cuTensorMapEncodeTiled(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	Vgpu__CuTensorMapEncodeTiledRequest request =
		VGPU__CU_TENSOR_MAP_ENCODE_TILED_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTensorMapEncodeTiled);
	const ProtobufCMessage *message;
	CUresult result;

	if (!is_legal(tensorMap, tensorRank, 1) || !globalDim || !boxDim ||
		!elementStrides || (tensorRank > 1 && !globalStrides))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	SET_TENSOR(&request);
	request.box = bytes_of(boxDim, tensorRank, sizeof(*boxDim));
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tensor_map_encode_tiled_reply__descriptor, &message);
	return result == CUDA_SUCCESS
		       ? take_map(&((const Vgpu__CuTensorMapEncodeTiledReply *)message)
					   ->map,
				 tensorMap)
		       : result;
}

CUresult shim_cuTensorMapEncodeIm2col(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
	cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	Vgpu__CuTensorMapEncodeIm2colRequest request =
		VGPU__CU_TENSOR_MAP_ENCODE_IM2COL_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTensorMapEncodeIm2col);
	const ProtobufCMessage *message;
	CUresult result;

	if (!is_legal(tensorMap, tensorRank, 3) || !globalDim || !globalStrides ||
		!pixelBoxLowerCorner || !pixelBoxUpperCorner || !elementStrides)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	SET_TENSOR(&request);
	request.lower = bytes_of(
		pixelBoxLowerCorner, tensorRank - 2, sizeof(*pixelBoxLowerCorner));
	request.upper = bytes_of(
		pixelBoxUpperCorner, tensorRank - 2, sizeof(*pixelBoxUpperCorner));
	request.channels_per_pixel = channelsPerPixel;
	request.pixels_per_column = pixelsPerColumn;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tensor_map_encode_im2col_reply__descriptor, &message);
	return result == CUDA_SUCCESS
		       ? take_map(&((const Vgpu__CuTensorMapEncodeIm2colReply *)message)
					   ->map,
				 tensorMap)
		       : result;
}

CUresult shim_cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
	cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	Vgpu__CuTensorMapEncodeIm2colWideRequest request =
		VGPU__CU_TENSOR_MAP_ENCODE_IM2COL_WIDE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTensorMapEncodeIm2colWide);
	const ProtobufCMessage *message;
	CUresult result;

	if (!is_legal(tensorMap, tensorRank, 3) || !globalDim || !globalStrides ||
		!elementStrides)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	SET_TENSOR(&request);
	request.pixel_box_lower_corner_width = pixelBoxLowerCornerWidth;
	request.pixel_box_upper_corner_width = pixelBoxUpperCornerWidth;
	request.channels_per_pixel = channelsPerPixel;
	request.pixels_per_column = pixelsPerColumn;
	request.mode = (int32_t)mode;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tensor_map_encode_im2col_wide_reply__descriptor, &message);
	return result == CUDA_SUCCESS
		       ? take_map(&((const Vgpu__CuTensorMapEncodeIm2colWideReply *)
						  message)
					   ->map,
				 tensorMap)
		       : result;
}

CUresult shim_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	Vgpu__CuTensorMapReplaceAddressRequest request =
		VGPU__CU_TENSOR_MAP_REPLACE_ADDRESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTensorMapReplaceAddress);
	const ProtobufCMessage *message;
	CUresult result;

	if (!is_map(tensorMap))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.global_address = (uint64_t)(uintptr_t)globalAddress;
	request.before = bytes_of(tensorMap, 1, sizeof(*tensorMap));
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tensor_map_replace_address_reply__descriptor, &message);
	return result == CUDA_SUCCESS
		       ? take_map(&((const Vgpu__CuTensorMapReplaceAddressReply *)message)
					   ->map,
				 tensorMap)
		       : result;
}
