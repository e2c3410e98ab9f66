/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Products of matrices by vectors: what floats and integers have in common
 *
 * Of each row of A, and of each column of B, four lanes have the elements of a tile, one
 * after the other: 16 bytes. B is transposed, so that for each k there is a vector of
 * columns. Of C and D four lanes have every other element of a row; so the even columns
 * come first in such a vector, then the odd ones.
 */

#include <immintrin.h>

#include "exec/operands.h"
#include "exec/warp.h"

/* A has no zeros. Sizes are in tiles. */
struct vector_product {
	uint32_t m, n, k;
	uint32_t a_type, b_type, c_type, d_type; /* enum matrix_type */
	const uint32_t *const *a;		 /* registers */
	const uint32_t *const *b;
	const uint32_t *const *c;
	uint32_t *const *d; /* may be those of A and B, and those of C in their places */
	bool is_and, satfinite, keeps_a, keeps_b;
	f64 *factors_a, *factors_b; /* of the block */
};

SCALAR void vector_product_init(
	struct vector_product *p, struct warp *w, const struct operands *o, uint64_t imm)
{
	p->m = imm >> MATRIX_M & 7;
	p->n = imm >> MATRIX_N & 7;
	p->a_type = imm >> MATRIX_A & 15;
	p->b_type = imm >> MATRIX_B & 15;
	p->c_type = imm >> MATRIX_C & 15;
	p->d_type = imm >> MATRIX_D & 15;
	p->is_and = imm >> MATRIX_AND & 1;
	p->satfinite = imm >> MATRIX_SATFINITE & 1;
	p->keeps_a = imm >> MATRIX_KEEPS_A & 1;
	p->keeps_b = imm >> MATRIX_KEEPS_B & 1;
	p->factors_a = w->block->matrix_a;
	p->factors_b = w->block->matrix_b;
	p->k = (imm >> MATRIX_K & 1023) / (4 * matrix_elements(p->a_type));
	p->d = o->to;
	p->a = o->from;
	p->b = p->a + p->m * p->k;
	p->c = p->b + p->n * p->k;
}

SCALAR __m128i load_words(const uint32_t *from)
{
	return _mm_loadu_si128((const __m128i *)from);
}

/* Word @t of four columns, every other one from @from on, for each t. */
SCALAR void transpose_words(const uint32_t *from, __m128i to[4])
{
	__m128i x[4], y[4];

	for (int i = 0; i < 4; i++)
		x[i] = load_words(from + 8 * i);
	for (int i = 0; i < 2; i++) {
		y[2 * i] = _mm_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
		y[2 * i + 1] = _mm_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
	}
	for (int i = 0; i < 2; i++) {
		to[2 * i] = _mm_unpacklo_epi64(y[i], y[2 + i]);
		to[2 * i + 1] = _mm_unpackhi_epi64(y[i], y[2 + i]);
	}
}
