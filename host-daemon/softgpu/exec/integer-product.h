/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Products of matrices of integers by vectors
 *
 * Two elements of 16 bits at a time are multiplied and added up, in each word of a
 * vector. So the elements of 4 and 8 bits in a word become one plane of pairs for every
 * two of them; which two that are does not matter, as long as A and B agree: sums of
 * products of at most 9 bits are exact in any order.
 */

#include "exec/vector-product.h"

/* A plane of pairs for each register of A, and of B. */
#define PAIRS_MAX (MATRIX_A_MAX / 2)
_Static_assert(MATRIX_A_MAX == MATRIX_B_MAX, "the same number of pairs");

/* Elements @i and @i + half a word further, of each word. */
SCALAR __m256i integer_pairs(__m256i words, unsigned int type, uint32_t i)
{
	uint32_t bits = matrix_bits(type);
	__m128i left = _mm_cvtsi32_si128((int)(16 - bits - i * bits));
	__m128i right = _mm_cvtsi32_si128((int)(16 - bits));
	__m256i x = _mm256_sll_epi16(words, left);

	return type == MATRIX_S8 || type == MATRIX_S4 ? _mm256_sra_epi16(x, right)
						      : _mm256_srl_epi16(x, right);
}

/* A as [tile of rows][tile of k][plane][row][t] */
SCALAR void integer_read_a(const struct vector_product *p, uint32_t n_planes, uint32_t *a)
{
	for (uint32_t i = 0; i < p->m; i++)
		for (uint32_t k = 0; k < p->k; k++)
			for (uint32_t plane = 0; plane < n_planes; plane++, a += LANES)
				for (int x = 0; x < LANES; x += 8) {
					const uint32_t *from = &p->a[k * p->m + i][x];

					_mm256_store_si256((__m256i *)(a + x),
						integer_pairs(
							_mm256_loadu_si256(
								(const __m256i *)from),
							p->a_type, plane));
				}
}

/* All words of a tile of columns: eight columns for each t. */
SCALAR void integer_columns(const uint32_t from[LANES], __m256i to[4])
{
	__m128i even[4], odd[4];

	transpose_words(from, even);
	transpose_words(from + 4, odd);
	for (int t = 0; t < 4; t++)
		to[t] = _mm256_set_m128i(odd[t], even[t]);
}

/* B as [tile of columns][tile of k][plane][t][column] */
SCALAR void integer_read_b(const struct vector_product *p, uint32_t n_planes, uint32_t *b)
{
	__m256i words[4];

	for (uint32_t i = 0; i < p->n * p->k; i++) {
		integer_columns(p->b[i], words);
		for (uint32_t plane = 0; plane < n_planes; plane++)
			for (int t = 0; t < 4; t++, b += 8)
				_mm256_store_si256((__m256i *)b,
					integer_pairs(words[t], p->b_type, plane));
	}
}

/* C and four sums; both may be of any sign, and .satfinite limits what they add up to. */
SCALAR void integer_write(const uint32_t *c, uint32_t *d, __m128i sums, bool is_limited)
{
	__m128i x = load_words(c), r = _mm_add_epi32(x, sums);
	__m128i over = _mm_andnot_si128(_mm_xor_si128(x, sums), _mm_xor_si128(x, r));
	__m128i limit = _mm_xor_si128(_mm_srai_epi32(x, 31), _mm_set1_epi32(INT32_MAX));

	if (is_limited)
		r = _mm_blendv_epi8(r, limit, _mm_srai_epi32(over, 31));
	_mm_storeu_si128((__m128i *)d, r);
}

/* A row of tile @tile of the result. */
SCALAR void integer_write_row(
	const struct vector_product *p, uint32_t tile, uint32_t row, __m256i sums)
{
	integer_write(&p->c[2 * tile][4 * row], &p->d[2 * tile][4 * row],
		_mm256_castsi256_si128(sums), p->satfinite);
	integer_write(&p->c[2 * tile + 1][4 * row], &p->d[2 * tile + 1][4 * row],
		_mm256_extracti128_si256(sums, 1), p->satfinite);
}

/* @n: planes of all tiles along k */
SCALAR void integer_sum(const struct vector_product *p, const uint32_t *a,
	const uint32_t *b, uint32_t n, uint32_t tile)
{
	__m256i sums[8];

	for (int i = 0; i < 8; i++)
		sums[i] = _mm256_setzero_si256();
	for (const uint32_t *end = b + n * LANES; b < end; a += LANES, b += LANES)
		for (int t = 0; t < 4; t++) {
			__m256i y = _mm256_load_si256((const __m256i *)(b + 8 * t));

			for (int i = 0; i < 8; i++)
				sums[i] = _mm256_add_epi32(sums[i],
					_mm256_madd_epi16(
						_mm256_set1_epi32((int)a[4 * i + t]), y));
		}
	for (uint32_t i = 0; i < 8; i++)
		integer_write_row(p, tile, i, sums[i]);
}

/* D may be where A and B are, or where C is in earlier rows. */
static void integer_multiply(const struct vector_product *p)
{
	uint32_t n_planes = matrix_elements(p->a_type) / 2, n = n_planes * p->k;
	uint32_t a[PAIRS_MAX] __attribute__((aligned(64)));
	uint32_t b[PAIRS_MAX] __attribute__((aligned(64)));

	integer_read_a(p, n_planes, a);
	integer_read_b(p, n_planes, b);
	for (uint32_t j = 0; j < p->n; j++)
		for (uint32_t i = 0; i < p->m; i++)
			integer_sum(
				p, a + i * n * LANES, b + j * n * LANES, n, j * p->m + i);
}

/*
 * Bits: the number of ones of each byte is looked up, half a byte at a time
 */

SCALAR __m256i bits_count(__m256i x)
{
	const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3,
		4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
	const __m256i low = _mm256_set1_epi8(15);

	return _mm256_add_epi8(_mm256_shuffle_epi8(ones, _mm256_and_si256(x, low)),
		_mm256_shuffle_epi8(
			ones, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
}

/* Ones in bytes: at most 8 of each of the 8 words of a row of 256 bits. */
SCALAR void bits_sum(const struct vector_product *p, const uint32_t (*a)[LANES],
	const __m256i *b, uint32_t tile, bool is_and)
{
	__m256i sums[8];

	for (int i = 0; i < 8; i++)
		sums[i] = _mm256_setzero_si256();
	for (uint32_t k = 0; k < p->k; k++)
		for (int t = 0; t < 4; t++)
			for (int i = 0; i < 8; i++) {
				__m256i x = _mm256_set1_epi32((int)a[k][4 * i + t]);

				x = is_and ? _mm256_and_si256(x, b[4 * k + t])
					   : _mm256_xor_si256(x, b[4 * k + t]);
				sums[i] = _mm256_add_epi8(sums[i], bits_count(x));
			}
	for (uint32_t i = 0; i < 8; i++)
		integer_write_row(p, tile, i,
			_mm256_madd_epi16(
				_mm256_maddubs_epi16(sums[i], _mm256_set1_epi8(1)),
				_mm256_set1_epi16(1)));
}

#define BITS_TILES_MAX 4 /* registers of A, and of B */

/* A as [tile of rows][tile of k] and B as [tile of columns][tile of k][t], because D may
 * be where they are. */
static void bits_multiply(const struct vector_product *p)
{
	uint32_t a[BITS_TILES_MAX][LANES] __attribute__((aligned(64)));
	__m256i b[4 * BITS_TILES_MAX];

	for (uint32_t i = 0; i < p->m * p->k; i++)
		memcpy(a[i], p->a[i % p->k * p->m + i / p->k], sizeof(a[i]));
	for (uint32_t i = 0; i < p->n * p->k; i++)
		integer_columns(p->b[i], b + 4 * i);
	for (uint32_t j = 0; j < p->n; j++)
		for (uint32_t i = 0; i < p->m; i++)
			if (p->is_and)
				bits_sum(p, a + i * p->k, b + 4 * j * p->k, j * p->m + i,
					true);
			else
				bits_sum(p, a + i * p->k, b + 4 * j * p->k, j * p->m + i,
					false);
}
