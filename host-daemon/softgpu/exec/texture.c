/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: textures and surfaces
 *
 * A fetch is done for all lanes at once if possible (fetch.h), otherwise lane by lane by
 * the sampler, as for surfaces. An instruction has more operands than there are fields;
 * the preceding TEX_PUT stores coordinates in the block and continues with it at once: no
 * other warp runs between the two.
 */

#include "exec/fetch.h"
#include "exec/half.h"
#include "exec/texture.h"
#include "exec/warp.h"
#include "ptx/isa.h"

#define NO_OBJECT "a number that is no texture or surface object"

/* Rows of block.texture_operands. */
enum row {
	ROW_X,
	ROW_Y,
	ROW_Z,
	ROW_LAYER,
	ROW_LEVEL,
	ROW_GRADIENT, /* two of three */
	ROW_OFFSET = ROW_GRADIENT + 6,
};

HANDLER(TEX_PUT)
{
	uint32_t(*rows)[LANES] = &w->block->texture_operands[5 * (ip->off % 3)];

	memcpy(rows[0], REG(uint32_t, ip->a), SLOT_BYTES);
	memcpy(rows[1], REG(uint32_t, ip->b), SLOT_BYTES);
	memcpy(rows[2], REG(uint32_t, ip->c), SLOT_BYTES);
	memcpy(rows[3], REG(uint32_t, ip->e), SLOT_BYTES);
	memcpy(rows[4], REG(uint32_t, ip->f), SLOT_BYTES);
	/* Both come from one instruction of PTX, and have its guard. */
	ip++;
	return ip->fn(w, ip, mask);
}

/* An object's number, or the address of a reference, which holds one. */
SCALAR const struct softgpu_texture *find_object(
	const struct warp *w, uint64_t number, bool is_surface)
{
	const struct softgpu_textures *all = w->block->launch->textures;
	const struct softgpu_texture *found = softgpu_texture_find(all, number);

	if (!found && !(number % sizeof(number)) &&
		softgpu_space_check(
			&w->block->space, number, sizeof(number), SOFTGPU_READ)) {
		number = __atomic_load_n(
			(const uint64_t *)(uintptr_t)number, __ATOMIC_RELAXED);
		found = softgpu_texture_find(all, number);
	}
	return !(number & TEXTURE_SURFACE_BIT) == is_surface ? NULL : found;
}

static void take_operands(
	const struct warp *w, uint32_t lane, int32_t options, struct texture_query *query)
{
	uint32_t(*rows)[LANES] = w->block->texture_operands;

	for (unsigned int i = 0; i < 3; i++)
		query->coordinates[i] = rows[ROW_X + i][lane];
	query->layer = rows[ROW_LAYER][lane];
	query->level = options & TEX_INTEGER ? (float)(s32)rows[ROW_LEVEL][lane]
					     : make_f32(rows[ROW_LEVEL][lane]);
	/* PTX defines offsets from -8 to 7: four bits of two's complement. */
	for (unsigned int i = 0; options & TEX_OFFSETS && i < 3; i++)
		query->offset[i] =
			(int8_t)((s32)(rows[ROW_OFFSET + i][lane] << 28) >> 28);
	if (!(options & TEX_GRADIENT))
		return;
	for (unsigned int i = 0; i < 6; i++)
		query->gradient[i / 3][i % 3] = make_f32(rows[ROW_GRADIENT + i][lane]);
}

/* As the instruction wants it: channels of f32 or integers become f16 or pairs. */
static void convert_result(int32_t options, uint32_t result[4])
{
	if (!(options & (TEX_F16 | TEX_F16X2)))
		return;
	for (unsigned int i = 0; i < 4; i++)
		result[i] = half_from_f32(make_f32(result[i]));
	if (options & TEX_F16X2) {
		result[0] |= result[1] << 16;
		result[1] = result[2] | result[3] << 16;
	}
}

/* Return: the object that all lanes name, NULL where they do not, or it is none. */
static const struct softgpu_texture *common_texture(
	const struct warp *w, const struct insn *ip, uint32_t mask)
{
	const uint64_t *number = REG(uint64_t, ip->a);
	uint64_t first = number[__builtin_ctz(mask)], differ = 0;

	EACH_LANE differ |= mask & lane_bit_wide[i] ? number[i] ^ first : 0;
	return differ ? NULL : find_object(w, first, false);
}

/* All lanes at once. Return: whether that was possible. */
static bool fetch_at_once(struct warp *w, const struct insn *ip, uint32_t mask)
{
	uint32_t *d[4] = { REG(uint32_t, ip->d), REG(uint32_t, ip->b),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };
	uint32_t(*rows)[LANES] = w->block->texture_operands, result[4];
	const struct softgpu_texture *texture = common_texture(w, ip, mask);
	struct fetch_texels texels;

	if (!texture || !fetch_warp(&w->block->space, texture, ip->off, mask,
				&rows[ROW_X], rows[ROW_LAYER], &texels))
		return false;
	if (ip->off & (TEX_F16 | TEX_F16X2)) {
		EACH_SET_LANE(i, mask)
		{
			for (unsigned int k = 0; k < 4; k++)
				result[k] = texels.channels[k][i];
			convert_result(ip->off, result);
			for (unsigned int k = 0; k < 4; k++)
				texels.channels[k][i] = result[k];
		}
	}
	for (unsigned int k = 0; k < 4; k++)
		EACH_LANE d[k][i] = mask & lane_bit[i] ? texels.channels[k][i] : d[k][i];
	return true;
}

/* The texture as another sampler sees it. */
static void override_sampling(
	struct softgpu_texture *own, const struct softgpu_texture *t, int32_t options)
{
	uint32_t sampling = (uint32_t)options >> TEX_SAMPLER_SHIFT;

	*own = *t;
	for (unsigned int i = 0; i < 3; i++)
		own->address_modes[i] = sampling >> 2 * i & 3;
	own->filters_linearly = sampling & PTX_SAMPLING_LINEAR;
	if (sampling & PTX_SAMPLING_UNNORMALIZED)
		own->is_normalized = false;
}

HANDLER(TEX)
{
	const uint64_t *number = REG(uint64_t, ip->a);
	uint32_t *d[4] = { REG(uint32_t, ip->d), REG(uint32_t, ip->b),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };
	struct texture_query query = {
		.space = &w->block->space,
		.shape = (uint8_t)(ip->off & TEX_SHAPE),
		.gather = -1,
		.is_integer = ip->off & TEX_INTEGER,
		.has_gradient = ip->off & TEX_GRADIENT,
	};
	struct softgpu_texture own;
	uint32_t result[4];
	uint64_t at;

	if (ip->off & TEX_GATHER)
		query.gather = ip->off >> TEX_CHANNEL_SHIFT & 3;
	if (mask && fetch_at_once(w, ip, mask))
		return ip + 1;
	EACH_SET_LANE(i, mask)
	{
		query.texture = find_object(w, number[i], false);
		if (!query.texture)
			return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_ADDRESS, i,
				number[i], NO_OBJECT);
		take_operands(w, i, ip->off, &query);
		if (ip->off & TEX_SAMPLER) {
			override_sampling(&own, query.texture, ip->off);
			query.texture = &own;
		}
		if (!softgpu_texture_sample(&query, result, &at))
			return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_ADDRESS, i, at,
				"a texture outside of device memory");
		convert_result(ip->off, result);
		for (unsigned int k = 0; k < 4; k++)
			d[k][i] = result[k];
	}
	return ip + 1;
}

HANDLER(TXQ)
{
	const uint64_t *number = REG(uint64_t, ip->a);
	const uint32_t *level = REG(uint32_t, ip->b);
	uint32_t *d = REG(uint32_t, ip->d);
	bool is_surface = (uint32_t)ip->off & TXQ_SURFACE;

	EACH_SET_LANE(i, mask)
	{
		const struct softgpu_texture *texture =
			find_object(w, number[i], is_surface);

		if (!texture)
			return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_ADDRESS, i,
				number[i], NO_OBJECT);
		d[i] = softgpu_texture_property(
			texture, (uint32_t)ip->off % TXQ_SURFACE, level[i]);
	}
	return ip + 1;
}

/*
 * Surfaces
 */

/*
 * Where the @size bytes at a place of the surface lie; *atp is 0 where they are to be
 * left out. Return: 0 or the code of a fault, with its address.
 */
static int find_bytes(const struct warp *w, const struct insn *ip,
	const struct softgpu_texture *surface, const struct surface_place *place,
	uint32_t size, uint64_t *atp)
{
	switch (softgpu_surface_find(surface, (uint32_t)ip->off & SURFACE_SHAPE, place,
		size, (uint32_t)ip->off >> SURFACE_BOUNDS_SHIFT & 3, atp)) {
	case 0:
		return softgpu_space_check(
			       &w->block->space, *atp, size, SOFTGPU_READ | SOFTGPU_WRITE)
			       ? 0
			       : SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	case SURFACE_E_OUTSIDE:
		*atp = 0;
		return 0;
	default:
		return SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	}
}

static struct surface_place place_of(
	const struct warp *w, const struct insn *ip, uint32_t lane)
{
	uint32_t(*rows)[LANES] = w->block->texture_operands;
	unsigned int shape = (uint32_t)ip->off & SURFACE_SHAPE;

	return (struct surface_place){
		.x = (s32)rows[ROW_X][lane],
		.y = (s32)rows[ROW_Y][lane],
		.z = (s32)rows[shape == TEXTURE_3D ? ROW_Z : ROW_LAYER][lane],
	};
}

/* Of the forms that count bytes. */
static int find_place(
	const struct warp *w, const struct insn *ip, uint32_t lane, uint64_t *atp)
{
	const struct softgpu_texture *surface =
		find_object(w, REG(uint64_t, ip->a)[lane], true);
	uint32_t size = 1u << ((uint32_t)ip->off >> SURFACE_SIZE_SHIFT & 3);
	uint32_t count = (uint32_t)ip->off >> SURFACE_COUNT_SHIFT & 7;
	struct surface_place place = place_of(w, ip, lane);

	*atp = REG(uint64_t, ip->a)[lane];
	if (!surface)
		return SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	if ((uint32_t)place.x & (size * count - 1)) {
		*atp = (uint32_t)place.x;
		return SOFTGPU_ERROR_MISALIGNED_ADDRESS;
	}
	return find_bytes(w, ip, surface, &place, size * count, atp);
}

/* Of the forms that count texels, which have @size bytes. */
static int find_texel(const struct warp *w, const struct insn *ip, uint32_t lane,
	const struct softgpu_texture *surface, uint32_t size, uint64_t *atp)
{
	struct surface_place place = place_of(w, ip, lane);
	int64_t x = (int64_t)place.x * size;

	/* Saturated to 32 bits, on the same side. */
	place.x = x > INT32_MAX	  ? INT32_MAX - (s32)size + 1
		  : x < INT32_MIN ? INT32_MIN
				  : (s32)x;
	return find_bytes(w, ip, surface, &place, size, atp);
}

/* Of a reduction of texels. Return: as find_place(); a format of other numbers is one. */
static int find_integers(const struct warp *w, const struct insn *ip, uint32_t lane,
	uint32_t size, uint64_t *atp, bool *is_signedp)
{
	const struct softgpu_texture *surface =
		find_object(w, REG(uint64_t, ip->a)[lane], true);
	unsigned int format;

	*atp = REG(uint64_t, ip->a)[lane];
	if (!surface)
		return SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	format = surface->format;
	if ((format != TEXEL_U32 && format != TEXEL_S32) ||
		surface->n_channels * sizeof(u32) != size)
		return SOFTGPU_ERROR_ILLEGAL_INSTRUCTION;
	*is_signedp = format == TEXEL_S32;
	return find_texel(w, ip, lane, surface, size, atp);
}

static const struct insn *surface_fault(
	struct warp *w, const struct insn *ip, int code, uint32_t lane, uint64_t at)
{
	return warp_fault(w, ip, code, lane, at,
		code == SOFTGPU_ERROR_MISALIGNED_ADDRESS ? "misaligned surface access"
		: code == SOFTGPU_ERROR_ILLEGAL_INSTRUCTION
			? "a reduction of texels that are no integers of its size"
			: "illegal surface access");
}

#define SURFACE_LOAD(_op, _R)                                                            \
	HANDLER(_op)                                                                     \
	{                                                                                \
		_R *d[4] = { REG(_R, ip->d), REG(_R, ip->b), REG(_R, ip->e),             \
			REG(_R, ip->f) };                                                \
		uint32_t size = 1u << ((uint32_t)ip->off >> SURFACE_SIZE_SHIFT & 3);     \
		uint32_t count = (uint32_t)ip->off >> SURFACE_COUNT_SHIFT & 7;           \
		uint64_t at;                                                             \
		int code;                                                                \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			code = find_place(w, ip, i, &at);                                \
			if (code)                                                        \
				return surface_fault(w, ip, code, i, at);                \
			for (uint32_t k = 0; k < count && k < 4; k++) {                  \
				_R x = 0;                                                \
                                                                                         \
				if (at)                                                  \
					memcpy(&x, (void *)(uintptr_t)(at + k * size),   \
						size);                                   \
				d[k][i] = x;                                             \
			}                                                                \
		}                                                                        \
		return ip + 1;                                                           \
	}

#define SURFACE_STORE(_op, _R)                                                           \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const _R *s[4] = { REG(_R, ip->b), REG(_R, ip->c), REG(_R, ip->e),       \
			REG(_R, ip->f) };                                                \
		uint32_t size = 1u << ((uint32_t)ip->off >> SURFACE_SIZE_SHIFT & 3);     \
		uint32_t count = (uint32_t)ip->off >> SURFACE_COUNT_SHIFT & 7;           \
		uint64_t at;                                                             \
		int code;                                                                \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			code = find_place(w, ip, i, &at);                                \
			if (code)                                                        \
				return surface_fault(w, ip, code, i, at);                \
			for (uint32_t k = 0; at && k < count && k < 4; k++)              \
				memcpy((void *)(uintptr_t)(at + k * size), &s[k][i],     \
					size);                                           \
		}                                                                        \
		return ip + 1;                                                           \
	}

/* A fraction as the nearest of -@most to @most. */
SCALAR s32 encode_fraction(float x, float least, float most)
{
	x = x > least ? x : least; /* NaN is the least */
	x = x < 1.0f ? x : 1.0f;
	return (s32)(x * most + (x < 0.0f ? -0.5f : 0.5f));
}

/* A channel of the surface; numbers are limited to those it holds. */
SCALAR u32 encode_channel(unsigned int format, bool is_fraction, u32 x)
{
	s32 s = (s32)x;

	if (is_fraction)
		switch (format) {
		case TEXEL_U8:
			return (u32)encode_fraction(make_f32(x), 0.0f, 255.0f);
		case TEXEL_U16:
			return (u32)encode_fraction(make_f32(x), 0.0f, 65535.0f);
		case TEXEL_S8:
			return (u32)encode_fraction(make_f32(x), -1.0f, 127.0f);
		default:
			return (u32)encode_fraction(make_f32(x), -1.0f, 32767.0f);
		}

	switch (format) {
	case TEXEL_U8:
		return x > 255 ? 255 : x;
	case TEXEL_U16:
		return x > 65535 ? 65535 : x;
	case TEXEL_S8:
		return (u32)(s > 127 ? 127 : s < -128 ? -128 : s);
	case TEXEL_S16:
		return (u32)(s > 32767 ? 32767 : s < -32768 ? -32768 : s);
	case TEXEL_F16:
		return half_from_f32(make_f32(x));
	default:
		return x;
	}
}

/* Coordinates count texels, and the surface's format says what a channel becomes. */
HANDLER(SUST_P)
{
	const uint64_t *number = REG(uint64_t, ip->a);
	const uint32_t *s[4] = { REG(uint32_t, ip->b), REG(uint32_t, ip->c),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };

	EACH_SET_LANE(i, mask)
	{
		const struct softgpu_texture *surface = find_object(w, number[i], true);
		uint32_t channel = surface ? texel_channel_size(surface->format) : 0, x;
		uint32_t n = surface ? surface->n_channels : 0;
		uint64_t at;
		int code;

		if (!surface || n > 4)
			return surface_fault(
				w, ip, SOFTGPU_ERROR_ILLEGAL_ADDRESS, i, number[i]);
		code = find_texel(w, ip, i, surface, channel * n, &at);
		if (code)
			return surface_fault(w, ip, code, i, at);
		for (uint32_t k = 0; at && k < n; k++) {
			x = encode_channel(
				surface->format, surface->is_fraction, s[k][i]);
			memcpy((void *)(uintptr_t)(at + k * channel), &x, channel);
		}
	}
	return ip + 1;
}

SURFACE_LOAD(SULD_32, uint32_t)
SURFACE_LOAD(SULD_64, uint64_t)
SURFACE_STORE(SUST_32, uint32_t)
SURFACE_STORE(SUST_64, uint64_t)

#define COMBINE(_U, _S)                                                                  \
	static _U combine_##_U(uint32_t atom, bool is_signed, _U old, _U x)              \
	{                                                                                \
		bool less = is_signed ? (_S)x < (_S)old : x < old;                       \
                                                                                         \
		switch (atom) {                                                          \
		case PTX_ATOM_ADD:                                                       \
			return old + x;                                                  \
		case PTX_ATOM_MIN:                                                       \
			return less ? x : old;                                           \
		case PTX_ATOM_MAX:                                                       \
			return less ? old : x;                                           \
		case PTX_ATOM_AND:                                                       \
			return old & x;                                                  \
		default:                                                                 \
			return old | x;                                                  \
		}                                                                        \
	}

COMBINE(u32, s32)
COMBINE(u64, s64)

#define SURFACE_REDUCTION(_op, _R)                                                       \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const _R *s = REG(_R, ip->b);                                            \
		uint32_t atom = (uint32_t)ip->off >> SURFACE_ATOM_SHIFT & 15;            \
		bool is_signed = ip->off & SURFACE_SIGNED;                               \
		uint64_t at;                                                             \
		int code;                                                                \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			_R *p, old, new;                                                 \
                                                                                         \
			code = ip->off & SURFACE_FORMATTED                               \
				       ? find_integers(                                  \
						 w, ip, i, sizeof(_R), &at, &is_signed)  \
				       : find_place(w, ip, i, &at);                      \
			if (!code && at & (sizeof(_R) - 1))                              \
				code = SOFTGPU_ERROR_MISALIGNED_ADDRESS;                 \
			if (code)                                                        \
				return surface_fault(w, ip, code, i, at);                \
			if (!at)                                                         \
				continue;                                                \
			p = (_R *)(uintptr_t)at;                                         \
			old = __atomic_load_n(p, __ATOMIC_RELAXED);                      \
			do                                                               \
				new = combine_##_R(atom, is_signed, old, s[i]);          \
			while (!__atomic_compare_exchange_n(p, &old, new, true,          \
				__ATOMIC_SEQ_CST, __ATOMIC_RELAXED));                    \
		}                                                                        \
		return ip + 1;                                                           \
	}

SURFACE_REDUCTION(SURED_32, u32)
SURFACE_REDUCTION(SURED_64, u64)
