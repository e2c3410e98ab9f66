/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texture and surface objects, as kernels see them
 *
 * A program passes a number to a kernel, and a kernel may use any number: it is looked up
 * in a table at each use. An entry is filled before its number is published and does not
 * change before that is withdrawn; entries are never freed. A kernel that uses an object
 * while a call destroys it may see parts of the next one. So entries are not trusted:
 * indices are bounded where they are used, and each texel is accessed only if the page
 * maps permit it.
 */

#include "exec/engine.h"

#define TEXTURE_LEVELS_MAX 18u

/* A number: index in the table, generation from 1, and a bit that no index has. */
#define TEXTURE_INDEX_BITS 16
#define TEXTURE_CHUNK 256u
#define TEXTURE_CHUNKS ((1u << TEXTURE_INDEX_BITS) / TEXTURE_CHUNK)
#define TEXTURE_SURFACE_BIT (UINT64_C(1) << 62)

/* How a channel is stored. */
enum texel_format {
	TEXEL_U8,
	TEXEL_S8,
	TEXEL_U16,
	TEXEL_S16,
	TEXEL_U32,
	TEXEL_S32,
	TEXEL_F16,
	TEXEL_F32,
	_TEXEL_N,
};

/* The numbers of CUaddress_mode. */
enum texture_address {
	TEXTURE_WRAP,
	TEXTURE_CLAMP,
	TEXTURE_MIRROR,
	TEXTURE_BORDER,
};

/* Rows and slices of one level, all in device memory. */
struct texture_level {
	uint64_t address;
	uint64_t pitch;
	uint64_t slice; /* also from layer to layer, from face to face */
	uint32_t width;
	uint32_t height;
	uint32_t depth; /* of a layered one: how many layers; 6 faces count as such */
};

struct softgpu_texture {
	uint64_t number; /* 0: none; atomic, partner in softgpu_texture_find() */
	uint32_t generation;

	uint32_t n_levels;
	struct texture_level levels[TEXTURE_LEVELS_MAX];
	uint8_t format; /* enum texel_format */
	uint8_t block;	/* enum texel_block; levels have sizes in texels all the same */
	uint8_t n_channels;
	uint8_t n_dimensions; /* without layers */
	bool is_fraction;     /* the format is: integers that are never read as such */
	bool is_layered;
	bool is_cube;

	/* Textures only. */
	bool is_linear_memory; /* one row; only integer coordinates */
	bool is_normalized;    /* coordinates run from 0 to 1 */
	bool reads_integers;   /* integers as they are, instead of -1 to 1 */
	bool is_srgb;
	bool filters_linearly;
	bool filters_levels;
	bool is_seamless;	  /* filters reach over the edges of a cube's faces */
	uint8_t max_anisotropy;	  /* the most probes of a fetch with gradients */
	uint8_t address_modes[3]; /* enum texture_address */
	float level_bias;
	float level_min;
	float level_max;
	float border[4];
};

struct softgpu_textures {
	struct softgpu_texture *chunks[TEXTURE_CHUNKS]; /* atomic; only appear */
};

/* Return: the live object of that number, or NULL. */
static inline const struct softgpu_texture *softgpu_texture_find(
	const struct softgpu_textures *textures, uint64_t number)
{
	uint32_t index = number & ((1u << TEXTURE_INDEX_BITS) - 1);
	const struct softgpu_texture *chunk, *texture;

	if (!textures || !number)
		return NULL;
	chunk = __atomic_load_n(
		&textures->chunks[index / TEXTURE_CHUNK], __ATOMIC_ACQUIRE);
	if (!chunk)
		return NULL;
	texture = &chunk[index % TEXTURE_CHUNK];
	return __atomic_load_n(&texture->number, __ATOMIC_ACQUIRE) == number ? texture
									     : NULL;
}

/* Return: bytes of a channel. */
uint32_t texel_channel_size(unsigned int format);

/* The parameters of an instruction; see the operands of tex in the PTX ISA. */
enum texture_shape {
	TEXTURE_1D,
	TEXTURE_2D,
	TEXTURE_3D,
	TEXTURE_1D_LAYERED,
	TEXTURE_2D_LAYERED,
	TEXTURE_CUBE,
	TEXTURE_CUBE_LAYERED,
	_TEXTURE_SHAPES,
};

struct texture_query {
	const struct softgpu_space *space;
	const struct softgpu_texture *texture;
	uint8_t shape;	 /* enum texture_shape */
	int8_t gather;	 /* channel whose four texels are wanted, -1: filter */
	bool is_integer; /* coordinates are integers: a texel is fetched */
	bool has_gradient;
	uint32_t layer;
	uint32_t coordinates[3]; /* bits of float or int */
	int8_t offset[3];	 /* texels, added to the indices */
	float level;
	float gradient[2][3];
};

/*
 * softgpu_texture_sample() - one fetch, filtered as the texture says
 * @result: four channels: bits of floats, or integers where these are read as such
 * @faultp: the address of a texel that is no device memory
 *
 * Return: whether all texels could be read.
 */
bool softgpu_texture_sample(
	const struct texture_query *query, uint32_t result[4], uint64_t *faultp);

/* Where a surface's texel is, by a byte offset in its row. */
struct surface_place {
	int32_t x; /* in bytes */
	int32_t y;
	int32_t z; /* slice or layer */
};

enum surface_bounds {
	SURFACE_TRAP,
	SURFACE_CLAMP,
	SURFACE_ZERO,
};

enum {
	_SURFACE_E_SUCCESS,
	SURFACE_E_OUTSIDE, /* neither read nor written: zero */
	SURFACE_E_TRAP,
};

/* Return: 0 and the address of @size bytes in a surface, or SURFACE_E_*. */
int softgpu_surface_find(const struct softgpu_texture *surface, unsigned int shape,
	const struct surface_place *place, uint32_t size, enum surface_bounds bounds,
	uint64_t *addressp);

/* The queries of txq and suq. */
enum texture_property {
	TEXTURE_WIDTH,
	TEXTURE_HEIGHT,
	TEXTURE_DEPTH,
	TEXTURE_LAYERS,
	TEXTURE_N_LEVELS,
	TEXTURE_DATA_TYPE,
	TEXTURE_ORDER,
	TEXTURE_IS_NORMALIZED,
	TEXTURE_FILTER,
	TEXTURE_ADDRESS_0,
	TEXTURE_ADDRESS_1,
	TEXTURE_ADDRESS_2,
	TEXTURE_N_SAMPLES,
	TEXTURE_IS_LINEAR,
	TEXTURE_IS_UNNORMALIZED,
	_TEXTURE_PROPERTIES,
};

uint32_t softgpu_texture_property(
	const struct softgpu_texture *texture, unsigned int property, uint32_t level);
