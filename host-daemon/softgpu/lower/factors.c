/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factors: products of matrices that have a factor in common with the one before
 *
 * Code that multiplies large matrices keeps a tile of A in registers while it multiplies
 * it by several tiles of B, or the other way round. The elements have to be converted
 * only once, if nothing runs between two such instructions: then the second one finds
 * those of the first in the block.
 *
 * Here is also found out whether a product may write its registers before it has read
 * all of C: matrix.c cannot know, because copies of registers disappear after it.
 */

#include "exec/fragment.h"
#include "lower/lower.h"

/* Products in a row that keep something: they are one turn. */
#define CHAIN_MAX 16u

/* What both products have in common if they have a factor in common. */
#define SHAPE_MASK                                                                       \
	(UINT64_C(7) << MATRIX_M | UINT64_C(7) << MATRIX_N |                             \
		UINT64_C(1023) << MATRIX_K | UINT64_C(15) << MATRIX_A |                  \
		UINT64_C(15) << MATRIX_B)

/* A product with MATRIX_PUT and MATRIX_TAKE behind it. */
static bool is_product(const struct operation *o)
{
	return o->op == OP_MMA_REAL || o->op == OP_MMA_INTEGER || o->op == OP_MMA_BITS;
}

/* Whether it may have a factor in common with another one. */
static bool is_convertible(const struct operation *o)
{
	return o->op == OP_MMA_REAL && !(o->imm >> MATRIX_SPARSE & 1) &&
	       o->guard == VALUE_TRUE;
}

static uint32_t source(const struct operation *product, uint32_t i)
{
	static const uint8_t fields[] = { FIELD_A, FIELD_B, FIELD_C, FIELD_E, FIELD_F };
	uint32_t n = sizeof(fields);

	return product[1 + i / n].field[fields[i % n]];
}

static uint32_t result(const struct operation *product, uint32_t i)
{
	static const uint8_t fields[] = { FIELD_D, FIELD_A, FIELD_B, FIELD_C };
	uint32_t n = sizeof(fields);

	return product[1 + (product->imm >> MATRIX_PUTS & 7) + i / n]
		.field[fields[i % n]];
}

/* Results that nothing uses included. */
static uint32_t n_results(const struct operation *product)
{
	return 4 * (product->imm >> MATRIX_TAKES & 3);
}

/* Return: registers of A, and *n_bothp: of A and B. */
static uint32_t n_factors(uint64_t imm, uint32_t *n_bothp)
{
	uint32_t m = 8 * (imm >> MATRIX_M & 7), n = 8 * (imm >> MATRIX_N & 7);
	uint32_t k = imm >> MATRIX_K & 1023;
	uint32_t n_a = matrix_registers(MATRIX_ROLE_A, imm >> MATRIX_A & 15, m, n,
		imm >> MATRIX_SPARSE & 1 ? k / 2 : k);

	*n_bothp = n_a + matrix_registers(MATRIX_ROLE_B, imm >> MATRIX_B & 15, m, n, k);
	return n_a;
}

static bool is_result(const struct operation *product, uint32_t value)
{
	for (uint32_t i = 0; i < n_results(product); i++)
		if (result(product, i) == value)
			return true;
	return false;
}

/* Whether each register of D is none of C, or that of the same elements. */
static bool is_apart(const struct operation *product)
{
	uint64_t imm = product->imm;
	uint32_t m = 8 * (imm >> MATRIX_M & 7), n = 8 * (imm >> MATRIX_N & 7);
	bool alike = (imm >> MATRIX_C & 15) == (imm >> MATRIX_D & 15);
	uint32_t n_c = matrix_registers(MATRIX_ROLE_C, imm >> MATRIX_C & 15, m, n, 0);
	uint32_t first;

	n_factors(imm, &first);
	for (uint32_t i = 0; i < n_c; i++)
		for (uint32_t j = 0; j < n_results(product); j++)
			if (source(product, first + i) == result(product, j) &&
				!(alike && i == j))
				return false;
	return true;
}

/* Return: the product after which there are only operations that name registers, or
 * NULL. */
static struct operation *find_previous(
	const struct lowering *l, const bool *is_target, const bool *is_gone, uint32_t at)
{
	for (uint32_t i = at; i && !is_target[i]; i--) {
		struct operation *o = &l->ops[i - 1];

		if (is_gone[i - 1])
			continue;
		if (o->op == OP_MMA_REAL)
			return is_convertible(o) ? o : NULL;
		if (o->op != OP_MATRIX_PUT && o->op != OP_MATRIX_TAKE &&
			o->op != OP_WARP_SYNC)
			return NULL;
	}
	return NULL;
}

/* Whether both have the same source registers from @from to before @to. */
static bool is_same(const struct operation *first, const struct operation *second,
	uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (source(first, i) != source(second, i) ||
			is_result(first, source(first, i)))
			return false;
	return true;
}

/* Return: the bits of MMA_REAL for the factors that stay. */
static uint64_t find_common(const struct operation *first, const struct operation *second)
{
	uint32_t n_both, n_a = n_factors(second->imm, &n_both);
	uint64_t common = 0;

	if ((first->imm ^ second->imm) & SHAPE_MASK)
		return 0;
	if (is_same(first, second, 0, n_a))
		common |= UINT64_C(1) << MATRIX_KEEPS_A;
	if (is_same(first, second, n_a, n_both))
		common |= UINT64_C(1) << MATRIX_KEEPS_B;
	return common;
}

void lower_factors(struct lowering *l, const bool *is_target, bool *is_gone)
{
	uint32_t n_chain = 0;

	for (uint32_t i = 0; i < l->n_ops; i++) {
		struct operation *o = &l->ops[i], *previous;
		uint64_t common = 0;

		if (!is_product(o))
			continue;
		if (is_apart(o))
			o->imm |= UINT64_C(1) << MATRIX_APART;
		previous = is_convertible(o) && n_chain < CHAIN_MAX
				   ? find_previous(l, is_target, is_gone, i)
				   : NULL;
		if (previous)
			common = find_common(previous, o);
		n_chain = common ? n_chain + 1 : 0;
		if (!common)
			continue;
		o->imm |= common;
		previous->reserved |= INSN_KEEPS_TURN;
		/* All lanes are here. */
		for (previous++; previous < o; previous++)
			if (previous->op == OP_WARP_SYNC)
				is_gone[previous - l->ops] = true;
	}
}
