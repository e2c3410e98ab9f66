/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tensor maps: what the bytes of a CUtensorMap mean on softgpu
 *
 * The API encodes a tensor in this form (api/tensor.c), and programs pass the 128 bytes
 * to kernels without looking at them. A kernel may pass anything instead: whoever decodes
 * a map has to check mark and version, and every number that is an index.
 */

#include <stdint.h>

#define SOFTGPU_TENSOR_MARK 0x6d746773u
#define SOFTGPU_TENSOR_VERSION 1u

#define SOFTGPU_TENSOR_RANK_MAX 5u
#define SOFTGPU_TENSOR_OFFSETS_MAX (SOFTGPU_TENSOR_RANK_MAX - 2)

/* With the numbers of CUtensorMapDataType. */
enum softgpu_tensor_type {
	SOFTGPU_TENSOR_U8,
	SOFTGPU_TENSOR_U16,
	SOFTGPU_TENSOR_U32,
	SOFTGPU_TENSOR_S32,
	SOFTGPU_TENSOR_U64,
	SOFTGPU_TENSOR_S64,
	SOFTGPU_TENSOR_F16,
	SOFTGPU_TENSOR_F32,
	SOFTGPU_TENSOR_F64,
	SOFTGPU_TENSOR_BF16,
	SOFTGPU_TENSOR_F32_FTZ,
	SOFTGPU_TENSOR_TF32,
	SOFTGPU_TENSOR_TF32_FTZ,
	SOFTGPU_TENSOR_B4,	  /* 16 elements of 4 bits in 8 bytes */
	SOFTGPU_TENSOR_B4_SPREAD, /* in shared memory in 16 */
	SOFTGPU_TENSOR_B6_SPREAD, /* 16 elements of 6 bits in 12 bytes, there in 16 */
	_SOFTGPU_TENSOR_TYPE_N,
};

/* With those of CUtensorMapSwizzle: the atoms are of the swizzle of 128 bytes. */
enum softgpu_tensor_swizzle {
	SOFTGPU_SWIZZLE_NONE,
	SOFTGPU_SWIZZLE_32,
	SOFTGPU_SWIZZLE_64,
	SOFTGPU_SWIZZLE_128,
	SOFTGPU_SWIZZLE_ATOM_32,
	SOFTGPU_SWIZZLE_ATOM_32_FLIP_8,
	SOFTGPU_SWIZZLE_ATOM_64,
	_SOFTGPU_SWIZZLE_N,
};

/* Of CUtensorMapInterleave; a slice of channels has so many times 16 bytes. */
#define SOFTGPU_INTERLEAVE_MAX 2u

enum softgpu_tensor_kind {
	SOFTGPU_TENSOR_TILED,
	SOFTGPU_TENSOR_IM2COL,
	SOFTGPU_TENSOR_IM2COL_WIDE,
};

/* Arrays begin with the innermost dimension. Unused elements are 0. */
struct softgpu_tensor_map {
	uint32_t mark;
	uint8_t version;
	uint8_t kind; /* enum softgpu_tensor_kind */
	uint8_t type; /* enum softgpu_tensor_type */
	uint8_t rank;
	uint64_t address;
	uint64_t strides[SOFTGPU_TENSOR_RANK_MAX -
			 1];			   /* of dimensions 1 and up, in bytes */
	uint32_t last[SOFTGPU_TENSOR_RANK_MAX];	   /* sizes less 1 */
	int16_t lower[SOFTGPU_TENSOR_OFFSETS_MAX]; /* corners, im2col: of W, H, D */
	int16_t upper[SOFTGPU_TENSOR_OFFSETS_MAX];
	uint16_t n_channels; /* im2col */
	uint16_t n_pixels;
	uint8_t box_last[SOFTGPU_TENSOR_RANK_MAX]; /* tiled: elements of the box, less 1
						    */
	uint8_t steps[SOFTGPU_TENSOR_RANK_MAX];
	uint8_t interleave; /* CUtensorMapInterleave */
	uint8_t swizzle;    /* enum softgpu_tensor_swizzle */
	uint8_t promotion;  /* CUtensorMapL2promotion */
	uint8_t fills_nan;  /* elements out of bounds */
	uint8_t mode;	    /* wide: CUtensorMapIm2ColWideMode */
	uint8_t unused[29];
};

_Static_assert(sizeof(struct softgpu_tensor_map) == 128, "as large as CUtensorMap");
