/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampler: from coordinates to texels and their weighted mean
 *
 * Filtering follows the formulas of the CUDA programming guide: the weights have 8 bits
 * of fraction (and reach 1), a coordinate's texel is the one whose centre is next below.
 * Coordinates are any floats, so they are brought into the range of an int before they
 * become one: NaN counts as 0.
 */

#include <math.h>
#include <string.h>

#include "exec/cube.h"
#include "exec/half.h"
#include "exec/texel-block.h"
#include "exec/texture.h"

/* Beside enum texture_address: indices outside of the texture are kept. */
#define KEEP_OUTSIDE (TEXTURE_BORDER + 1)

#define ANISOTROPY_MAX 16u

/* Coordinates beyond this are as far outside as any. */
#define FAR 1073741824.0f

struct texel {
	uint32_t bits[4];
};

uint32_t texel_channel_size(unsigned int format)
{
	static const uint8_t sizes[_TEXEL_N] = { 1, 1, 2, 2, 4, 4, 2, 4 };

	return format < _TEXEL_N ? sizes[format] : 1;
}

/* Whether channels are read as floats: what filters needs that. */
static bool reads_floats(const struct softgpu_texture *t)
{
	if (t->block)
		return true;
	switch (t->format) {
	case TEXEL_F16:
	case TEXEL_F32:
		return true;
	case TEXEL_U32:
	case TEXEL_S32:
		return false;
	default:
		return !t->reads_integers;
	}
}

static float from_srgb(float c)
{
	return c <= 0.04045f ? c / 12.92f : powf((c + 0.055f) / 1.055f, 2.4f);
}

static uint32_t decode_channel(const struct softgpu_texture *t, unsigned int format,
	const uint8_t *from, bool floats, bool is_colour)
{
	uint16_t half = 0;
	uint32_t word = 0;
	float f;

	switch (format) {
	case TEXEL_U8:
		f = (float)*from / 255.0f;
		if (t->is_srgb && is_colour)
			f = from_srgb(f);
		return floats ? bits_f32(f) : *from;
	case TEXEL_S8:
		return floats ? bits_f32(fmaxf((float)(int8_t)*from / 127.0f, -1.0f))
			      : (uint32_t)(int8_t)*from;
	case TEXEL_U16:
		memcpy(&half, from, sizeof(half));
		return floats ? bits_f32((float)half / 65535.0f) : half;
	case TEXEL_S16:
		memcpy(&half, from, sizeof(half));
		return floats ? bits_f32(fmaxf((float)(int16_t)half / 32767.0f, -1.0f))
			      : (uint32_t)(int16_t)half;
	case TEXEL_F16:
		memcpy(&half, from, sizeof(half));
		return bits_f32(half_to_f32(half));
	default:
		memcpy(&word, from, sizeof(word));
		return word;
	}
}

/*
 * Indices
 */

/* A float as an int, far outside at most. */
static int32_t to_index(float x)
{
	if (!(x > -FAR))
		return x == x ? -(int32_t)FAR : 0;
	return x < FAR ? (int32_t)x : (int32_t)FAR;
}

/* The mode that applies: without normalized coordinates there is no repetition. */
static unsigned int mode_of(const struct softgpu_texture *t, unsigned int axis)
{
	unsigned int mode = t->address_modes[axis];

	return t->is_normalized || mode == TEXTURE_BORDER ? mode : TEXTURE_CLAMP;
}

/* Return: the index within [0, size), or -1 for the border. */
static int64_t place_index(int64_t i, uint32_t size, unsigned int mode)
{
	int64_t n = size;

	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case TEXTURE_WRAP:
		i %= n;
		return i < 0 ? i + n : i;
	case TEXTURE_MIRROR:
		i %= 2 * n;
		i = i < 0 ? i + 2 * n : i;
		return i < n ? i : 2 * n - 1 - i;
	case TEXTURE_CLAMP:
		return i < 0 ? 0 : n - 1;
	case KEEP_OUTSIDE:
		return i;
	default:
		return -1;
	}
}

/* A coordinate in texels; repetition is taken off while it is still precise. */
static float scale(
	const struct softgpu_texture *t, float x, uint32_t size, unsigned int mode)
{
	if (!t->is_normalized && !t->is_cube)
		return x;
	if (mode == TEXTURE_WRAP)
		x -= floorf(x);
	else if (mode == TEXTURE_MIRROR)
		x -= 2.0f * floorf(x * 0.5f);
	return x * (float)size;
}

/* One axis of a fetch: one texel, or two and the weight of the second in 256ths. */
struct axis {
	int64_t index[2];
	uint32_t weight;
};

static struct axis axis_point(const struct softgpu_texture *t, float x, int offset,
	uint32_t size, unsigned int mode)
{
	int64_t i = (int64_t)to_index(floorf(scale(t, x, size, mode))) + offset;

	return (struct axis){ .index = { place_index(i, size, mode), 0 } };
}

static struct axis axis_linear(const struct softgpu_texture *t, float x, int offset,
	uint32_t size, unsigned int mode)
{
	float at = scale(t, x, size, mode) - 0.5f, whole = floorf(at);
	int64_t i = (int64_t)to_index(whole) + offset;
	float part = at - whole;

	/* Of an infinite coordinate there is no part. */
	part = part >= 0.0f && part <= 1.0f ? part : 0.0f;
	return (struct axis){
		.index = { place_index(i, size, mode), place_index(i + 1, size, mode) },
		.weight = (uint32_t)(part * 256.0f + 0.5f),
	};
}

/*
 * Texels
 */

struct fetch {
	const struct texture_query *query;
	const struct texture_level *level;
	bool floats;
	bool failed;
	uint64_t fault;
};

/* Return: whether that is device memory. */
static bool is_readable(struct fetch *fetch, uint64_t address, uint32_t size)
{
	if (softgpu_space_check(fetch->query->space, address, size, SOFTGPU_READ))
		return true;
	fetch->failed = true;
	fetch->fault = address;
	return false;
}

/* Rows and columns of a level count texels, its pitch is of a row of blocks. */
static struct texel read_block(
	struct fetch *fetch, unsigned int block, int64_t x, int64_t y, int64_t z)
{
	const struct texture_level *level = fetch->level;
	uint32_t size = texel_block_size(block);
	struct texel texel = {};
	float channels[4];
	uint64_t address;

	address = level->address + (uint64_t)z * level->slice +
		  (uint64_t)(y / TEXEL_BLOCK_SIDE) * level->pitch +
		  (uint64_t)(x / TEXEL_BLOCK_SIDE) * size;
	if (!is_readable(fetch, address, size))
		return texel;
	texel_block_read(block, (const uint8_t *)(uintptr_t)address,
		(unsigned int)(y % TEXEL_BLOCK_SIDE * TEXEL_BLOCK_SIDE +
			       x % TEXEL_BLOCK_SIDE),
		channels);
	for (unsigned int i = 0; i < 3 && fetch->query->texture->is_srgb; i++)
		channels[i] = from_srgb(channels[i]);
	for (unsigned int i = 0; i < 4; i++)
		texel.bits[i] = bits_f32(channels[i]);
	return texel;
}

/* Return: the texel at those indices; a negative index means the border. */
static struct texel read_texel(struct fetch *fetch, int64_t x, int64_t y, int64_t z)
{
	const struct softgpu_texture *t = fetch->query->texture;
	/* Read once: the size that is checked is the size that is read. */
	unsigned int format = __atomic_load_n(&t->format, __ATOMIC_RELAXED);
	unsigned int block = __atomic_load_n(&t->block, __ATOMIC_RELAXED);
	uint32_t channel = texel_channel_size(format);
	uint32_t n = t->n_channels <= 4 ? t->n_channels : 4, size = channel * n;
	struct texel texel = { .bits = { 0, 0, 0, fetch->floats ? bits_f32(1.0f) : 1 } };
	uint64_t address;

	if (x < 0 || y < 0 || z < 0) {
		memcpy(texel.bits, t->border, sizeof(texel.bits));
		return texel;
	}
	if (block)
		return read_block(fetch, block, x, y, z);
	address = fetch->level->address + (uint64_t)z * fetch->level->slice +
		  (uint64_t)y * fetch->level->pitch + (uint64_t)x * size;
	if (!is_readable(fetch, address, size))
		return texel;
	for (uint32_t i = 0; i < n; i++)
		texel.bits[i] = decode_channel(t, format,
			(const uint8_t *)(uintptr_t)address + (size_t)i * channel,
			fetch->floats, i < 3);
	return texel;
}

static struct texel mix(struct texel a, struct texel b, uint32_t weight)
{
	float w = (float)weight / 256.0f;

	for (unsigned int i = 0; i < 4; i++)
		a.bits[i] = bits_f32(canon(
			(1.0f - w) * make_f32(a.bits[i]) + w * make_f32(b.bits[i])));
	return a;
}

/* The mean of 2, 4 or 8 texels; an axis of weight 0 needs but one. */
static struct texel read_filtered(struct fetch *fetch, const struct axis axes[3])
{
	struct texel planes[2], rows[2];

	for (unsigned int k = 0; k < 2; k++) {
		for (unsigned int j = 0; j < 2; j++) {
			rows[j] = read_texel(fetch, axes[0].index[0], axes[1].index[j],
				axes[2].index[k]);
			if (axes[0].weight)
				rows[j] = mix(rows[j],
					read_texel(fetch, axes[0].index[1],
						axes[1].index[j], axes[2].index[k]),
					axes[0].weight);
			if (!axes[1].weight)
				break;
		}
		planes[k] =
			axes[1].weight ? mix(rows[0], rows[1], axes[1].weight) : rows[0];
		if (!axes[2].weight)
			break;
	}
	return axes[2].weight ? mix(planes[0], planes[1], axes[2].weight) : planes[0];
}

/* One channel of the four texels around, counter-clockwise from the lower left. */
static struct texel gather(struct fetch *fetch, const struct axis axes[3])
{
	static const uint8_t xs[4] = { 0, 1, 1, 0 }, ys[4] = { 1, 1, 0, 0 };
	unsigned int channel = (unsigned int)fetch->query->gather & 3;
	struct texel texel = {};

	for (unsigned int i = 0; i < 4; i++)
		texel.bits[i] = read_texel(fetch, axes[0].index[xs[i]],
			axes[1].index[ys[i]], axes[2].index[0])
					.bits[channel];
	return texel;
}

/* A query in terms of axes, with layers resolved. */
struct place {
	float at[3];
	float gradient[2][3];
	uint32_t slice; /* layer and face */
	unsigned int n_axes;
};

static void find_on_cube(struct place *place, const struct texture_query *query)
{
	const float direction[3] = { place->at[0], place->at[1], place->at[2] };
	struct cube_place on = cube_find(direction);

	memcpy(place->at, on.at, sizeof(on.at));
	place->slice += on.face;
	for (unsigned int k = 0; query->has_gradient && k < 2; k++)
		cube_gradient(direction, on.face, query->gradient[k], place->gradient[k]);
}

static struct place find_place(const struct texture_query *query)
{
	bool is_cube = query->shape >= TEXTURE_CUBE;
	bool is_layered = query->shape == TEXTURE_1D_LAYERED ||
			  query->shape == TEXTURE_2D_LAYERED ||
			  query->shape == TEXTURE_CUBE_LAYERED;
	uint32_t per_layer = is_cube ? 6 : 1;
	uint32_t n_layers = query->texture->levels[0].depth / per_layer;
	struct place place = { .n_axes = query->texture->n_dimensions };
	uint32_t layer = 0;

	for (unsigned int i = 0; i < 3; i++)
		place.at[i] = make_f32(query->coordinates[i]);
	if (is_layered && n_layers)
		layer = query->layer < n_layers ? query->layer : n_layers - 1;
	place.slice = layer * per_layer;
	if (query->has_gradient)
		memcpy(place.gradient, query->gradient, sizeof(place.gradient));
	if (is_cube)
		find_on_cube(&place, query);
	return place;
}

static uint32_t size_of(const struct texture_level *level, unsigned int axis)
{
	uint32_t size =
		axis == 0 ? level->width : (axis == 1 ? level->height : level->depth);

	return size ? size : 1;
}

static float bounded(float x, float low, float high)
{
	/* NaN is low. */
	if (!(x > low))
		return low;
	return x < high ? x : high;
}

/* A texel by integer coordinates: outside of the texture there are zeros. */
static struct texel fetch_integer(struct fetch *fetch, const struct place *place)
{
	int64_t at[3] = { 0, 0, place->slice };

	for (unsigned int i = 0; i < place->n_axes && i < 3; i++) {
		at[i] = (int64_t)(int32_t)fetch->query->coordinates[i] +
			fetch->query->offset[i];
		if (at[i] < 0 || at[i] >= size_of(fetch->level, i))
			return (struct texel){};
	}
	return read_texel(fetch, at[0], at[1], at[2]);
}

/*
 * Four texels of a cube, counter-clockwise from the upper left, some of them on other
 * faces. Where three faces meet there is no fourth texel, but the mean of the others.
 */
static void read_corners(struct fetch *fetch, const struct axis axes[2], uint32_t slice,
	uint32_t n, struct texel texels[4])
{
	static const uint8_t xs[4] = { 0, 1, 1, 0 }, ys[4] = { 0, 0, 1, 1 };
	uint32_t missing = 4;

	for (uint32_t i = 0; i < 4; i++) {
		int64_t at[2] = { axes[0].index[xs[i]], axes[1].index[ys[i]] };
		bool outside[2] = { at[0] < 0 || at[0] >= n, at[1] < 0 || at[1] >= n };
		uint32_t face = slice % 6;

		if (outside[0] && outside[1]) {
			missing = i;
			continue;
		}
		if (outside[0] || outside[1])
			cube_neighbour(&face, at, n);
		texels[i] = read_texel(fetch, at[0], at[1], slice - slice % 6 + face);
	}
	for (unsigned int k = 0; missing < 4 && k < 4; k++) {
		float sum = 0.0f;

		for (uint32_t i = 1; i < 4; i++)
			sum += make_f32(texels[(missing + i) % 4].bits[k]);
		texels[missing].bits[k] = bits_f32(canon(sum / 3.0f));
	}
}

/* A filter or a gather that goes on over the edges of faces. */
static struct texel fetch_seamless(struct fetch *fetch, const struct place *place)
{
	const struct texture_query *query = fetch->query;
	uint32_t n = size_of(fetch->level, 0);
	struct texel texels[4], gathered;
	struct axis axes[2];

	for (unsigned int i = 0; i < 2; i++)
		axes[i] = axis_linear(query->texture, bounded(place->at[i], 0.0f, 1.0f),
			0, n, KEEP_OUTSIDE);
	read_corners(fetch, axes, place->slice, n, texels);
	if (query->gather >= 0) {
		for (unsigned int i = 0; i < 4; i++)
			gathered.bits[i] = texels[3 - i].bits[query->gather & 3];
		return gathered;
	}
	return mix(mix(texels[0], texels[1], axes[0].weight),
		mix(texels[3], texels[2], axes[0].weight), axes[1].weight);
}

static struct texel fetch_level(
	struct fetch *fetch, const struct place *place, uint32_t number)
{
	const struct softgpu_texture *t = fetch->query->texture;
	struct axis axes[3] = { { .index = { 0 } }, { .index = { 0 } },
		{ .index = { place->slice, place->slice } } };
	bool linear = (t->filters_linearly && fetch->floats) || fetch->query->gather >= 0;

	fetch->level = &t->levels[number < TEXTURE_LEVELS_MAX ? number : 0];
	if (fetch->query->is_integer)
		return fetch_integer(fetch, place);
	if (t->is_seamless && linear && fetch->floats &&
		fetch->query->shape >= TEXTURE_CUBE)
		return fetch_seamless(fetch, place);
	for (unsigned int i = 0; i < place->n_axes && i < 3; i++) {
		uint32_t size = size_of(fetch->level, i);
		/* Faces have edges, whatever the modes say. */
		unsigned int mode = t->is_cube ? TEXTURE_CLAMP : mode_of(t, i);

		int offset = fetch->query->offset[i];

		axes[i] = linear ? axis_linear(t, place->at[i], offset, size, mode)
				 : axis_point(t, place->at[i], offset, size, mode);
	}
	return fetch->query->gather >= 0 ? gather(fetch, axes)
					 : read_filtered(fetch, axes);
}

/*
 * Levels
 */

/* How long a gradient is in texels of the first level. */
static float length_of(
	const struct texture_level *level, const float gradient[3], unsigned int n_axes)
{
	float sum = 0.0f;

	for (unsigned int i = 0; i < n_axes && i < 3; i++) {
		float d = gradient[i] * (float)size_of(level, i);

		sum += d * d;
	}
	return sqrtf(sum);
}

/*
 * The footprint of a fetch with gradients: a row of @n_probes along the longer one, each
 * as wide as the row is long divided by their number.
 */
struct footprint {
	uint32_t n_probes;
	unsigned int longer;
	float level; /* at which neighbouring probes are one texel apart */
};

static struct footprint find_footprint(
	const struct softgpu_texture *t, const struct place *place, bool is_anisotropic)
{
	float lengths[2], longest, ratio, most = 1.0f;
	struct footprint footprint = { .n_probes = 1 };

	for (unsigned int k = 0; k < 2; k++)
		lengths[k] = length_of(&t->levels[0], place->gradient[k], place->n_axes);
	footprint.longer = lengths[1] > lengths[0];
	longest = fmaxf(lengths[0], lengths[1]);
	if (is_anisotropic && longest > 0.0f && longest < INFINITY) {
		most = (float)(t->max_anisotropy < ANISOTROPY_MAX ? t->max_anisotropy
								  : ANISOTROPY_MAX);
		ratio = longest / lengths[!footprint.longer];
		footprint.n_probes = (uint32_t)ceilf(bounded(ratio, 1.0f, most));
	}
	longest /= (float)footprint.n_probes;
	footprint.level = longest > 0.0f ? log2f(longest) : -INFINITY;
	return footprint;
}

/* One probe: a level, or two mixed. */
static struct texel fetch_probe(
	struct fetch *fetch, const struct place *place, float level, uint32_t last)
{
	const struct texture_query *query = fetch->query;
	const struct softgpu_texture *t = query->texture;
	uint32_t low, weight;
	struct texel a;

	if (!last)
		return fetch_level(fetch, place, 0);
	if (!query->is_integer)
		level = bounded(level + t->level_bias, t->level_min, t->level_max);
	level = bounded(level, 0.0f, (float)last);
	if (!t->filters_levels || !fetch->floats || query->is_integer)
		return fetch_level(fetch, place, (uint32_t)(level + 0.5f));
	low = (uint32_t)level;
	weight = (uint32_t)((level - (float)low) * 256.0f + 0.5f);
	a = fetch_level(fetch, place, low);
	return weight && low < last ? mix(a, fetch_level(fetch, place, low + 1), weight)
				    : a;
}

/* The mean of the probes of a footprint. */
static struct texel fetch_probes(struct fetch *fetch, const struct place *place,
	const struct footprint *footprint, uint32_t last)
{
	const float n = (float)footprint->n_probes;
	float sums[4] = { 0.0f };
	struct texel texel;

	for (uint32_t i = 0; i < footprint->n_probes; i++) {
		struct place probe = *place;

		for (unsigned int k = 0; k < place->n_axes && k < 3; k++)
			probe.at[k] += place->gradient[footprint->longer][k] *
				       (((float)i + 0.5f) / n - 0.5f);
		texel = fetch_probe(fetch, &probe, footprint->level, last);
		for (unsigned int k = 0; k < 4; k++)
			sums[k] += make_f32(texel.bits[k]);
	}
	for (unsigned int k = 0; k < 4; k++)
		texel.bits[k] = bits_f32(canon(sums[k] / n));
	return texel;
}

static struct texel fetch_levels(struct fetch *fetch, const struct place *place)
{
	const struct texture_query *query = fetch->query;
	const struct softgpu_texture *t = query->texture;
	uint32_t last =
		t->n_levels && t->n_levels <= TEXTURE_LEVELS_MAX ? t->n_levels - 1 : 0;
	struct footprint footprint = { .n_probes = 1, .level = query->level };

	if (query->has_gradient)
		footprint = find_footprint(t, place,
			t->max_anisotropy > 1 && t->filters_linearly && fetch->floats &&
				t->is_normalized && !query->is_integer);
	if (footprint.n_probes > 1)
		return fetch_probes(fetch, place, &footprint, last);
	return fetch_probe(fetch, place, footprint.level, last);
}

bool softgpu_texture_sample(
	const struct texture_query *query, uint32_t result[4], uint64_t *faultp)
{
	struct fetch fetch = { .query = query, .floats = reads_floats(query->texture) };
	struct place place = find_place(query);
	struct texel texel = fetch_levels(&fetch, &place);

	memcpy(result, texel.bits, sizeof(texel.bits));
	*faultp = fetch.fault;
	return !fetch.failed;
}

/*
 * Surfaces
 */

static bool bound(int64_t *at, int64_t n, enum surface_bounds bounds)
{
	if (*at >= 0 && *at < n)
		return true;
	if (bounds != SURFACE_CLAMP || n <= 0)
		return false;
	*at = *at < 0 ? 0 : n - 1;
	return true;
}

int softgpu_surface_find(const struct softgpu_texture *surface, unsigned int shape,
	const struct surface_place *place, uint32_t size, enum surface_bounds bounds,
	uint64_t *addressp)
{
	const struct texture_level *level = &surface->levels[0];
	uint32_t texel = texel_channel_size(surface->format) * surface->n_channels;
	int64_t n_bytes = (int64_t)level->width * texel, x = place->x, y = 0, z = 0;
	bool inside;

	/* The last place where all of the access is inside. */
	inside = bound(&x, n_bytes - (int64_t)size + 1, bounds);
	if (shape == TEXTURE_2D || shape == TEXTURE_3D || shape == TEXTURE_2D_LAYERED) {
		y = place->y;
		inside = bound(&y, level->height ? level->height : 1, bounds) && inside;
	}
	if (shape >= TEXTURE_3D) {
		z = place->z;
		inside = bound(&z, level->depth ? level->depth : 1, bounds) && inside;
	}
	if (!inside)
		return bounds == SURFACE_ZERO ? SURFACE_E_OUTSIDE : SURFACE_E_TRAP;
	*addressp = level->address + (uint64_t)z * level->slice +
		    (uint64_t)y * level->pitch + (uint64_t)x;
	return 0;
}

/*
 * Properties: the numbers of types and orders are those of OpenCL, as in PTX
 */

/* The plain format that comes closest to what is decoded. */
static unsigned int data_format_of_blocks(unsigned int block)
{
	switch (block) {
	case TEXEL_BLOCK_BC4_SIGNED:
	case TEXEL_BLOCK_BC5_SIGNED:
		return TEXEL_S8;
	case TEXEL_BLOCK_BC6H_UNSIGNED:
	case TEXEL_BLOCK_BC6H_SIGNED:
		return TEXEL_F16;
	default:
		return TEXEL_U8;
	}
}

static uint32_t data_type(const struct softgpu_texture *t)
{
	static const uint16_t read_as_integer[_TEXEL_N] = { 0x10da, 0x10d7, 0x10db,
		0x10d8, 0x10dc, 0x10d9, 0x10dd, 0x10de };
	static const uint16_t read_as_float[_TEXEL_N] = { 0x10d2, 0x10d0, 0x10d3, 0x10d1,
		0x10dc, 0x10d9, 0x10dd, 0x10de };
	unsigned int format = t->format < _TEXEL_N ? t->format : 0;

	if (t->block)
		format = data_format_of_blocks(t->block);
	return t->reads_integers ? read_as_integer[format] : read_as_float[format];
}

static uint32_t order(const struct softgpu_texture *t)
{
	switch (t->n_channels) {
	case 1:
		return 0x10b0;
	case 2:
		return 0x10b2;
	default:
		return 0x10b5;
	}
}

uint32_t softgpu_texture_property(
	const struct softgpu_texture *t, unsigned int property, uint32_t level)
{
	const struct texture_level *l =
		&t->levels[level < t->n_levels && level < TEXTURE_LEVELS_MAX ? level : 0];

	switch (property) {
	case TEXTURE_WIDTH:
		return l->width;
	case TEXTURE_HEIGHT:
		return l->height;
	case TEXTURE_DEPTH:
		return t->is_layered || t->is_cube ? 0 : l->depth;
	case TEXTURE_LAYERS:
		return t->is_layered ? l->depth / (t->is_cube ? 6 : 1) : 0;
	case TEXTURE_N_LEVELS:
		return t->n_levels;
	case TEXTURE_DATA_TYPE:
		return data_type(t);
	case TEXTURE_ORDER:
		return order(t);
	case TEXTURE_IS_NORMALIZED:
		return t->is_normalized;
	case TEXTURE_FILTER:
		return t->filters_linearly;
	case TEXTURE_ADDRESS_0:
	case TEXTURE_ADDRESS_1:
	case TEXTURE_ADDRESS_2:
		return t->address_modes[property - TEXTURE_ADDRESS_0];
	case TEXTURE_N_SAMPLES:
		return 1;
	case TEXTURE_IS_LINEAR:
		return t->is_linear_memory;
	default:
		return 0;
	}
}
