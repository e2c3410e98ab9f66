/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Products of matrices of floats by vectors
 *
 * Sums are the same as in product.c to the bit: doubles, by ascending k, and each product
 * is exact. Floats of 8 bits are all numbers of 16 bits, too, and are made such ones
 * first. @depth is 4 or 8: elements of a tile along k.
 */

#include "exec/vector-product.h"

#define TARGET_512 __attribute__((target("avx512f")))

/* A register of bytes becomes two of halves, of A and of B at most these. */
#define BYTES_A_MAX 4
#define BYTES_B_MAX 2

#define ROWS_MAX 6
#define ALL_ROWS _Pragma("GCC unroll 6")

/*
 * Elements as doubles
 */

SCALAR __m256 real_convert(__m128i from, unsigned int type)
{
	if (type == MATRIX_F16)
		return _mm256_cvtph_ps(from);
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(from), 16));
}

/* Four elements of 16 bits, in the lower half. */
SCALAR __m256d real_widen_half(__m128i from, unsigned int type)
{
	if (type == MATRIX_F16)
		return _mm256_cvtps_pd(_mm_cvtph_ps(from));
	return _mm256_cvtps_pd(
		_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(from), 16)));
}

/* Eight elements of 16 bits. */
SCALAR void real_widen(__m128i from, unsigned int type, f64 to[8])
{
	_mm256_store_pd(to, real_widen_half(from, type));
	_mm256_store_pd(to + 4, real_widen_half(_mm_unpackhi_epi64(from, from), type));
}

/* In one piece, as it is loaded again. */
TARGET_512 SCALAR void real_widen_512(__m128i from, unsigned int type, f64 to[8])
{
	_mm512_store_pd(to, _mm512_cvtps_pd(real_convert(from, type)));
}

/* Four elements of 32 bits. */
SCALAR void real_widen_words(__m128i from, f64 to[4])
{
	__m128i x = _mm_and_si128(from, _mm_set1_epi32((int)0xffffe000u));

	_mm256_store_pd(to, _mm256_cvtps_pd(_mm_castsi128_ps(x)));
}

/* Eight by eight elements of 16 bits. */
SCALAR void transpose_halves(__m128i x[8])
{
	__m128i y[8], z[8];

	for (int i = 0; i < 4; i++) {
		y[2 * i] = _mm_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
		y[2 * i + 1] = _mm_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
	}
	for (int i = 0; i < 2; i++) {
		z[4 * i] = _mm_unpacklo_epi32(y[4 * i], y[4 * i + 2]);
		z[4 * i + 1] = _mm_unpackhi_epi32(y[4 * i], y[4 * i + 2]);
		z[4 * i + 2] = _mm_unpacklo_epi32(y[4 * i + 1], y[4 * i + 3]);
		z[4 * i + 3] = _mm_unpackhi_epi32(y[4 * i + 1], y[4 * i + 3]);
	}
	for (int i = 0; i < 4; i++) {
		x[2 * i] = _mm_unpacklo_epi64(z[i], z[4 + i]);
		x[2 * i + 1] = _mm_unpackhi_epi64(z[i], z[4 + i]);
	}
}

/*
 * A as [tile of rows][tile of k][row][k], B as [tile of columns][tile of k][k][column]
 */
#define REAL_READ(_name, _target, _widen)                                                \
	_target SCALAR void _name##_rows(                                                \
		const uint32_t from[LANES], unsigned int type, f64 to[64])               \
	{                                                                                \
		for (int row = 0; row < 8; row++)                                        \
			_widen(load_words(from + 4 * row), type, to + 8 * row);          \
	}                                                                                \
                                                                                         \
	_target SCALAR void _name##_columns(                                             \
		const uint32_t from[LANES], unsigned int type, f64 to[64])               \
	{                                                                                \
		__m128i x[8];                                                            \
                                                                                         \
		for (int i = 0; i < 4; i++) {                                            \
			x[i] = load_words(from + 8 * i);                                 \
			x[4 + i] = load_words(from + 8 * i + 4);                         \
		}                                                                        \
		transpose_halves(x);                                                     \
		for (int k = 0; k < 8; k++)                                              \
			_widen(x[k], type, to + 8 * k);                                  \
	}                                                                                \
                                                                                         \
	_target SCALAR void _name##_as(                                                  \
		const struct vector_product *p, unsigned int type)                       \
	{                                                                                \
		f64 *a = p->factors_a, *b = p->factors_b;                                \
                                                                                         \
		for (uint32_t i = 0; i < p->m && !p->keeps_a; i++)                       \
			for (uint32_t k = 0; k < p->k; k++, a += 64)                     \
				_name##_rows(p->a[k * p->m + i], type, a);               \
		for (uint32_t i = 0; i < p->n * p->k && !p->keeps_b; i++, b += 64)       \
			_name##_columns(p->b[i], type, b);                               \
	}                                                                                \
                                                                                         \
	_target SCALAR void _name(const struct vector_product *p)                        \
	{                                                                                \
		if (p->a_type == MATRIX_BF16)                                            \
			_name##_as(p, MATRIX_BF16);                                      \
		else                                                                     \
			_name##_as(p, MATRIX_F16);                                       \
	}

REAL_READ(real_read, , real_widen)
REAL_READ(real_read_512, TARGET_512, real_widen_512)

/* The same of elements of 32 bits. */
SCALAR void real_read_words(const struct vector_product *p)
{
	f64 *a = p->factors_a, *b = p->factors_b;
	__m128i even[4], odd[4];

	for (uint32_t i = 0; i < p->m && !p->keeps_a; i++)
		for (uint32_t k = 0; k < p->k; k++, a += 32)
			for (int row = 0; row < 8; row++)
				real_widen_words(load_words(&p->a[k * p->m + i][4 * row]),
					a + 4 * row);
	for (uint32_t i = 0; i < p->n * p->k && !p->keeps_b; i++, b += 32) {
		transpose_words(p->b[i], even);
		transpose_words(p->b[i] + 4, odd);
		for (int k = 0; k < 4; k++) {
			real_widen_words(even[k], b + 8 * k);
			real_widen_words(odd[k], b + 8 * k + 4);
		}
	}
}

/* Eight bytes, each in the lower half of 16 bits, as halves. */
SCALAR __m128i halves_of_bytes(__m128i x, unsigned int type)
{
	__m128i sign, rest, nan;
	__m256 y;

	if (type == MATRIX_E5M2)
		return _mm_slli_epi16(x, 8);
	/* The exponents of both differ by 8. Of e4m3 only one number is a NaN. */
	sign = _mm_slli_epi16(_mm_and_si128(x, _mm_set1_epi16(0x80)), 8);
	rest = _mm_and_si128(x, _mm_set1_epi16(0x7f));
	nan = _mm_cmpeq_epi16(rest, _mm_set1_epi16(0x7f));
	y = _mm256_cvtph_ps(_mm_or_si128(sign, _mm_slli_epi16(rest, 7)));
	y = _mm256_mul_ps(y, _mm256_set1_ps(256.0f));
	return _mm_or_si128(_mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT),
		_mm_and_si128(nan, _mm_set1_epi16(0x7e00)));
}

/* A register of bytes: four lanes have eight elements each of two tiles. */
SCALAR void split_bytes(const uint32_t from[LANES], unsigned int type,
	uint32_t first[LANES], uint32_t second[LANES])
{
	for (int i = 0; i < LANES; i += 4) {
		__m128i x = load_words(from + i), zero = _mm_setzero_si128();

		_mm_store_si128((__m128i *)(first + i),
			halves_of_bytes(_mm_unpacklo_epi8(x, zero), type));
		_mm_store_si128((__m128i *)(second + i),
			halves_of_bytes(_mm_unpackhi_epi8(x, zero), type));
	}
}

/*
 * C and D
 */

/* Of one tile of rows and one of columns: registers of C and D, and the elements of A. */
struct real_tile {
	const uint32_t *c[2];
	uint32_t *d[2];
	const f64 *a;
};

SCALAR void real_tile_init(struct real_tile *t, const struct vector_product *p,
	uint32_t tile, const f64 *a, uint32_t c_type, uint32_t d_type)
{
	t->a = a;
	if (c_type == MATRIX_F16) {
		t->c[0] = p->c[tile];
	} else {
		t->c[0] = p->c[2 * tile];
		t->c[1] = p->c[2 * tile + 1];
	}
	if (d_type == MATRIX_F16) {
		t->d[0] = p->d[tile];
	} else {
		t->d[0] = p->d[2 * tile];
		t->d[1] = p->d[2 * tile + 1];
	}
}

/* A row of C: its even and its odd columns. */
SCALAR void real_read_c(const struct real_tile *t, uint32_t row, uint32_t type,
	__m256d *evenp, __m256d *oddp)
{
	__m128 even, odd;

	if (type == MATRIX_F16) {
		__m128i x = load_words(t->c[0] + 4 * row);
		__m256 y = _mm256_cvtph_ps(_mm_packus_epi32(
			_mm_and_si128(x, _mm_set1_epi32(0xffff)), _mm_srli_epi32(x, 16)));

		even = _mm256_castps256_ps128(y);
		odd = _mm256_extractf128_ps(y, 1);
	} else {
		even = _mm_castsi128_ps(load_words(t->c[0] + 4 * row));
		odd = _mm_castsi128_ps(load_words(t->c[1] + 4 * row));
	}
	*evenp = _mm256_cvtps_pd(even);
	*oddp = _mm256_cvtps_pd(odd);
}

/* Four sums to f32, of which those that are NaN are all the same one. */
SCALAR void real_write(uint32_t *to, __m256d sums, bool any_nan)
{
	__m128 x = _mm256_cvtpd_ps(sums);
	__m128 nan = _mm_castsi128_ps(_mm_set1_epi32(0x7fffffff));

	if (any_nan)
		x = _mm_blendv_ps(x, nan, _mm_cmpunord_ps(x, x));
	_mm_storeu_ps((float *)to, x);
}

/* Four sums to f32 by rounding to odd: rounded again to fewer bits they are correct. */
SCALAR __m128 real_to_odd(__m256d sums)
{
	const __m256i rest = _mm256_set1_epi64x(0x1fffffff);
	__m256i x = _mm256_castpd_si256(sums);
	__m256i carry = _mm256_add_epi64(_mm256_and_si256(x, rest), rest);

	x = _mm256_andnot_si256(rest, _mm256_or_si256(x, carry));
	return _mm256_cvtpd_ps(_mm256_castsi256_pd(x));
}

/* Four even and four odd sums to f16, in pairs. */
SCALAR void real_write_halves(uint32_t *to, __m256d even, __m256d odd)
{
	__m256 x = _mm256_set_m128(real_to_odd(odd), real_to_odd(even));
	__m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
	__m128i nan = _mm_packs_epi32(
		_mm256_castsi256_si128(is_nan), _mm256_extracti128_si256(is_nan, 1));
	__m128i y = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);

	y = _mm_blendv_epi8(y, _mm_set1_epi16(0x7fff), nan);
	_mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(y, _mm_unpackhi_epi64(y, y)));
}

SCALAR void real_write_d(const struct real_tile *t, uint32_t row, uint32_t type,
	__m256d even, __m256d odd, bool any_nan)
{
	if (type == MATRIX_F16) {
		real_write_halves(t->d[0] + 4 * row, even, odd);
		return;
	}
	real_write(t->d[0] + 4 * row, even, any_nan);
	real_write(t->d[1] + 4 * row, odd, any_nan);
}

/*
 * Sums
 */

/*
 * Rows @row to @row + @n - 1 of one or two tiles. In registers are two sums for each row:
 * those of four rows suffice for a processor that begins two products at a time, each of
 * which takes four cycles; with more there is time for the rest of the work.
 *
 * @b: @size elements of the tile of columns
 */
SCALAR void real_sum(const struct real_tile t[2], const f64 *b, size_t size,
	uint32_t depth, uint32_t c_type, uint32_t d_type, const uint32_t row,
	const uint32_t n)
{
	__m256d even[ROWS_MAX], odd[ROWS_MAX], nan = _mm256_setzero_pd();

	ALL_ROWS
	for (uint32_t i = 0; i < n; i++)
		real_read_c(&t[(row + i) / 8], (row + i) % 8, c_type, &even[i], &odd[i]);
	for (size_t at = 0; at < size; at += 8 * depth)
		for (uint32_t k = 0; k < depth; k++) {
			__m256d low = _mm256_load_pd(b + at + 8 * k);
			__m256d high = _mm256_load_pd(b + at + 8 * k + 4);

			ALL_ROWS
			for (uint32_t i = 0; i < n; i++) {
				__m256d x =
					_mm256_broadcast_sd(t[(row + i) / 8].a + at +
							    (row + i) % 8 * depth + k);

				even[i] = _mm256_fmadd_pd(x, low, even[i]);
				odd[i] = _mm256_fmadd_pd(x, high, odd[i]);
			}
		}
	ALL_ROWS
	for (uint32_t i = 0; i < n; i++)
		nan = _mm256_or_pd(nan, _mm256_cmp_pd(even[i], odd[i], _CMP_UNORD_Q));
	if (__builtin_expect(_mm256_movemask_pd(nan), 0)) {
		ALL_ROWS
		for (uint32_t i = 0; i < n; i++)
			real_write_d(&t[(row + i) / 8], (row + i) % 8, d_type, even[i],
				odd[i], true);
	} else {
		ALL_ROWS
		for (uint32_t i = 0; i < n; i++)
			real_write_d(&t[(row + i) / 8], (row + i) % 8, d_type, even[i],
				odd[i], false);
	}
}

/* All eight rows, which fill a vector of a processor with AVX-512; C and D are f32. */
TARGET_512 SCALAR void real_sum_512(
	const struct vector_product *p, const f64 *a, const f64 *b, uint32_t tile)
{
	__m256d even, odd;
	__m512d sums[8];

	for (uint32_t i = 0; i < 8; i++) {
		even = _mm256_cvtps_pd(
			_mm_loadu_ps((const float *)&p->c[2 * tile][4 * i]));
		odd = _mm256_cvtps_pd(
			_mm_loadu_ps((const float *)&p->c[2 * tile + 1][4 * i]));
		sums[i] = _mm512_insertf64x4(_mm512_castpd256_pd512(even), odd, 1);
	}
	for (const f64 *end = b + 64 * p->k; b < end; a += 64, b += 64)
		for (int k = 0; k < 8; k++) {
			__m512d y = _mm512_load_pd(b + 8 * k);

			for (int i = 0; i < 8; i++)
				sums[i] = _mm512_fmadd_pd(
					_mm512_set1_pd(a[8 * i + k]), y, sums[i]);
		}
	for (uint32_t i = 0; i < 8; i++) {
		real_write(&p->d[2 * tile][4 * i], _mm512_castpd512_pd256(sums[i]), true);
		real_write(&p->d[2 * tile + 1][4 * i], _mm512_extractf64x4_pd(sums[i], 1),
			true);
	}
}

TARGET_512 static void real_multiply_512(const struct vector_product *p)
{
	const f64 *a = p->factors_a, *b = p->factors_b;

	real_read_512(p);
	for (uint32_t j = 0; j < p->n; j++)
		for (uint32_t i = 0; i < p->m; i++)
			real_sum_512(
				p, a + i * 64 * p->k, b + j * 64 * p->k, j * p->m + i);
}

SCALAR void real_sums_of(
	const struct vector_product *p, uint32_t depth, uint32_t c_type, uint32_t d_type)
{
	size_t size = (size_t)8 * depth * p->k;
	const f64 *b = p->factors_b;

	for (uint32_t j = 0; j < p->n; j++, b += size) {
		const f64 *a = p->factors_a;
		uint32_t tile = j * p->m;
		struct real_tile t[2] = {};

		if (p->m == 1) {
			real_tile_init(&t[0], p, tile, a, c_type, d_type);
			real_sum(t, b, size, depth, c_type, d_type, 0, 4);
			real_sum(t, b, size, depth, c_type, d_type, 4, 4);
			continue;
		}
		for (uint32_t i = 0; i < p->m; i += 2, tile += 2, a += 2 * size) {
			real_tile_init(&t[0], p, tile, a, c_type, d_type);
			real_tile_init(&t[1], p, tile + 1, a + size, c_type, d_type);
			real_sum(t, b, size, depth, c_type, d_type, 0, 5);
			real_sum(t, b, size, depth, c_type, d_type, 5, 5);
			real_sum(t, b, size, depth, c_type, d_type, 10, 6);
		}
	}
}

SCALAR void real_sums(const struct vector_product *p)
{
	if (p->c_type == MATRIX_F32 && p->d_type == MATRIX_F32)
		real_sums_of(p, 8, MATRIX_F32, MATRIX_F32);
	else
		real_sums_of(p, 8, p->c_type, p->d_type);
}

static void real_multiply_halves(const struct vector_product *p)
{
	/* Partner: softgpu_handlers_for(). */
	if (p->c_type == MATRIX_F32 && p->d_type == MATRIX_F32 &&
		__atomic_load_n(&softgpu_uses_512, __ATOMIC_RELAXED)) {
		real_multiply_512(p);
		return;
	}
	real_read(p);
	real_sums(p);
}

static void real_multiply_words(const struct vector_product *p)
{
	real_read_words(p);
	real_sums_of(p, 4, MATRIX_F32, MATRIX_F32);
}

static void real_multiply_bytes(const struct vector_product *bytes)
{
	uint32_t a[2 * BYTES_A_MAX][LANES] __attribute__((aligned(64)));
	uint32_t b[2 * BYTES_B_MAX][LANES] __attribute__((aligned(64)));
	const uint32_t *rows_a[2 * BYTES_A_MAX], *rows_b[2 * BYTES_B_MAX];
	struct vector_product p = *bytes;

	for (uint32_t i = 0; i < p.m * p.k && !p.keeps_a; i++) {
		uint32_t(*to)[LANES] = a + i / p.m * 2 * p.m + i % p.m;

		split_bytes(p.a[i], p.a_type, to[0], to[p.m]);
	}
	for (uint32_t i = 0; i < p.n * p.k && !p.keeps_b; i++)
		split_bytes(p.b[i], p.b_type, b[2 * i], b[2 * i + 1]);
	for (int i = 0; i < 2 * BYTES_A_MAX; i++)
		rows_a[i] = a[i];
	for (int i = 0; i < 2 * BYTES_B_MAX; i++)
		rows_b[i] = b[i];
	p.a = rows_a;
	p.b = rows_b;
	p.a_type = p.b_type = MATRIX_F16;
	p.k *= 2;
	real_multiply_halves(&p);
}

static void real_multiply(const struct vector_product *p)
{
	switch (p->a_type) {
	case MATRIX_F16:
	case MATRIX_BF16:
		real_multiply_halves(p);
		break;
	case MATRIX_TF32:
		real_multiply_words(p);
		break;
	default:
		real_multiply_bytes(p);
		break;
	}
}
