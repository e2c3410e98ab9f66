/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Products of matrices of f16 and bf16 that add up f32, by vectors
 *
 * Four lanes have eight elements of a row of A, or of a column of B, one after the other:
 * both are transposed in pieces of 8 by 8, so that for each k there is a vector. Of C and
 * D four lanes have every other element of a row; so B has the even columns first, and
 * sums are vectors of four even or four odd columns.
 *
 * Sums are the same as in product.c to the bit: doubles, by ascending k, and each product
 * is exact.
 */

#include <immintrin.h>

#include "exec/fragment.h"
#include "exec/warp.h"

#define TARGET_512 __attribute__((target("avx512f")))

/* Sizes in tiles of 8; rows of registers as in struct product. */
struct half_product {
	uint32_t m, n, k;
	bool is_bf16;
	const uint32_t (*a)[LANES];
	const uint32_t (*b)[LANES];
	const uint32_t (*c)[LANES];
	uint32_t (*d)[LANES]; /* rows that A begins with */
};

SCALAR __m256 half_convert(__m128i from, bool is_bf16)
{
	if (!is_bf16)
		return _mm256_cvtph_ps(from);
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(from), 16));
}

/* Eight elements, as doubles. */
SCALAR void half_widen(__m128i from, bool is_bf16, f64 to[8])
{
	__m256 x = half_convert(from, is_bf16);

	_mm256_store_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
	_mm256_store_pd(to + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

/* In one piece, as it is loaded again. */
TARGET_512 SCALAR void half_widen_512(__m128i from, bool is_bf16, f64 to[8])
{
	_mm512_store_pd(to, _mm512_cvtps_pd(half_convert(from, is_bf16)));
}

SCALAR __m128i half_load(const uint32_t *from)
{
	return _mm_loadu_si128((const __m128i *)from);
}

/* Eight by eight elements of 16 bits. */
SCALAR void half_transpose(__m128i x[8])
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
 * A as [tile of rows][tile of k][row][k], B as [tile of columns][k][column] with the even
 * columns first
 */
#define HALF_READ(_name, _target, _widen)                                                \
	_target SCALAR void _name##_rows(                                                \
		const uint32_t from[LANES], bool is_bf16, f64 to[64])                    \
	{                                                                                \
		for (int row = 0; row < 8; row++)                                        \
			_widen(half_load(from + 4 * row), is_bf16, to + 8 * row);        \
	}                                                                                \
                                                                                         \
	_target SCALAR void _name##_columns(                                             \
		const uint32_t from[LANES], bool is_bf16, f64 to[64])                    \
	{                                                                                \
		__m128i x[8];                                                            \
                                                                                         \
		for (int i = 0; i < 4; i++) {                                            \
			x[i] = half_load(from + 8 * i);                                  \
			x[4 + i] = half_load(from + 8 * i + 4);                          \
		}                                                                        \
		half_transpose(x);                                                       \
		for (int k = 0; k < 8; k++)                                              \
			_widen(x[k], is_bf16, to + 8 * k);                               \
	}                                                                                \
                                                                                         \
	_target SCALAR void _name##_as(                                                  \
		const struct half_product *p, bool is_bf16, f64 *a, f64 *b)              \
	{                                                                                \
		for (uint32_t i = 0; i < p->m; i++)                                      \
			for (uint32_t k = 0; k < p->k; k++, a += 64)                     \
				_name##_rows(p->a[k * p->m + i], is_bf16, a);            \
		for (uint32_t i = 0; i < p->n * p->k; i++, b += 64)                      \
			_name##_columns(p->b[i], is_bf16, b);                            \
	}                                                                                \
                                                                                         \
	_target SCALAR void _name(const struct half_product *p, f64 *a, f64 *b)          \
	{                                                                                \
		if (p->is_bf16)                                                          \
			_name##_as(p, true, a, b);                                       \
		else                                                                     \
			_name##_as(p, false, a, b);                                      \
	}

HALF_READ(half_read, , half_widen)
HALF_READ(half_read_512, TARGET_512, half_widen_512)

/* Four sums to f32; every NaN is the same. */
SCALAR void half_write(uint32_t *to, __m256d sums)
{
	__m128 x = _mm256_cvtpd_ps(sums);
	__m128 nan = _mm_castsi128_ps(_mm_set1_epi32(0x7fffffff));

	_mm_storeu_ps((float *)to, _mm_blendv_ps(x, nan, _mm_cmpunord_ps(x, x)));
}

SCALAR __m256d half_read_c(const uint32_t *from)
{
	return _mm256_cvtps_pd(_mm_loadu_ps((const float *)from));
}

/* Four rows of a tile; their registers of C and D, two each. @n_k: tiles */
SCALAR void half_sum(const f64 *a, const f64 *b, uint32_t n_k, const uint32_t (*c)[LANES],
	uint32_t (*d)[LANES], uint32_t first)
{
	__m256d even[4], odd[4];

	for (int i = 0; i < 4; i++) {
		even[i] = half_read_c(&c[0][first + 4 * i]);
		odd[i] = half_read_c(&c[1][first + 4 * i]);
	}
	for (const f64 *end = b + 64 * n_k; b < end; a += 64, b += 64)
		for (int k = 0; k < 8; k++) {
			__m256d low = _mm256_load_pd(b + 8 * k);
			__m256d high = _mm256_load_pd(b + 8 * k + 4);

			for (int i = 0; i < 4; i++) {
				__m256d x = _mm256_broadcast_sd(a + 8 * i + k);

				even[i] = _mm256_fmadd_pd(x, low, even[i]);
				odd[i] = _mm256_fmadd_pd(x, high, odd[i]);
			}
		}
	for (int i = 0; i < 4; i++) {
		half_write(&d[0][first + 4 * i], even[i]);
		half_write(&d[1][first + 4 * i], odd[i]);
	}
}

/* The same of all eight rows, which fill a vector of a processor with AVX-512. */
TARGET_512 SCALAR void half_sum_512(const f64 *a, const f64 *b, uint32_t n_k,
	const uint32_t (*c)[LANES], uint32_t (*d)[LANES])
{
	__m512d sums[8];

	for (int i = 0; i < 8; i++)
		sums[i] = _mm512_insertf64x4(
			_mm512_castpd256_pd512(half_read_c(&c[0][4 * i])),
			half_read_c(&c[1][4 * i]), 1);
	for (const f64 *end = b + 64 * n_k; b < end; a += 64, b += 64)
		for (int k = 0; k < 8; k++) {
			__m512d y = _mm512_load_pd(b + 8 * k);

			for (int i = 0; i < 8; i++)
				sums[i] = _mm512_fmadd_pd(
					_mm512_set1_pd(a[8 * i + k]), y, sums[i]);
		}
	for (int i = 0; i < 8; i++) {
		half_write(&d[0][4 * i], _mm512_castpd512_pd256(sums[i]));
		half_write(&d[1][4 * i], _mm512_extractf64x4_pd(sums[i], 1));
	}
}

/* D may be where A and B are, or where C is in earlier rows. */
TARGET_512 static void half_multiply_512(const struct half_product *p)
{
	f64 a[MATRIX_A_MAX] __attribute__((aligned(64)));
	f64 b[MATRIX_B_MAX] __attribute__((aligned(64)));

	half_read_512(p, a, b);
	for (uint32_t i = 0; i < p->n * p->m; i++)
		half_sum_512(a + i % p->m * 64 * p->k, b + i / p->m * 64 * p->k, p->k,
			p->c + 2 * i, p->d + 2 * i);
}

static void half_multiply(const struct half_product *p)
{
	f64 a[MATRIX_A_MAX] __attribute__((aligned(64)));
	f64 b[MATRIX_B_MAX] __attribute__((aligned(64)));

	half_read(p, a, b);
	for (uint32_t i = 0; i < p->n * p->m; i++)
		for (uint32_t row = 0; row < 8; row += 4)
			half_sum(a + i % p->m * 64 * p->k + 8 * row,
				b + i / p->m * 64 * p->k, p->k, p->c + 2 * i,
				p->d + 2 * i, 4 * row);
}
