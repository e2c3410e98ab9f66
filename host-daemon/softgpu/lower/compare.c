/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: comparisons and choices
 *
 * Every comparison is one of EQ, LT (integers) or EQ, NE, LT, LE, NUM (floats, false
 * where a NaN takes part), with its operands swapped and its result inverted as the
 * relation wants: the unordered relations are the inverse of the opposite ordered one.
 */

#include "lower/lower.h"

struct relation {
	enum { REL_EQ, REL_NE, REL_LT, REL_LE, REL_NUM } what;
	bool swap;
	bool invert;
	bool is_unsigned;
};

static const struct relation integer_relations[_PTX_CMP_N] = {
	[PTX_CMP_EQ] = { REL_EQ, false, false, false },
	[PTX_CMP_NE] = { REL_EQ, false, true, false },
	[PTX_CMP_LT] = { REL_LT, false, false, false },
	[PTX_CMP_LE] = { REL_LT, true, true, false },
	[PTX_CMP_GT] = { REL_LT, true, false, false },
	[PTX_CMP_GE] = { REL_LT, false, true, false },
	[PTX_CMP_LO] = { REL_LT, false, false, true },
	[PTX_CMP_LS] = { REL_LT, true, true, true },
	[PTX_CMP_HI] = { REL_LT, true, false, true },
	[PTX_CMP_HS] = { REL_LT, false, true, true },
};

static const struct relation real_relations[_PTX_CMP_N] = {
	[PTX_CMP_EQ] = { REL_EQ, false, false, false },
	[PTX_CMP_NE] = { REL_NE, false, false, false },
	[PTX_CMP_LT] = { REL_LT, false, false, false },
	[PTX_CMP_LE] = { REL_LE, false, false, false },
	[PTX_CMP_GT] = { REL_LT, true, false, false },
	[PTX_CMP_GE] = { REL_LE, true, false, false },
	[PTX_CMP_EQU] = { REL_NE, false, true, false },
	[PTX_CMP_NEU] = { REL_EQ, false, true, false },
	[PTX_CMP_LTU] = { REL_LE, true, true, false },
	[PTX_CMP_LEU] = { REL_LT, true, true, false },
	[PTX_CMP_GTU] = { REL_LE, false, true, false },
	[PTX_CMP_GEU] = { REL_LT, false, true, false },
	[PTX_CMP_NUM] = { REL_NUM, false, false, false },
	[PTX_CMP_NAN] = { REL_NUM, false, true, false },
};

static bool is_half(unsigned int type)
{
	return type == PTX_TYPE_F16 || type == PTX_TYPE_BF16;
}

static unsigned int real_operation(unsigned int type, int what, bool ftz)
{
	static const uint16_t ops[3][5] = {
		{ OP_EQ_F32, OP_NE_F32, OP_LT_F32, OP_LE_F32, OP_NUM_F32 },
		{ OP_EQ_FTZ_F32, OP_NE_FTZ_F32, OP_LT_FTZ_F32, OP_LE_FTZ_F32,
			OP_NUM_F32 },
		{ OP_EQ_F64, OP_NE_F64, OP_LT_F64, OP_LE_F64, OP_NUM_F64 },
	};

	return ops[type == PTX_TYPE_F64 ? 2 : ftz][what];
}

static unsigned int integer_operation(unsigned int type, const struct relation *rel)
{
	bool is_signed = lower_type_is_signed(type) && !rel->is_unsigned;

	switch (ptx_type_size(type)) {
	case 2:
		return rel->what == REL_EQ ? OP_EQ_U16
		       : is_signed	   ? OP_LT_S16
					   : OP_LT_U16;
	case 4:
		return rel->what == REL_EQ ? OP_EQ_U32
		       : is_signed	   ? OP_LT_S32
					   : OP_LT_U32;
	case 8:
		return rel->what == REL_EQ ? OP_EQ_U64
		       : is_signed	   ? OP_LT_S64
					   : OP_LT_U64;
	default:
		return 0;
	}
}

static uint32_t widened(struct lowering *l, uint32_t half, unsigned int type)
{
	uint32_t t = lower_temporary(l, CLASS_32), f;

	if (l->instr->flags & PTX_FLAG_FTZ) {
		f = lower_temporary(l, CLASS_32);
		lower_emit(l, type == PTX_TYPE_F16 ? OP_FTZ_F16 : OP_FTZ_BF16, f, half, 0,
			0);
		half = f;
	}
	lower_emit_imm(l, OP_CVT_32_32, t, half, 0, 0,
		PTX_TYPE_F32 << CONVERT_TO | type << CONVERT_FROM);
	return t;
}

/* Of two halves in one register the upper one, if @high, else the lower one. */
static uint32_t half_of(struct lowering *l, uint32_t pair, bool high)
{
	uint32_t t;

	if (!high)
		return pair;
	t = lower_temporary(l, CLASS_32);
	lower_emit(l, OP_HIGH_32, t, pair, 0, 0);
	return t;
}

static bool is_pair(unsigned int type)
{
	return type == PTX_TYPE_F16X2 || type == PTX_TYPE_BF16X2;
}

/* Compares operands @first and the one after it into the predicate @d. */
static int compare(
	struct lowering *l, uint32_t d, unsigned int type, unsigned int first, bool high)
{
	bool real = type == PTX_TYPE_F32 || type == PTX_TYPE_F64 || is_half(type) ||
		    is_pair(type);
	const struct relation *rel =
		&(real ? real_relations : integer_relations)[l->instr->cmp];
	uint32_t a, b;
	unsigned int op;

	if (l->instr->cmp == PTX_CMP_NONE || (!real && l->instr->cmp > PTX_CMP_HS) ||
		(real && l->instr->cmp >= PTX_CMP_LO && l->instr->cmp <= PTX_CMP_HS))
		return lower_unsupported(l);
	if (lower_class_of(type) == CLASS_NONE || lower_class_of(type) == CLASS_PRED)
		return lower_unsupported(l);
	a = lower_source(l, first, type);
	b = lower_source(l, first + 1, type);
	if (is_pair(type)) {
		a = half_of(l, a, high);
		b = half_of(l, b, high);
		type = type == PTX_TYPE_F16X2 ? PTX_TYPE_F16 : PTX_TYPE_BF16;
	}
	if (is_half(type)) {
		a = widened(l, a, type);
		b = widened(l, b, type);
		type = PTX_TYPE_F32;
	}
	op = real ? real_operation(type, rel->what, l->instr->flags & PTX_FLAG_FTZ)
		  : integer_operation(type, rel);
	if (!op)
		return lower_unsupported(l);
	lower_emit_imm(l, op, d, rel->swap ? b : a, rel->swap ? a : b, 0, rel->invert);
	return l->error;
}

static enum op bool_operation(unsigned int bool_op)
{
	return bool_op == PTX_BOOL_AND	? OP_AND_P
	       : bool_op == PTX_BOOL_OR ? OP_OR_P
					: OP_XOR_P;
}

/* The lower halves decide about p, the upper ones about q. */
static int setp_pair(struct lowering *l)
{
	uint32_t t[2], c = VALUE_NONE, keep;
	int r = 0;

	if (l->instr->bool_op != PTX_BOOL_NONE) {
		c = lower_predicate(l, 4);
		keep = lower_temporary(l, CLASS_PRED);
		lower_emit(l, OP_MOV_P, keep, c, 0, 0);
		c = keep;
	}
	for (unsigned int i = 0; i < 2 && !r; i++) {
		t[i] = lower_temporary(l, CLASS_PRED);
		r = compare(l, t[i], l->instr->types[0], 2, i);
		if (!r && c)
			lower_emit(
				l, bool_operation(l->instr->bool_op), t[i], t[i], c, 0);
	}
	if (r)
		return r;
	lower_emit(l, OP_MOV_P, lower_destination(l, 0, PTX_TYPE_PRED), t[0], 0, 0);
	if (lower_has_operand(l, 1))
		lower_emit(
			l, OP_MOV_P, lower_destination(l, 1, PTX_TYPE_PRED), t[1], 0, 0);
	return l->error;
}

static int setp(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t p = lower_destination(l, 0, PTX_TYPE_PRED), q, t, c;
	int r;

	if (is_pair(in->types[0]))
		return setp_pair(l);
	if (in->bool_op == PTX_BOOL_NONE && !lower_has_operand(l, 1))
		return compare(l, p, in->types[0], 2, false);
	t = lower_temporary(l, CLASS_PRED);
	r = compare(l, t, in->types[0], 2, false);
	if (r)
		return r;
	q = lower_has_operand(l, 1) ? lower_destination(l, 1, PTX_TYPE_PRED) : VALUE_NONE;
	if (in->bool_op == PTX_BOOL_NONE) {
		lower_emit(l, OP_MOV_P, p, t, 0, 0);
		lower_emit(l, OP_MOV_P, q, t | VALUE_NEGATED, 0, 0);
		return l->error;
	}
	c = lower_predicate(l, 4);
	if (q) {
		/* p may be the register that c is. */
		uint32_t keep = lower_temporary(l, CLASS_PRED);

		lower_emit(l, OP_MOV_P, keep, c, 0, 0);
		c = keep;
	}
	lower_emit(l, bool_operation(in->bool_op), p, t, c, 0);
	if (q)
		lower_emit(l, bool_operation(in->bool_op), q, t | VALUE_NEGATED, c, 0);
	return l->error;
}

/* The value of true in a type. */
static uint32_t true_of(unsigned int type, bool of_pair)
{
	switch (type) {
	case PTX_TYPE_F32:
		return 0x3f800000u;
	case PTX_TYPE_F16:
	case PTX_TYPE_F16X2:
		return 0x3c00;
	case PTX_TYPE_BF16:
	case PTX_TYPE_BF16X2:
		return 0x3f80;
	default:
		return of_pair ? 0xffff : UINT32_MAX;
	}
}

/* set: as setp, then all ones (or 1.0) where true; of a pair in each half */
static int set(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int to = in->types[0];
	bool pair = is_pair(in->types[1]);
	uint32_t c = VALUE_NONE, x[2], t, d;
	int r;

	if (lower_class_of(to) != CLASS_32 || ptx_type_size(to) < 2 ||
		(is_pair(to) && !pair))
		return lower_unsupported(l);
	if (in->bool_op != PTX_BOOL_NONE)
		c = lower_predicate(l, 3);
	for (unsigned int i = 0; i < 1u + pair; i++) {
		t = lower_temporary(l, CLASS_PRED);
		r = compare(l, t, in->types[1], 1, i);
		if (r)
			return r;
		if (c)
			lower_emit(l, bool_operation(in->bool_op), t, t, c, 0);
		x[i] = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_SELP_32, x[i],
			lower_constant(l, CLASS_32, true_of(to, pair)),
			lower_constant(l, CLASS_32, 0), t);
	}
	d = lower_destination(l, 0, to);
	if (pair)
		lower_emit(l, OP_PACK_32, d, x[0], x[1], 0);
	else
		lower_emit(l, OP_MOV_32, d, x[0], 0, 0);
	lower_finish(l, 0, to, d);
	return l->error;
}

static int select_by(struct lowering *l, unsigned int type, uint32_t p)
{
	uint32_t a = lower_source(l, 1, type), b = lower_source(l, 2, type),
		 d = lower_destination(l, 0, type);

	if (lower_class_of(type) == CLASS_NONE)
		return lower_unsupported(l);
	lower_emit(l, lower_class_of(type) == CLASS_64 ? OP_SELP_64 : OP_SELP_32, d, a, b,
		p);
	return l->error;
}

static int slct(struct lowering *l)
{
	bool real = l->instr->types[1] == PTX_TYPE_F32;
	uint32_t t = lower_temporary(l, CLASS_PRED),
		 c = lower_source(l, 3, l->instr->types[1]);
	uint32_t zero = lower_constant(l, CLASS_32, 0);

	if (real)
		lower_emit(l, l->instr->flags & PTX_FLAG_FTZ ? OP_LE_FTZ_F32 : OP_LE_F32,
			t, zero, c, 0);
	else
		lower_emit_imm(l, OP_LT_S32, t, c, zero, 0, 1);
	return select_by(l, l->instr->types[0], t);
}

static int testp(struct lowering *l)
{
	static const uint16_t ops[6][2] = {
		{ OP_FINITE_F32, OP_FINITE_F64 },
		{ OP_INFINITE_F32, OP_INFINITE_F64 },
		{ OP_NUM_F32, OP_NUM_F64 },
		{ OP_NUM_F32, OP_NUM_F64 },
		{ OP_NORMAL_F32, OP_NORMAL_F64 },
		{ OP_SUBNORMAL_F32, OP_SUBNORMAL_F64 },
	};
	unsigned int mode = l->instr->mode, type = l->instr->types[0];
	uint32_t a = lower_source(l, 1, type), d = lower_destination(l, 0, PTX_TYPE_PRED);

	if (mode < PTX_MODE_TESTP_FINITE || mode > PTX_MODE_TESTP_SUBNORMAL)
		return lower_unsupported(l);
	lower_emit_imm(l, ops[mode - PTX_MODE_TESTP_FINITE][type == PTX_TYPE_F64], d, a,
		a, 0, mode == PTX_MODE_TESTP_NOTANUMBER);
	return l->error;
}

int translate_compare(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_SETP:
		return setp(l);
	case PTX_OP_SET:
		return set(l);
	case PTX_OP_SELP:
		return select_by(l, l->instr->types[0], lower_predicate(l, 3));
	case PTX_OP_SLCT:
		return slct(l);
	default:
		return testp(l);
	}
}
