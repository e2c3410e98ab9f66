/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What copies of tensors leave
 */

#include <math.h>
#include <string.h>

#include "tensor-reference.h"

uint32_t tensor_bits(unsigned int type)
{
	static const uint8_t bits[_SOFTGPU_TENSOR_TYPE_N] = { 8, 16, 32, 32, 64, 64, 16,
		32, 64, 16, 32, 32, 32, 4, 4, 6 };

	return bits[type];
}

static bool has_gaps(const struct tensor_case *c)
{
	return c->map.type == SOFTGPU_TENSOR_B4_SPREAD ||
	       c->map.type == SOFTGPU_TENSOR_B6_SPREAD;
}

static uint32_t count(const struct tensor_case *c, uint32_t i)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k <= c->map.box_last[i]; k += c->map.steps[i])
		n++;
	return n;
}

uint32_t tensor_row_elements(const struct tensor_case *c)
{
	return c->map.kind == SOFTGPU_TENSOR_TILED ? count(c, 0) : c->map.n_channels;
}

uint64_t tensor_rows(const struct tensor_case *c)
{
	uint64_t n = 1;

	if (c->is_gather)
		return 4;
	if (c->map.kind != SOFTGPU_TENSOR_TILED)
		return c->map.n_pixels + (uint64_t)c->halo;
	for (uint32_t i = 1; i < c->map.rank; i++)
		n *= count(c, i);
	return n;
}

static uint32_t row_size(const struct tensor_case *c)
{
	return tensor_row_elements(c) * (has_gaps(c) ? 8 : tensor_bits(c->map.type)) / 8;
}

uint64_t tensor_shared_size(const struct tensor_case *c)
{
	return tensor_rows(c) * row_size(c);
}

uint64_t tensor_data_size(const struct tensor_case *c)
{
	return tensor_rows(c) * tensor_row_elements(c) * tensor_bits(c->map.type) / 8;
}

/* The tables of PTX: in each line of 128 bytes the places of its 16 bytes. */
static uint64_t swizzle(unsigned int mode, uint64_t at)
{
	static const uint8_t halves[2][8] = { { 0, 1, 2, 3, 4, 5, 6, 7 },
		{ 1, 0, 3, 2, 5, 4, 7, 6 } };
	static const uint8_t eights[8][8] = { { 0, 1, 2, 3, 4, 5, 6, 7 },
		{ 1, 0, 3, 2, 5, 4, 7, 6 }, { 2, 3, 0, 1, 6, 7, 4, 5 },
		{ 3, 2, 1, 0, 7, 6, 5, 4 }, { 4, 5, 6, 7, 0, 1, 2, 3 },
		{ 5, 4, 7, 6, 1, 0, 3, 2 }, { 6, 7, 4, 5, 2, 3, 0, 1 },
		{ 7, 6, 5, 4, 3, 2, 1, 0 } };
	static const uint8_t pairs[4][8] = { { 0, 1, 2, 3, 4, 5, 6, 7 },
		{ 2, 3, 0, 1, 6, 7, 4, 5 }, { 4, 5, 6, 7, 0, 1, 2, 3 },
		{ 6, 7, 4, 5, 2, 3, 0, 1 } };
	static const uint8_t fours[2][8] = { { 0, 1, 2, 3, 4, 5, 6, 7 },
		{ 4, 5, 6, 7, 0, 1, 2, 3 } };
	uint64_t line = at / 128, cell = at / 16 % 8, byte = at % 16;

	switch (mode) {
	case SOFTGPU_SWIZZLE_32:
		cell = halves[line % 2][cell];
		break;
	case SOFTGPU_SWIZZLE_64:
		cell = eights[line % 4][cell];
		break;
	case SOFTGPU_SWIZZLE_128:
		cell = eights[line % 8][cell];
		break;
	case SOFTGPU_SWIZZLE_ATOM_32_FLIP_8:
		if (line % 2)
			byte = (byte + 8) % 16;
		/* fallthrough */
	case SOFTGPU_SWIZZLE_ATOM_32:
		cell = pairs[line % 4][cell];
		break;
	case SOFTGPU_SWIZZLE_ATOM_64:
		cell = fours[line % 2][cell];
		break;
	}
	return line * 128 + cell * 16 + byte;
}

/* Pixels of a line have a number in all images, those of a halo follow the last. */
static void place_in_lines(const struct tensor_case *c, uint64_t row, int64_t place[5])
{
	const struct softgpu_tensor_map *map = &c->map;
	int64_t step = map->steps[1], beyond = (int64_t)row - map->n_pixels + 1;
	int64_t n = ((int64_t)map->last[1] + map->upper[0] - map->lower[0]) / step + 1;
	int64_t number = (c->at[1] - map->lower[0]) / step + (int64_t)row;

	if (beyond > 0)
		number -= beyond;
	place[1] = map->lower[0] + number % n * step + c->offsets[0];
	place[map->rank - 1] += number / n;
	if (beyond > 0)
		place[1] += beyond * step;
}

/* Where row @row of a box is in all but the first dimension. */
static void place_of_row(const struct tensor_case *c, uint64_t row, int64_t place[5])
{
	const struct softgpu_tensor_map *map = &c->map;
	uint32_t rank = map->rank;

	for (uint32_t i = 0; i < 5; i++)
		place[i] = c->at[i];
	if (c->is_gather) {
		place[1] = c->at[1 + row];
		return;
	}
	if (map->kind == SOFTGPU_TENSOR_TILED) {
		for (uint32_t i = 1; i < rank; i++) {
			place[i] += (int64_t)(row % count(c, i)) * map->steps[i];
			row /= count(c, i);
		}
		return;
	}
	if (map->kind == SOFTGPU_TENSOR_IM2COL_WIDE) {
		place_in_lines(c, row, place);
		return;
	}
	/* Pixels have a number in all images, if the first is one of the walk's. */
	for (uint32_t i = 0; i + 2 < rank; i++) {
		int64_t width = (int64_t)map->last[1 + i] + map->upper[i] - map->lower[i];
		int64_t n = width / map->steps[1 + i] + 1;
		int64_t number =
			(c->at[1 + i] - map->lower[i]) / map->steps[1 + i] + (int64_t)row;

		place[1 + i] =
			map->lower[i] + number % n * map->steps[1 + i] + c->offsets[i];
		row = (uint64_t)(number / n);
	}
	place[rank - 1] += (int64_t)row;
}

static bool is_inside(const struct tensor_case *c, const int64_t place[5])
{
	for (uint32_t i = 0; i < c->map.rank; i++)
		if (place[i] < 0 || place[i] > (int64_t)c->map.last[i])
			return false;
	return true;
}

static uint64_t get_bits(const uint8_t *bytes, uint64_t at, uint32_t n)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < n; i++)
		value |= (uint64_t)(bytes[(at + i) / 8] >> (at + i) % 8 & 1) << i;
	return value;
}

static void put_bits(uint8_t *bytes, uint64_t at, uint32_t n, uint64_t value)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t bit = (uint8_t)(1u << (at + i) % 8);

		bytes[(at + i) / 8] &= (uint8_t)~bit;
		if (value >> i & 1)
			bytes[(at + i) / 8] |= bit;
	}
}

static uint64_t filler(const struct softgpu_tensor_map *map)
{
	if (!map->fills_nan || map->type < SOFTGPU_TENSOR_F16 ||
		map->type > SOFTGPU_TENSOR_TF32_FTZ)
		return 0;
	return UINT64_MAX >> (65 - tensor_bits(map->type));
}

static uint64_t converted(unsigned int type, uint64_t bits)
{
	uint32_t word = (uint32_t)bits;
	int exponent;
	double x;
	float f;

	if (type < SOFTGPU_TENSOR_F32_FTZ || type > SOFTGPU_TENSOR_TF32_FTZ)
		return bits;
	memcpy(&f, &word, sizeof(f));
	if (isnan(f) || isinf(f))
		return bits;
	if (type != SOFTGPU_TENSOR_TF32 && fabsf(f) < 0x1p-126f)
		f = copysignf(0, f);
	if (type != SOFTGPU_TENSOR_F32_FTZ) {
		/* 11 digits, fewer for subnormal numbers */
		frexp(f, &exponent);
		exponent = exponent - 11 < -136 ? -136 : exponent - 11;
		x = ldexp(round(ldexp(f, -exponent)), exponent);
		f = (float)copysign(x, f);
	}
	memcpy(&word, &f, sizeof(word));
	return word;
}

/* The bit at which an element of a row begins in shared memory, before a swizzle. */
static uint64_t bit_of(const struct tensor_case *c, uint32_t i, enum tensor_way way)
{
	uint32_t bits = tensor_bits(c->map.type);

	if (!has_gaps(c))
		return (uint64_t)i * bits;
	if (way == TENSOR_WAY_STORE && bits == 6)
		return (uint64_t)i * 8;
	return i / 16 * 128 + i % 16 * (uint64_t)bits;
}

/* One bit at a time, for an element of 6 may lie in two bytes that a swizzle separates.
 */
static void shared_copy(const struct tensor_case *c, uint8_t *shared, uint64_t at,
	uint32_t n, uint64_t *value, enum tensor_way way)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t byte = swizzle(c->map.swizzle, (at + i) / 8);
		uint64_t place = byte * 8 + (at + i) % 8;

		if (way == TENSOR_WAY_LOAD)
			put_bits(shared, place, 1, *value >> i & 1);
		else
			*value |= get_bits(shared, place, 1) << i;
	}
}

static uint8_t *line_of(const struct tensor_case *c, const int64_t place[5])
{
	uint8_t *line = c->tensor;

	for (uint32_t i = 1; i < c->map.rank; i++)
		line += place[i] * (int64_t)c->map.strides[i - 1];
	return line;
}

void tensor_transfer(const struct tensor_case *c, uint8_t *shared, enum tensor_way way)
{
	uint32_t bits = tensor_bits(c->map.type), n = tensor_row_elements(c);
	uint32_t step = c->map.kind == SOFTGPU_TENSOR_TILED ? c->map.steps[0] : 1;
	int64_t place[5];

	for (uint64_t row = 0; row < tensor_rows(c); row++)
		for (uint32_t i = 0; i < n; i++) {
			uint64_t at = (c->to + row * row_size(c)) * 8 + bit_of(c, i, way);
			uint64_t value = 0;
			bool inside;

			place_of_row(c, row, place);
			place[0] = c->at[0] + (int64_t)i * step;
			inside = is_inside(c, place);
			if (way == TENSOR_WAY_STORE) {
				shared_copy(c, shared, at, bits, &value, way);
				if (inside)
					put_bits(line_of(c, place),
						(uint64_t)place[0] * bits, bits, value);
				continue;
			}
			value = inside ? converted(c->map.type,
						 get_bits(line_of(c, place),
							 (uint64_t)place[0] * bits, bits))
				       : filler(&c->map);
			shared_copy(c, shared, at, bits, &value, way);
		}
}

void tensor_each(const struct tensor_case *c, uint8_t *shared, void *data,
	void (*each)(void *data, uint8_t *global, uint8_t *shared))
{
	uint32_t size = tensor_bits(c->map.type) / 8;
	int64_t place[5];

	for (uint64_t row = 0; row < tensor_rows(c); row++)
		for (uint32_t i = 0; i < tensor_row_elements(c); i++) {
			place_of_row(c, row, place);
			place[0] = c->at[0] + (int64_t)i * c->map.steps[0];
			if (is_inside(c, place))
				each(data, line_of(c, place) + (uint64_t)place[0] * size,
					shared + swizzle(c->map.swizzle,
							 c->to + row * row_size(c) +
								 (uint64_t)i * size));
		}
}
