/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simplify: fewer operations that do the same
 *
 * Compilers for GPUs leave copies, of special registers, of parameters and of addresses
 * in another space, which cost there next to nothing; here each is an operation. What is
 * written once, by a copy of something that never changes, is replaced by what it is a
 * copy of: constants and special registers have slots in any case, and a kernel's first
 * parameters get some. The same goes for a copy of a register that is written once, if
 * both are written at the beginning, where no operation runs twice.
 *
 * A product whose only use is the next sum becomes one operation with it, of integers
 * alone: that of floats would round once instead of twice. A comparison before a branch
 * runs that at once; the branch stays where it is, and is run by itself if lanes wait
 * there.
 *
 * An undefined register may have another value then than without this.
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* Parameters with slots of their own: they take room in caches from registers. */
#define PARAMS_MAX 16u

struct simplify {
	struct lowering *l;
	uint32_t *n_writes; /* by value */
	uint32_t *n_reads;
	uint32_t *same;	 /* the value that takes its place, or 0 */
	bool *is_early;	 /* it is written at the beginning, where operations run once */
	bool *is_target; /* by operation: a label is there */
	bool *is_gone;
	uint32_t early_end; /* the first operation after those that run once */
	uint32_t params[PARAMS_MAX];
	uint32_t n_params;
};

static void simplify_deinit(struct simplify *s)
{
	free(s->n_writes);
	free(s->n_reads);
	free(s->same);
	free(s->is_early);
	free(s->is_target);
	free(s->is_gone);
}

static bool is_written(char kind)
{
	return kind == 'W' || kind == 'X' || kind == 'P';
}

static void count_operands(struct simplify *s, uint32_t i)
{
	const struct operation *o = &s->l->ops[i];
	const char *signature = op_signature(o->op);

	for (unsigned int k = 0; k < _FIELD_N; k++) {
		uint32_t v = o->field[k] & ~VALUE_NEGATED;

		if (is_written(signature[k])) {
			s->n_writes[v]++;
			s->is_early[v] = i >= s->l->entry && i < s->early_end;
		} else if (signature[k] != '-') {
			s->n_reads[v]++;
		}
	}
}

bool lower_leaves(const struct operation *o)
{
	return o->op == OP_BRA || o->op == OP_BRX || o->op == OP_EXIT ||
	       o->op == OP_RETURN || o->op == OP_CALL || o->op == OP_CALL_POINTER;
}

static int simplify_init(struct simplify *s)
{
	struct lowering *l = s->l;
	size_t n_values = l->n_values, n_ops = (size_t)l->n_ops + 1;

	s->n_writes = calloc(n_values, sizeof(*s->n_writes));
	s->n_reads = calloc(n_values, sizeof(*s->n_reads));
	/* The values of parameters come after the others. */
	s->same = calloc(n_values + PARAMS_MAX, sizeof(*s->same));
	s->is_early = calloc(n_values, sizeof(*s->is_early));
	s->is_target = calloc(n_ops, sizeof(*s->is_target));
	s->is_gone = calloc(n_ops, sizeof(*s->is_gone));
	if (!s->n_writes || !s->n_reads || !s->same || !s->is_early || !s->is_target ||
		!s->is_gone)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->n_labels; i++)
		s->is_target[l->labels[i]] = true;
	s->early_end = l->entry;
	while (s->early_end < l->n_ops && !s->is_target[s->early_end] &&
		!lower_leaves(&l->ops[s->early_end]))
		s->early_end++;
	for (uint32_t i = 0; i < l->n_ops; i++)
		count_operands(s, i);
	return 0;
}

/*
 * Copies
 */

static bool is_register(const struct value *v)
{
	return v->kind == VALUE_REGISTER || v->kind == VALUE_TEMPORARY;
}

static bool is_fixed(const struct value *v)
{
	return v->kind == VALUE_CONSTANT || v->kind == VALUE_SREG;
}

/* Return: the constant with that parameter, or 0 if there are too many. */
static uint32_t param_value(struct simplify *s, enum value_class class, uint32_t off)
{
	struct lowering *l = s->l;
	uint32_t v;

	for (uint32_t i = 0; i < s->n_params; i++) {
		v = s->params[i];
		if (l->values[v].class == class && l->values[v].bits == off)
			return v;
	}
	if (s->n_params >= PARAMS_MAX)
		return VALUE_NONE;
	v = lower_value_new(l, class, VALUE_CONSTANT);
	if (!v)
		return VALUE_NONE;
	l->values[v].bits = off;
	l->values[v].is_param = true;
	s->params[s->n_params++] = v;
	return v;
}

/* Return: what the operation copies into a register that nothing else writes, or 0. */
static uint32_t copied(struct simplify *s, const struct operation *o)
{
	struct lowering *l = s->l;
	uint32_t d = o->field[FIELD_D], a = o->field[FIELD_A];

	switch (o->op) {
	case OP_MOV_32:
	case OP_MOV_64:
		break;
	case OP_LDP_32:
	case OP_LDP_64:
		a = VALUE_NONE;
		break;
	default:
		return VALUE_NONE;
	}
	if (o->guard != VALUE_TRUE || !is_register(&l->values[d]) || s->n_writes[d] != 1)
		return VALUE_NONE;
	/* The common subroutines of several kernels have no parameters of any. */
	if (!a)
		return param_value(s, l->values[d].class, (uint32_t)o->imm);
	a = s->same[a] ? s->same[a] : a;
	if (is_fixed(&l->values[a]))
		return a;
	return s->n_writes[a] == 1 && s->is_early[a] && s->is_early[d] ? a : VALUE_NONE;
}

static void replace_copies(struct simplify *s)
{
	struct lowering *l = s->l;

	for (uint32_t i = 0; i < l->n_ops; i++) {
		uint32_t a = copied(s, &l->ops[i]), d = l->ops[i].field[FIELD_D];

		if (!a || s->same[d])
			continue;
		s->same[d] = a;
		s->is_gone[i] = true;
		/* It may be needed in other blocks now. */
		if (l->values[a].kind == VALUE_TEMPORARY)
			l->values[a].kind = VALUE_REGISTER;
		if (is_register(&l->values[a]))
			s->n_reads[a] += s->n_reads[d];
	}
	for (uint32_t i = 0; i < l->n_ops; i++) {
		const char *signature = op_signature(l->ops[i].op);

		for (unsigned int k = 0; k < _FIELD_N; k++) {
			uint32_t *field = &l->ops[i].field[k];

			if ((signature[k] == 'w' || signature[k] == 'x') &&
				s->same[*field])
				*field = s->same[*field];
		}
	}
}

/*
 * Pairs
 */

/* Return: the operation after that one in its block, or n_ops. */
static uint32_t next_in_block(const struct simplify *s, uint32_t i)
{
	uint32_t n = s->l->n_ops;

	do
		i++;
	while (i < n && s->is_gone[i] && !s->is_target[i]);
	return i < n && s->is_target[i] ? n : i;
}

static unsigned int fused_sum(unsigned int product, unsigned int sum)
{
	if (sum == OP_ADD_64)
		return product == OP_MULWIDE_S32   ? OP_MADWIDE_S32
		       : product == OP_MULWIDE_U32 ? OP_MADWIDE_U32
		       : product == OP_MUL_64	   ? OP_MAD_64
						   : 0;
	return sum == OP_ADD_32 && product == OP_MUL_32 ? OP_MAD_32 : 0;
}

/* Operation @i is a product, @next perhaps a sum. */
static void fuse_sum(struct simplify *s, uint32_t i, uint32_t next)
{
	struct operation *product = &s->l->ops[i], *sum = &s->l->ops[next];
	unsigned int op = fused_sum(product->op, sum->op);
	uint32_t t = product->field[FIELD_D], other;

	if (!op || product->guard != sum->guard || s->n_writes[t] != 1 ||
		s->n_reads[t] != 1 || !is_register(&s->l->values[t]))
		return;
	if (sum->field[FIELD_A] == t)
		other = sum->field[FIELD_B];
	else if (sum->field[FIELD_B] == t)
		other = sum->field[FIELD_A];
	else
		return;
	sum->op = (uint16_t)op;
	sum->field[FIELD_A] = product->field[FIELD_A];
	sum->field[FIELD_B] = product->field[FIELD_B];
	sum->field[FIELD_C] = other;
	s->is_gone[i] = true;
}

static bool is_comparison(unsigned int op)
{
	return op >= OP_EQ_U16 && op < OP_EQ_U16 + _OP_N - OP_EQ_U16_BRA;
}

static void fuse_pairs(struct simplify *s)
{
	struct lowering *l = s->l;

	for (uint32_t i = 0; i < l->n_ops; i++) {
		uint32_t next = next_in_block(s, i);

		if (s->is_gone[i] || next >= l->n_ops)
			continue;
		if (is_comparison(l->ops[i].op) && l->ops[next].op == OP_BRA)
			l->ops[i].op =
				(uint16_t)(l->ops[i].op - OP_EQ_U16 + OP_EQ_U16_BRA);
		else
			fuse_sum(s, i, next);
	}
}

/*
 * What is gone leaves no gap. @moved: for each operation, and the end, where it is now
 */
static void close_gaps(struct simplify *s, uint32_t *moved)
{
	struct lowering *l = s->l;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_ops; i++) {
		moved[i] = n;
		if (!s->is_gone[i])
			l->ops[n++] = l->ops[i];
	}
	moved[l->n_ops] = n;
	for (uint32_t i = 0; i < l->n_labels; i++)
		l->labels[i] = moved[l->labels[i]];
	for (uint32_t i = l->first_subroutine; i < l->n_subroutines; i++) {
		l->subroutines[i].first_op = moved[l->subroutines[i].first_op];
		l->subroutines[i].end_op = moved[l->subroutines[i].end_op];
	}
	l->entry = moved[l->entry];
	l->n_ops = n;
}

int lower_simplify(struct lowering *l)
{
	_vgpu_cleanup_(vgpu_freep) uint32_t *moved =
		calloc((size_t)l->n_ops + 1, sizeof(*moved));
	__attribute__((__cleanup__(simplify_deinit))) struct simplify s = { .l = l };
	int r = moved ? simplify_init(&s) : SOFTGPU_ERROR_OUT_OF_MEMORY;

	if (r)
		return r;
	replace_copies(&s);
	if (l->error)
		return l->error;
	fuse_pairs(&s);
	lower_factors(l, s.is_target, s.is_gone);
	close_gaps(&s, moved);
	return 0;
}
