/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps
 *
 * The rules are those of the CUDA manual, "Tensor Map Object Management". Maps can be
 * encoded from compute capability 9.0 on, wide ones from 10.0 on.
 */

#include <string.h>

#include "api/api.h"
#include "exec/tensor-map.h"

_Static_assert(
	(int)SOFTGPU_TENSOR_B6_SPREAD == (int)CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
		(int)SOFTGPU_TENSOR_BF16 == (int)CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 &&
		(int)SOFTGPU_TENSOR_TF32_FTZ == (int)CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
	"the API's numbers");
_Static_assert((int)SOFTGPU_SWIZZLE_128 == (int)CU_TENSOR_MAP_SWIZZLE_128B &&
		       (int)SOFTGPU_SWIZZLE_ATOM_64 ==
			       (int)CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
		       (int)SOFTGPU_INTERLEAVE_MAX == (int)CU_TENSOR_MAP_INTERLEAVE_32B,
	"the API's numbers");

#define CC_MIN 90u
#define CC_WIDE_MIN 100u

#define MAP_ALIGNMENT 64u
#define SIZE_MAX_ELEMENTS (UINT64_C(1) << 32)
#define STRIDE_LIMIT (UINT64_C(1) << 40)
#define BOX_MAX 256u
#define STEP_MAX 8u
#define PIXELS_MAX 1024u
#define PACKED_ELEMENTS 128u

/* What the three encoders have in common. */
struct tensor {
	CUtensorMap *map;
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *sizes;
	const cuuint64_t *strides;
	const cuuint32_t *steps;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

static unsigned int element_bits(CUtensorMapDataType type)
{
	switch (type) {
	case CU_TENSOR_MAP_DATA_TYPE_UINT8:
		return 8;
	case CU_TENSOR_MAP_DATA_TYPE_UINT16:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
	case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
		return 16;
	case CU_TENSOR_MAP_DATA_TYPE_UINT64:
	case CU_TENSOR_MAP_DATA_TYPE_INT64:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
		return 64;
	case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
	case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
		return 4;
	case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
		return 6;
	default:
		return 32;
	}
}

static bool is_real(CUtensorMapDataType type)
{
	return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
	       type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

/* Types whose elements have gaps between them in shared memory. */
static bool has_gaps(CUtensorMapDataType type)
{
	return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
	       type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

static bool has_legal_enums(const struct tensor *tensor)
{
	return (unsigned int)tensor->type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
	       (unsigned int)tensor->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
	       (unsigned int)tensor->swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
	       (unsigned int)tensor->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
	       (unsigned int)tensor->fill <=
		       CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
	       (!tensor->fill || is_real(tensor->type));
}

static bool has_legal_memory(const struct tensor *tensor)
{
	uint64_t alignment = tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ||
					     has_gaps(tensor->type)
				     ? 32
				     : 16;

	if (!tensor->address || (uintptr_t)tensor->address % alignment)
		return false;
	for (uint32_t i = 0; i < tensor->rank; i++)
		if (!tensor->sizes[i] || tensor->sizes[i] > SIZE_MAX_ELEMENTS)
			return false;
	if (has_gaps(tensor->type) && tensor->sizes[0] % PACKED_ELEMENTS)
		return false;
	if (tensor->type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B && tensor->sizes[0] % 2)
		return false;
	for (uint32_t i = 0; i + 1 < tensor->rank; i++)
		if (tensor->strides[i] % alignment || tensor->strides[i] >= STRIDE_LIMIT)
			return false;
	/* What the manual asserts. A dimension of one element is never stepped over. */
	for (uint32_t i = 1; i + 1 < tensor->rank; i++)
		if (tensor->sizes[i] > 1 && tensor->strides[i] < tensor->sizes[i])
			return false;
	return true;
}

static bool has_legal_steps(const struct tensor *tensor)
{
	uint32_t first = tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;

	for (uint32_t i = first; i < tensor->rank; i++)
		if (!tensor->steps[i] || tensor->steps[i] > STEP_MAX)
			return false;
	return true;
}

static uint64_t swizzle_span(CUtensorMapSwizzle swizzle)
{
	switch (swizzle) {
	case CU_TENSOR_MAP_SWIZZLE_NONE:
		return UINT64_MAX;
	case CU_TENSOR_MAP_SWIZZLE_32B:
		return 32;
	case CU_TENSOR_MAP_SWIZZLE_64B:
		return 64;
	default:
		return 128;
	}
}

static bool has_legal_layout(const struct tensor *tensor, uint64_t n_inner)
{
	CUtensorMapSwizzle swizzle = tensor->swizzle;

	if (tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
		n_inner * element_bits(tensor->type) / 8 > swizzle_span(swizzle))
		return false;
	if (tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B &&
		swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
		return false;
	if (!has_gaps(tensor->type))
		return true;
	if (swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B)
		return tensor->type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
		       tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
	if (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE &&
		swizzle != CU_TENSOR_MAP_SWIZZLE_128B &&
		swizzle != CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B)
		return false;
	return tensor->type != CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B ||
	       tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
}

/* @n_inner: elements of the innermost dimension that are accessed at once */
static CUresult check(const struct tensor *tensor, uint32_t rank_min, unsigned int cc_min,
	uint64_t n_inner)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (softgpu_device.cc < cc_min)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!tensor->map || (uintptr_t)tensor->map % MAP_ALIGNMENT || !tensor->sizes ||
		!tensor->steps || tensor->rank < rank_min ||
		tensor->rank > SOFTGPU_TENSOR_RANK_MAX ||
		(tensor->rank > 1 && !tensor->strides) || !has_legal_enums(tensor) ||
		!has_legal_memory(tensor) || !has_legal_steps(tensor) ||
		!has_legal_layout(tensor, n_inner))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static void describe(const struct tensor *tensor, enum softgpu_tensor_kind kind,
	struct softgpu_tensor_map *map)
{
	*map = (struct softgpu_tensor_map){
		.mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.kind = kind,
		.type = (uint8_t)tensor->type,
		.rank = (uint8_t)tensor->rank,
		.address = (uint64_t)(uintptr_t)tensor->address,
		.interleave = (uint8_t)tensor->interleave,
		.swizzle = (uint8_t)tensor->swizzle,
		.promotion = (uint8_t)tensor->promotion,
		.fills_nan = (uint8_t)tensor->fill,
	};
	for (uint32_t i = 0; i < tensor->rank; i++) {
		map->last[i] = (uint32_t)(tensor->sizes[i] - 1);
		map->steps[i] = (uint8_t)tensor->steps[i];
	}
	/* Which is ignored. */
	if (tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE)
		map->steps[0] = 1;
	for (uint32_t i = 0; i + 1 < tensor->rank; i++)
		map->strides[i] = tensor->strides[i];
}

/*
 * Tiles
 */

static bool has_legal_box(const struct tensor *tensor, const cuuint32_t *box)
{
	for (uint32_t i = 0; i < tensor->rank; i++)
		if (!box[i] || box[i] > BOX_MAX)
			return false;
	if (has_gaps(tensor->type) && box[0] != PACKED_ELEMENTS)
		return false;
	return tensor->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
	       box[0] * element_bits(tensor->type) % (16 * 8) == 0;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	API_CALL;
	const struct tensor tensor = { tensorMap, tensorDataType, tensorRank,
		globalAddress, globalDim, globalStrides, elementStrides, interleave,
		swizzle, l2Promotion, oobFill };
	struct softgpu_tensor_map map;
	CUresult result;

	result = check(&tensor, interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 3,
		CC_MIN, boxDim && tensorRank ? boxDim[0] : 0);
	if (result)
		return result;
	if (!boxDim || !has_legal_box(&tensor, boxDim))
		return CUDA_ERROR_INVALID_VALUE;
	describe(&tensor, SOFTGPU_TENSOR_TILED, &map);
	for (uint32_t i = 0; i < tensorRank; i++)
		map.box_last[i] = (uint8_t)(boxDim[i] - 1);
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}

/*
 * Im2col
 */

/* The offsets share so many bits. */
static int offset_limit(uint32_t n_offsets)
{
	static const int limits[] = { 32768, 128, 16 };

	return limits[n_offsets - 1];
}

static bool has_legal_corners(
	const struct tensor *tensor, const int *lower, const int *upper, uint32_t n)
{
	int limit = offset_limit(n);

	for (uint32_t i = 0; i < n; i++)
		if (lower[i] < -limit || lower[i] >= limit || upper[i] < -limit ||
			upper[i] >= limit ||
			(int64_t)tensor->sizes[i + 1] + upper[i] - lower[i] <= 0)
			return false;
	return true;
}

static bool has_legal_counts(
	const struct tensor *tensor, cuuint32_t n_channels, cuuint32_t n_pixels)
{
	return n_channels && n_channels <= BOX_MAX && n_pixels &&
	       n_pixels <= PIXELS_MAX &&
	       (!has_gaps(tensor->type) || n_channels == PACKED_ELEMENTS);
}

static void describe_pixels(const struct tensor *tensor, enum softgpu_tensor_kind kind,
	const int *lower, const int *upper, uint32_t n_offsets,
	struct softgpu_tensor_map *map)
{
	describe(tensor, kind, map);
	for (uint32_t i = 0; i < n_offsets; i++) {
		map->lower[i] = (int16_t)lower[i];
		map->upper[i] = (int16_t)upper[i];
	}
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
	cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	API_CALL;
	const struct tensor tensor = { tensorMap, tensorDataType, tensorRank,
		globalAddress, globalDim, globalStrides, elementStrides, interleave,
		swizzle, l2Promotion, oobFill };
	struct softgpu_tensor_map map;
	CUresult result;

	result = check(&tensor, 3, CC_MIN, channelsPerPixel);
	if (result)
		return result;
	if (!pixelBoxLowerCorner || !pixelBoxUpperCorner ||
		!has_legal_corners(&tensor, pixelBoxLowerCorner, pixelBoxUpperCorner,
			tensorRank - 2) ||
		!has_legal_counts(&tensor, channelsPerPixel, pixelsPerColumn))
		return CUDA_ERROR_INVALID_VALUE;
	describe_pixels(&tensor, SOFTGPU_TENSOR_IM2COL, pixelBoxLowerCorner,
		pixelBoxUpperCorner, tensorRank - 2, &map);
	map.n_channels = (uint16_t)channelsPerPixel;
	map.n_pixels = (uint16_t)pixelsPerColumn;
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
	int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
	cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	API_CALL;
	const struct tensor tensor = { tensorMap, tensorDataType, tensorRank,
		globalAddress, globalDim, globalStrides, elementStrides, interleave,
		swizzle, l2Promotion, oobFill };
	bool is_w128 = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128;
	struct softgpu_tensor_map map;
	CUresult result;

	result = check(&tensor, 3, CC_WIDE_MIN, channelsPerPixel);
	if (result)
		return result;
	if ((unsigned int)mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 ||
		(swizzle != CU_TENSOR_MAP_SWIZZLE_64B &&
			swizzle != CU_TENSOR_MAP_SWIZZLE_128B &&
			swizzle != CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B) ||
		!has_legal_corners(&tensor, &pixelBoxLowerCornerWidth,
			&pixelBoxUpperCornerWidth, 1) ||
		!has_legal_counts(
			&tensor, channelsPerPixel, is_w128 ? 1 : pixelsPerColumn))
		return CUDA_ERROR_INVALID_VALUE;
	describe_pixels(&tensor, SOFTGPU_TENSOR_IM2COL_WIDE, &pixelBoxLowerCornerWidth,
		&pixelBoxUpperCornerWidth, 1, &map);
	map.n_channels = (uint16_t)channelsPerPixel;
	map.n_pixels = is_w128 ? 128 : (uint16_t)pixelsPerColumn;
	map.mode = (uint8_t)mode;
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}

/*
 * Changes
 */

CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	API_CALL;
	struct softgpu_tensor_map map;
	uint64_t alignment;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!tensorMap || (uintptr_t)tensorMap % MAP_ALIGNMENT)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&map, tensorMap, sizeof(map));
	if (map.mark != SOFTGPU_TENSOR_MARK || map.version != SOFTGPU_TENSOR_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	alignment = map.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ||
				    has_gaps((CUtensorMapDataType)map.type)
			    ? 32
			    : 16;
	if (!globalAddress || (uintptr_t)globalAddress % alignment)
		return CUDA_ERROR_INVALID_VALUE;
	map.address = (uint64_t)(uintptr_t)globalAddress;
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}
