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
	uint8_t type; /* CUtensorMapDataType */
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
	uint8_t swizzle;    /* CUtensorMapSwizzle */
	uint8_t promotion;  /* CUtensorMapL2promotion */
	uint8_t fills_nan;  /* elements out of bounds */
	uint8_t mode;	    /* wide: CUtensorMapIm2ColWideMode */
	uint8_t unused[29];
};

_Static_assert(sizeof(struct softgpu_tensor_map) == 128, "as large as CUtensorMap");
