/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fetch: a texture instruction for all lanes of a warp at once
 *
 * The arithmetic is the sampler's, with one loop over the lanes for each of its steps,
 * and its results are identical to the bit. It handles nearly all fetches: every lane
 * uses the same texture, which has one level, is no cube, and has neither compressed
 * blocks nor a conversion from sRGB. The sampler handles all others, lane by lane, and
 * also a fetch with an unreadable texel, because it finds the lane and the address.
 */

#include "exec/half.h"
#include "exec/memory.h"
#include "exec/near.h"
#include "exec/texture.h"

/* Sizes up to here leave room for any sum of indices in 32 bits. */
#define FETCH_SIZE_MAX (1u << 28)

/* An index of the border, outside of the texture. */
#define FETCH_BORDER (-1)

typedef uint32_t fetch_row[LANES];

/* The fields of a texture, read once: another thread may replace the object. */
struct fetch {
	const struct softgpu_space *space;
	uint32_t mask; /* the lanes that fetch */
	uint64_t address;
	uint32_t pitch;
	uint32_t slice;
	uint32_t sizes[3];
	uint32_t n_layers; /* 0: the shape has none */
	uint32_t modes[3];
	uint32_t n_axes;
	uint32_t n_channels;
	uint32_t channel; /* bytes */
	uint32_t texel;
	uint32_t format;
	uint32_t border[4];
	bool is_integer;
	bool is_normalized;
	bool is_linear;
	bool floats;
	bool has_border;
};

/* One axis: the texel of each lane, or two and the weight of the second in 256ths. */
struct fetch_axis {
	int32_t first[LANES] __attribute__((aligned(64)));
	int32_t second[LANES] __attribute__((aligned(64)));
	uint32_t weight[LANES] __attribute__((aligned(64)));
	bool is_weighed; /* the weight of a lane that fetches is not 0 */
};

struct fetch_texels {
	fetch_row channels[4] __attribute__((aligned(64)));
};

/*
 * Textures
 */

SCALAR bool fetch_reads_floats(uint32_t format, bool reads_integers)
{
	switch (format) {
	case TEXEL_F16:
	case TEXEL_F32:
		return true;
	case TEXEL_U32:
	case TEXEL_S32:
		return false;
	default:
		return !reads_integers;
	}
}

/* Return: whether the sizes fit, and offsets of all texels in 32 bits. */
static inline bool fetch_set_level(struct fetch *f, const struct texture_level *level)
{
	uint64_t pitch = level->pitch, slice = level->slice, end;

	f->address = level->address;
	f->sizes[0] = level->width ? level->width : 1;
	f->sizes[1] = level->height ? level->height : 1;
	f->sizes[2] = level->depth ? level->depth : 1;
	if (f->sizes[0] > FETCH_SIZE_MAX || f->sizes[1] > FETCH_SIZE_MAX ||
		f->sizes[2] > FETCH_SIZE_MAX || pitch > UINT32_MAX || slice > UINT32_MAX)
		return false;
	f->pitch = (uint32_t)pitch;
	f->slice = (uint32_t)slice;
	end = (f->sizes[2] - 1) * slice;
	if (end > UINT32_MAX)
		return false;
	end += (f->sizes[1] - 1) * pitch;
	return end <= UINT32_MAX && end + (uint64_t)f->sizes[0] * f->texel <= UINT32_MAX;
}

/* Return: whether fetches by that instruction are of the plain kind. */
static inline bool fetch_init(
	struct fetch *f, const struct softgpu_texture *t, int32_t options)
{
	unsigned int shape = (uint32_t)options & TEX_SHAPE;
	struct texture_level level = t->levels[0];
	bool reads_integers = t->reads_integers, filters = t->filters_linearly;

	if (options & (TEX_GATHER | TEX_GRADIENT | TEX_OFFSETS | TEX_SAMPLER) ||
		shape >= TEXTURE_CUBE || t->is_cube || t->is_srgb || t->block ||
		t->n_levels > 1)
		return false;
	f->format = t->format;
	f->n_channels = t->n_channels;
	f->n_axes = t->n_dimensions < 3 ? t->n_dimensions : 3;
	f->is_normalized = t->is_normalized;
	f->is_integer = options & TEX_INTEGER;
	for (unsigned int i = 0; i < 3; i++)
		f->modes[i] = t->address_modes[i];
	memcpy(f->border, t->border, sizeof(f->border));
	/* From here on the copies alone are looked at. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (f->format >= _TEXEL_N ||
		(f->n_channels != 1 && f->n_channels != 2 && f->n_channels != 4))
		return false;
	f->channel = texel_channel_size(f->format);
	f->texel = f->channel * f->n_channels;
	f->floats = fetch_reads_floats(f->format, reads_integers);
	f->is_linear = filters && f->floats && !f->is_integer;
	f->has_border = f->is_integer;
	for (unsigned int i = 0; i < 3; i++) {
		if (!f->is_normalized && f->modes[i] != TEXTURE_BORDER)
			f->modes[i] = TEXTURE_CLAMP;
		f->has_border |= f->modes[i] > TEXTURE_MIRROR;
	}
	if (f->is_integer)
		memset(f->border, 0, sizeof(f->border));
	f->n_layers = 0;
	if (shape == TEXTURE_1D_LAYERED || shape == TEXTURE_2D_LAYERED)
		f->n_layers = level.depth;
	return fetch_set_level(f, &level);
}

/*
 * Indices
 */

/* A float as an int, far outside at most; NaN counts as 0. */
SCALAR int32_t fetch_index(float x)
{
	const float far = 1073741824.0f;
	float y = x > -far ? x : -far;

	y = y < far ? y : far;
	return x == x ? (int32_t)y : 0;
}

/* Coordinates in texels; repetition is taken off while it is still precise. */
SCALAR void fetch_scale(const struct fetch *f, unsigned int axis, const uint32_t *from,
	float *to, float shift)
{
	const float size = (float)f->sizes[axis];

	if (!f->is_normalized)
		EACH_LANE to[i] = make_f32(from[i]) - shift;
	else if (f->modes[axis] == TEXTURE_WRAP)
		EACH_LANE
		{
			float x = make_f32(from[i]);

			to[i] = (x - floorf(x)) * size - shift;
		}
	else if (f->modes[axis] == TEXTURE_MIRROR)
		EACH_LANE
		{
			float x = make_f32(from[i]);

			to[i] = (x - 2.0f * floorf(x * 0.5f)) * size - shift;
		}
	else
		EACH_LANE to[i] = make_f32(from[i]) * size - shift;
}

/* Brings indices into the texture; those that repeat are less than a period outside. */
SCALAR void fetch_place(const struct fetch *f, unsigned int axis, int32_t *index)
{
	int32_t n = (int32_t)f->sizes[axis];

	switch (f->modes[axis]) {
	case TEXTURE_WRAP:
		EACH_LANE
		{
			int32_t at = index[i];

			at = at < 0 ? at + n : at;
			index[i] = at >= n ? at - n : at;
		}
		break;
	case TEXTURE_MIRROR:
		EACH_LANE
		{
			int32_t at = index[i];

			at = at < 0 ? at + 2 * n : at;
			at = at >= 2 * n ? at - 2 * n : at;
			index[i] = at < n ? at : 2 * n - 1 - at;
		}
		break;
	case TEXTURE_CLAMP:
		EACH_LANE
		{
			int32_t at = index[i];

			at = at < 0 ? 0 : at;
			index[i] = at < n ? at : n - 1;
		}
		break;
	default:
		EACH_LANE
		{
			int32_t at = index[i];

			index[i] = at >= 0 && at < n ? at : FETCH_BORDER;
		}
		break;
	}
}

static inline void fetch_find_integer(const struct fetch *f, unsigned int axis,
	const uint32_t *from, struct fetch_axis *to)
{
	uint32_t n = f->sizes[axis];

	EACH_LANE to->first[i] = from[i] < n ? (int32_t)from[i] : FETCH_BORDER;
}

static inline void fetch_find_nearest(const struct fetch *f, unsigned int axis,
	const uint32_t *from, struct fetch_axis *to)
{
	float at[LANES] __attribute__((aligned(64)));

	fetch_scale(f, axis, from, at, 0.0f);
	EACH_LANE to->first[i] = fetch_index(floorf(at[i]));
	fetch_place(f, axis, to->first);
}

static inline void fetch_find_two(const struct fetch *f, unsigned int axis,
	const uint32_t *from, struct fetch_axis *to)
{
	float at[LANES] __attribute__((aligned(64)));
	const uint32_t mask = f->mask;
	uint32_t weighed = 0;

	fetch_scale(f, axis, from, at, 0.5f);
	EACH_LANE
	{
		float whole = floorf(at[i]), part = at[i] - whole;
		int32_t first = fetch_index(whole);
		uint32_t weight;

		/* Of an infinite coordinate there is no part. */
		part = part >= 0.0f ? part : 0.0f;
		part = part <= 1.0f ? part : 0.0f;
		weight = (uint32_t)(int32_t)(part * 256.0f + 0.5f);
		to->first[i] = first;
		to->second[i] = first + 1;
		to->weight[i] = weight;
		weighed |= mask & lane_bit[i] ? weight : 0;
	}
	to->is_weighed = weighed;
	fetch_place(f, axis, to->first);
	if (weighed)
		fetch_place(f, axis, to->second);
}

static inline void fetch_find(const struct fetch *f, const fetch_row *coordinates,
	const uint32_t *layers, struct fetch_axis axes[3])
{
	for (unsigned int i = 0; i < 3; i++) {
		axes[i].is_weighed = false;
		if (i >= f->n_axes)
			memset(axes[i].first, 0, sizeof(axes[i].first));
		else if (f->is_integer)
			fetch_find_integer(f, i, coordinates[i], &axes[i]);
		else if (f->is_linear)
			fetch_find_two(f, i, coordinates[i], &axes[i]);
		else
			fetch_find_nearest(f, i, coordinates[i], &axes[i]);
	}
	if (f->n_layers && f->n_axes < 3)
		EACH_LANE axes[2].first[i] =
			(int32_t)(layers[i] < f->n_layers ? layers[i] : f->n_layers - 1);
}

/*
 * Texels
 */

/* Offsets of all texels; what is not to be read gets one that is. Return: the lanes that
 * are to be read. */
SCALAR uint32_t fetch_offsets(const struct fetch *f, const int32_t *x, const int32_t *y,
	const int32_t *z, uint32_t *off)
{
	const uint32_t slice = f->slice, pitch = f->pitch, texel = f->texel;
	uint32_t outside = 0, read, fill;

	EACH_LANE off[i] =
		(uint32_t)z[i] * slice + (uint32_t)y[i] * pitch + (uint32_t)x[i] * texel;
	if (f->has_border)
		EACH_LANE outside |= (x[i] | y[i] | z[i]) < 0 ? lane_bit[i] : 0;
	read = f->mask & ~outside;
	if (!read)
		return 0;
	fill = off[__builtin_ctz(read)];
	if (read != UINT32_MAX)
		EACH_LANE off[i] = read & lane_bit[i] ? off[i] : fill;
	return read;
}

SCALAR bool fetch_is_allowed(const struct fetch *f, const uint32_t *off)
{
	uint32_t low = off[0], high = off[0];

	EACH_LANE
	{
		low = off[i] < low ? off[i] : low;
		high = off[i] > high ? off[i] : high;
	}
	return high - low < NEAR_PAGES * SOFTGPU_PAGE_SIZE &&
	       softgpu_space_check_range(f->space, f->address + low,
		       (uint64_t)(high - low) + f->texel, SOFTGPU_READ);
}

/* The words of all texels; smaller ones are at the low end of one. */
SCALAR void fetch_load(const struct fetch *f, const uint32_t *off, fetch_row words[4])
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)f->address;

#define FETCH_WORDS(_type, _n)                                                           \
	EACH_LANE                                                                        \
	{                                                                                \
		_type word[_n];                                                          \
                                                                                         \
		memcpy(word, from + off[i], sizeof(word));                               \
		for (int k = 0; k < _n; k++)                                             \
			words[k][i] = word[k];                                           \
	}

	switch (f->texel) {
	case 1:
		FETCH_WORDS(uint8_t, 1);
		break;
	case 2:
		FETCH_WORDS(uint16_t, 1);
		break;
	case 4:
		FETCH_WORDS(uint32_t, 1);
		break;
	case 8:
		FETCH_WORDS(uint32_t, 2);
		break;
	default:
		FETCH_WORDS(uint32_t, 4);
		break;
	}
#undef FETCH_WORDS
}

/* The divisor of a normalised channel. */
static const float fetch_most[_TEXEL_N] = { 255.0f, 127.0f, 65535.0f, 32767.0f };

SCALAR float fetch_part(float x, float most)
{
	x /= most;
	return x > -1.0f ? x : -1.0f;
}

/* Channel @k of all texels, as stored: small ones are widened by their sign. */
SCALAR void fetch_extract(
	const struct fetch *f, unsigned int k, fetch_row words[4], uint32_t *to)
{
	const unsigned int bits = 8 * f->channel, per_word = 4 / f->channel;
	const uint32_t *from = words[k / per_word];
	/* Shifts the channel to the top of the word, and back. */
	const unsigned int up = 32 - bits - k % per_word * bits, down = 32 - bits;

	if (f->format == TEXEL_S8 || f->format == TEXEL_S16)
		EACH_LANE to[i] = (uint32_t)((int32_t)(from[i] << up) >> down);
	else
		EACH_LANE to[i] = from[i] << up >> down;
}

/* The same as a float, where it is read as one. */
SCALAR void fetch_convert(const struct fetch *f, uint32_t *to)
{
	const float most = fetch_most[f->format];

	if (f->format == TEXEL_F16)
		EACH_LANE to[i] = bits_f32(half_to_f32((uint16_t)to[i]));
	else if (f->floats && most > 0.0f)
		EACH_LANE to[i] = bits_f32(fetch_part((float)(int32_t)to[i], most));
}

/* Return: whether all may be read. */
static inline bool fetch_read(const struct fetch *f, const int32_t *x, const int32_t *y,
	const int32_t *z, struct fetch_texels *to)
{
	fetch_row words[4] __attribute__((aligned(64)));
	uint32_t off[LANES] __attribute__((aligned(64)));
	uint32_t read = fetch_offsets(f, x, y, z, off), rest = f->floats ? 0x3f800000 : 1;

	if (read) {
		if (!fetch_is_allowed(f, off))
			return false;
		fetch_load(f, off, words);
		for (unsigned int k = 0; k < f->n_channels; k++) {
			fetch_extract(f, k, words, to->channels[k]);
			fetch_convert(f, to->channels[k]);
		}
	}
	for (unsigned int k = f->n_channels; k < 4; k++)
		EACH_LANE to->channels[k][i] = k < 3 ? 0 : rest;
	if (read == f->mask)
		return true;
	for (unsigned int k = 0; k < 4; k++) {
		const uint32_t border = f->border[k];

		EACH_LANE to->channels[k][i] =
			read & lane_bit[i] ? to->channels[k][i] : border;
	}
	return true;
}

/*
 * Means
 */

static inline void fetch_mix(const struct fetch *f, struct fetch_texels *a,
	const struct fetch_texels *b, const uint32_t *weight)
{
	/* Channels that a texture has not got are the same in all texels but the border.
	 */
	unsigned int n = f->has_border ? 4 : f->n_channels;

	for (unsigned int k = 0; k < n; k++)
		EACH_LANE
		{
			float x = make_f32(a->channels[k][i]), w;
			float y = make_f32(b->channels[k][i]);

			w = (float)(int32_t)weight[i] * (1.0f / 256.0f);
			y = (1.0f - w) * x + w * y;
			a->channels[k][i] = bits_f32(weight[i] ? canon(y) : x);
		}
}

/* One row of texels along the first axis. */
static inline bool fetch_filter_row(const struct fetch *f, const struct fetch_axis *axis,
	const int32_t *y, const int32_t *z, struct fetch_texels *to)
{
	struct fetch_texels other;

	if (!fetch_read(f, axis->first, y, z, to))
		return false;
	if (!axis->is_weighed)
		return true;
	if (!fetch_read(f, axis->second, y, z, &other))
		return false;
	fetch_mix(f, to, &other, axis->weight);
	return true;
}

static inline bool fetch_filter_plane(const struct fetch *f,
	const struct fetch_axis axes[3], const int32_t *z, struct fetch_texels *to)
{
	struct fetch_texels other;

	if (!fetch_filter_row(f, &axes[0], axes[1].first, z, to))
		return false;
	if (!axes[1].is_weighed)
		return true;
	if (!fetch_filter_row(f, &axes[0], axes[1].second, z, &other))
		return false;
	fetch_mix(f, to, &other, axes[1].weight);
	return true;
}

static inline bool fetch_filter(
	const struct fetch *f, const struct fetch_axis axes[3], struct fetch_texels *to)
{
	struct fetch_texels other;

	if (!fetch_filter_plane(f, axes, axes[2].first, to))
		return false;
	if (!axes[2].is_weighed)
		return true;
	if (!fetch_filter_plane(f, axes, axes[2].second, &other))
		return false;
	fetch_mix(f, to, &other, axes[2].weight);
	return true;
}

/*
 * fetch_warp() - what an instruction fetches in all lanes of @mask
 * @texture: the object that they all name
 * @coordinates, @layers: rows of operands
 *
 * Return: false where the sampler has to do it.
 */
static inline bool fetch_warp(const struct softgpu_space *space,
	const struct softgpu_texture *texture, int32_t options, uint32_t mask,
	const fetch_row *coordinates, const uint32_t *layers, struct fetch_texels *to)
{
	struct fetch f = { .space = space, .mask = mask };
	struct fetch_axis axes[3];

	if (!fetch_init(&f, texture, options))
		return false;
	fetch_find(&f, coordinates, layers, axes);
	return fetch_filter(&f, axes, to);
}
