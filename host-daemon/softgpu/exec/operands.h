/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Operands: the registers of a product of matrices
 *
 * They are named by the operations behind it, see lower/matrix.c: those of A, B, C and
 * the metadata, one after the other, then those of D. A kind that needs them in one piece
 * has them in block.matrix, where D replaces them from row 0 on.
 */

#include "exec/fragment.h"
#include "exec/warp.h"

#define OPERANDS_FROM_MAX 25
#define OPERANDS_TO_MAX 8

struct operands {
	uint32_t n_puts, n_takes;
	const uint32_t *from[OPERANDS_FROM_MAX];
	uint32_t *to[OPERANDS_TO_MAX];
};

/* Return: the next operation. */
SCALAR const struct insn *operands_find(
	struct operands *o, const struct warp *w, const struct insn *ip)
{
	uint64_t imm = ip->imm;

	o->n_puts = imm >> MATRIX_PUTS & 7;
	o->n_takes = imm >> MATRIX_TAKES & 3;
	ip++;
	for (uint32_t i = 0; i < o->n_puts; i++, ip++) {
		const uint32_t **from = o->from + 5 * i;

		from[0] = REG(uint32_t, ip->a);
		from[1] = REG(uint32_t, ip->b);
		from[2] = REG(uint32_t, ip->c);
		from[3] = REG(uint32_t, ip->e);
		from[4] = REG(uint32_t, ip->f);
	}
	for (uint32_t i = 0; i < o->n_takes; i++, ip++) {
		uint32_t **to = o->to + 4 * i;

		to[0] = REG(uint32_t, ip->d);
		to[1] = REG(uint32_t, ip->a);
		to[2] = REG(uint32_t, ip->b);
		to[3] = REG(uint32_t, ip->c);
	}
	return ip + o->n_puts;
}

static inline void operands_gather(const struct operands *o, struct warp *w)
{
	for (uint32_t i = 0; i < 5 * o->n_puts; i++)
		memcpy(w->block->matrix[i], o->from[i], SLOT_BYTES);
}

static inline void operands_scatter(const struct operands *o, const struct warp *w)
{
	for (uint32_t i = 0; i < 4 * o->n_takes; i++)
		memcpy(o->to[i], w->block->matrix[i], SLOT_BYTES);
}
