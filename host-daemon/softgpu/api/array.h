/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arrays: device memory that kernels access through textures and surfaces
 *
 * Texels are stored row by row, slice by slice, layer by layer; a mipmapped array is one
 * piece of memory for all its levels, each of which is an array too. That memory has no
 * address in the API.
 */

#include "api/api.h"
#include "exec/texture.h"

/* The largest sizes; the attributes of the device say the same. */
#define ARRAY_1D_MAX 131072u
#define ARRAY_2D_MAX 65536u
#define ARRAY_3D_MAX 16384u
#define ARRAY_LAYERED_MAX 32768u
#define ARRAY_LAYERS_MAX 2048u
#define ARRAY_CUBE_MAX 32768u
#define ARRAY_CUBE_LAYERS_MAX 340u

/* Textures over memory that is no array. */
#define TEXTURE_LINEAR_MAX (1u << 28)
#define TEXTURE_PITCH_WIDTH_MAX 131072u
#define TEXTURE_PITCH_HEIGHT_MAX 65000u
#define TEXTURE_PITCH_MAX 2097120u
#define TEXTURE_ALIGNMENT 512u
#define TEXTURE_PITCH_ALIGNMENT 32u

struct CUarray_st {
	struct object object;
	struct CUmipmappedArray_st *mipmap; /* whose level it is, or NULL */
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	struct texture_level level;
};

struct CUmipmappedArray_st {
	struct object object;
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	uint64_t address;
	uint32_t n_levels;
	struct CUarray_st levels[TEXTURE_LEVELS_MAX];
};

/* Return: whether channels are stored so. */
bool array_format(CUarray_format format, enum texel_format *formatp);

/* Return: whether they are fractions, whatever a texture reads. */
bool array_format_is_fraction(CUarray_format format);

/* Return: whether there may be as many channels. */
bool array_format_has(CUarray_format format, unsigned int n_channels);

/* Return: why they are not: CUDA_ERROR_NOT_SUPPORTED of a format that CUDA has. */
CUresult array_format_refusal(CUarray_format format);

/* A box in an array, in bytes across. */
struct array_box {
	uint64_t x, y, z;
	uint64_t width, height, depth;
};

/* Return: whether it is an array of the context and the box is within it, in whole texels
 * across. */
bool array_find(CUarray array, const struct array_box *box, uint64_t *addressp,
	uint64_t *pitchp, uint64_t *rowsp);
