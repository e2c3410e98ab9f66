/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: floating point
 *
 * .approx and .full are computed as the rounded operation or by libm: closer to the true
 * value than PTX requires. Only div.approx has documented results that are not quotients.
 * Halves are widened, computed, and rounded once: with 24 bits a sum or product of two of
 * 11 bits is not rounded twice; an fma uses a double that is rounded to odd.
 */

#include "lower/lower.h"

static bool is_half(unsigned int type)
{
	return type == PTX_TYPE_F16 || type == PTX_TYPE_BF16 || type == PTX_TYPE_F16X2 ||
	       type == PTX_TYPE_BF16X2;
}

static bool is_directed(unsigned int round)
{
	return round == PTX_ROUND_RZ || round == PTX_ROUND_RM || round == PTX_ROUND_RP;
}

static uint32_t flushed(struct lowering *l, uint32_t value)
{
	uint32_t t;

	if (!(l->instr->flags & PTX_FLAG_FTZ))
		return value;
	t = lower_temporary(l, CLASS_32);
	lower_emit(l, OP_FTZ_F32, t, value, 0, 0);
	return t;
}

/* The steps after the operation itself: .ftz of the result, .sat. */
static int finish_f32(struct lowering *l, uint32_t d, bool flush)
{
	if (flush && (l->instr->flags & PTX_FLAG_FTZ))
		lower_emit(l, OP_FTZ_F32, d, d, 0, 0);
	if (l->instr->flags & PTX_FLAG_SAT)
		lower_emit(l, OP_SAT_F32, d, d, 0, 0);
	return l->error;
}

/* An operation with a directed rounding mode; @one means a 1 before the operands. */
static int directed(
	struct lowering *l, enum op op, unsigned int type, unsigned int n, bool one)
{
	uint64_t imm = l->instr->round;
	uint32_t s[3] = { 0 }, d;

	if (one)
		s[0] = lower_constant(l, lower_class_of(type),
			type == PTX_TYPE_F32 ? 0x3f800000u
					     : UINT64_C(0x3ff0000000000000));
	for (unsigned int i = one; i < n; i++)
		s[i] = lower_source(l, i + 1 - one, type);
	d = lower_destination(l, 0, type);
	if (l->instr->flags & PTX_FLAG_FTZ)
		imm |= ROUND_FTZ;
	if (l->instr->flags & PTX_FLAG_SAT)
		imm |= ROUND_SAT;
	if (l->instr->op == PTX_OP_SUB)
		imm |= ROUND_NEGATE;
	lower_emit_imm(l, op, d, s[0], s[1], s[2], imm);
	return l->error;
}

static int simple(struct lowering *l, enum op op, unsigned int type, unsigned int n)
{
	uint32_t s[3] = { 0 }, d;

	for (unsigned int i = 0; i < n; i++)
		s[i] = lower_source(l, i + 1, type);
	d = lower_destination(l, 0, type);
	lower_emit(l, op, d, s[0], s[1], s[2]);
	if (l->instr->flags & PTX_FLAG_SAT)
		lower_emit(l, type == PTX_TYPE_F64 ? OP_SAT_F64 : OP_SAT_F32, d, d, 0, 0);
	return l->error;
}

/* Sources flushed one by one, for operations without a fused .ftz form. */
static int flushing(struct lowering *l, enum op op, unsigned int n)
{
	uint32_t s[3] = { 0 }, d;

	for (unsigned int i = 0; i < n; i++)
		s[i] = flushed(l, lower_source(l, i + 1, PTX_TYPE_F32));
	d = lower_destination(l, 0, PTX_TYPE_F32);
	lower_emit(l, op, d, s[0], s[1], s[2]);
	return finish_f32(l, d, true);
}

static int arithmetic_f32(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool ftz = in->flags & PTX_FLAG_FTZ, dir = is_directed(in->round);
	unsigned int type = PTX_TYPE_F32;

	switch (in->op) {
	case PTX_OP_ADD:
		return dir ? directed(l, OP_ROUND_ADD_F32, type, 2, false)
			   : simple(l, ftz ? OP_ADD_FTZ_F32 : OP_ADD_F32, type, 2);
	case PTX_OP_SUB:
		return dir ? directed(l, OP_ROUND_ADD_F32, type, 2, false)
			   : simple(l, ftz ? OP_SUB_FTZ_F32 : OP_SUB_F32, type, 2);
	case PTX_OP_MUL:
		return dir ? directed(l, OP_ROUND_MUL_F32, type, 2, false)
			   : simple(l, ftz ? OP_MUL_FTZ_F32 : OP_MUL_F32, type, 2);
	case PTX_OP_MAD:
	case PTX_OP_FMA:
		if (in->flags & PTX_FLAG_RELU)
			return lower_unsupported(l);
		return dir ? directed(l, OP_ROUND_FMA_F32, type, 3, false)
			   : simple(l, ftz ? OP_FMA_FTZ_F32 : OP_FMA_F32, type, 3);
	case PTX_OP_DIV:
		return dir ? directed(l, OP_ROUND_DIV_F32, type, 2, false)
			   : flushing(l,
				     in->approx == PTX_APPROX_APPROX ? OP_DIV_APPROX_F32
								     : OP_DIV_F32,
				     2);
	case PTX_OP_RCP:
		return dir ? directed(l, OP_ROUND_DIV_F32, type, 2, true)
			   : flushing(l, OP_RCP_F32, 1);
	case PTX_OP_SQRT:
		return dir ? directed(l, OP_ROUND_SQRT_F32, type, 1, false)
			   : flushing(l, OP_SQRT_F32, 1);
	case PTX_OP_RSQRT:
		return flushing(l, OP_RSQRT_F32, 1);
	case PTX_OP_EX2:
		return flushing(l, OP_EX2_F32, 1);
	case PTX_OP_LG2:
		return flushing(l, OP_LG2_F32, 1);
	case PTX_OP_SIN:
		return flushing(l, OP_SIN_F32, 1);
	case PTX_OP_COS:
		return flushing(l, OP_COS_F32, 1);
	case PTX_OP_TANH:
		return flushing(l, OP_TANH_F32, 1);
	case PTX_OP_ABS:
		return flushing(l, OP_ABS_F32, 1);
	case PTX_OP_NEG:
		return flushing(l, OP_NEG_F32, 1);
	case PTX_OP_COPYSIGN:
		return simple(l, OP_COPYSIGN_F32, type, 2);
	default:
		return lower_unsupported(l);
	}
}

static int arithmetic_f64(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool dir = is_directed(in->round);
	bool gross = in->approx && in->flags & PTX_FLAG_FTZ;
	unsigned int type = PTX_TYPE_F64;

	switch (in->op) {
	case PTX_OP_ADD:
		return dir ? directed(l, OP_ROUND_ADD_F64, type, 2, false)
			   : simple(l, OP_ADD_F64, type, 2);
	case PTX_OP_SUB:
		return dir ? directed(l, OP_ROUND_ADD_F64, type, 2, false)
			   : simple(l, OP_SUB_F64, type, 2);
	case PTX_OP_MUL:
		return dir ? directed(l, OP_ROUND_MUL_F64, type, 2, false)
			   : simple(l, OP_MUL_F64, type, 2);
	case PTX_OP_MAD:
	case PTX_OP_FMA:
		return dir ? directed(l, OP_ROUND_FMA_F64, type, 3, false)
			   : simple(l, OP_FMA_F64, type, 3);
	case PTX_OP_DIV:
		return dir ? directed(l, OP_ROUND_DIV_F64, type, 2, false)
			   : simple(l, OP_DIV_F64, type, 2);
	case PTX_OP_RCP:
		return dir ? directed(l, OP_ROUND_DIV_F64, type, 2, true)
			   : simple(l, gross ? OP_RCP_UPPER_F64 : OP_RCP_F64, type, 1);
	case PTX_OP_SQRT:
		return dir ? directed(l, OP_ROUND_SQRT_F64, type, 1, false)
			   : simple(l, OP_SQRT_F64, type, 1);
	case PTX_OP_RSQRT:
		return simple(l, gross ? OP_RSQRT_UPPER_F64 : OP_RSQRT_F64, type, 1);
	case PTX_OP_ABS:
		return simple(l, OP_ABS_F64, type, 1);
	case PTX_OP_NEG:
		return simple(l, OP_NEG_F64, type, 1);
	case PTX_OP_MIN:
		return simple(l, OP_MIN_F64, type, 2);
	case PTX_OP_MAX:
		return simple(l, OP_MAX_F64, type, 2);
	case PTX_OP_COPYSIGN:
		return simple(l, OP_COPYSIGN_F64, type, 2);
	default:
		return lower_unsupported(l);
	}
}

static uint64_t conversion(unsigned int to, unsigned int from, unsigned int round)
{
	return (uint64_t)to << CONVERT_TO | (uint64_t)from << CONVERT_FROM |
	       (uint64_t)round << CONVERT_ROUND;
}

/* add.f32.f16 and its kind: all but the last source are widened first. */
static int mixed(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int from = in->types[1], n = in->op == PTX_OP_FMA ? 3 : 2;
	bool dir = is_directed(in->round), fma = in->op == PTX_OP_FMA;
	uint32_t s[3] = { 0 }, d;

	if ((from != PTX_TYPE_F16 && from != PTX_TYPE_BF16) ||
		in->flags & (PTX_FLAG_FTZ | PTX_FLAG_RELU))
		return lower_unsupported(l);
	for (unsigned int i = 0; i < n - 1; i++) {
		s[i] = lower_temporary(l, CLASS_32);
		lower_emit_imm(l, OP_CVT_32_32, s[i], lower_source(l, i + 1, from), 0, 0,
			conversion(PTX_TYPE_F32, from, PTX_ROUND_NONE));
	}
	s[n - 1] = lower_source(l, n, PTX_TYPE_F32);
	d = lower_destination(l, 0, PTX_TYPE_F32);
	if (dir)
		lower_emit_imm(l, fma ? OP_ROUND_FMA_F32 : OP_ROUND_ADD_F32, d, s[0],
			s[1], s[2],
			in->round | (in->op == PTX_OP_SUB ? ROUND_NEGATE : 0));
	else
		lower_emit(l,
			fma		       ? OP_FMA_F32
			: in->op == PTX_OP_SUB ? OP_SUB_F32
					       : OP_ADD_F32,
			d, s[0], s[1], s[2]);
	return finish_f32(l, d, false);
}

/* Two floats in one register of 64 bits, each by the operation for one. */
static int pair_f32(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool ftz = in->flags & PTX_FLAG_FTZ, dir = is_directed(in->round);
	unsigned int n = in->op == PTX_OP_FMA ? 3 : 2;
	uint32_t s[3] = { 0 }, half[2], part[3] = { 0 };
	uint64_t imm = in->round | (ftz ? ROUND_FTZ : 0);
	enum op op, rounding;

	switch (in->op) {
	case PTX_OP_ADD:
		op = ftz ? OP_ADD_FTZ_F32 : OP_ADD_F32;
		rounding = OP_ROUND_ADD_F32;
		break;
	case PTX_OP_SUB:
		op = ftz ? OP_SUB_FTZ_F32 : OP_SUB_F32;
		rounding = OP_ROUND_ADD_F32;
		imm |= ROUND_NEGATE;
		break;
	case PTX_OP_MUL:
		op = ftz ? OP_MUL_FTZ_F32 : OP_MUL_F32;
		rounding = OP_ROUND_MUL_F32;
		break;
	case PTX_OP_FMA:
		op = ftz ? OP_FMA_FTZ_F32 : OP_FMA_F32;
		rounding = OP_ROUND_FMA_F32;
		break;
	default:
		return lower_unsupported(l);
	}
	if (in->flags & (PTX_FLAG_SAT | PTX_FLAG_RELU))
		return lower_unsupported(l);
	for (unsigned int i = 0; i < n; i++)
		s[i] = lower_source(l, i + 1, PTX_TYPE_F32X2);
	for (unsigned int k = 0; k < 2; k++) {
		for (unsigned int i = 0; i < n; i++) {
			part[i] = lower_temporary(l, CLASS_32);
			lower_emit(l, k ? OP_HIGH_64 : OP_LOW_64, part[i], s[i], 0, 0);
		}
		half[k] = lower_temporary(l, CLASS_32);
		lower_emit_imm(l, dir ? rounding : op, half[k], part[0], part[1], part[2],
			dir ? imm : 0);
	}
	lower_emit(l, OP_PACK_64, lower_destination(l, 0, PTX_TYPE_F32X2), half[0],
		half[1], 0);
	return l->error;
}

/* Of |a| and |b|, with the sign that a product would have. @sign: its bit. */
static void xor_sign(
	struct lowering *l, uint32_t d, uint32_t a, uint32_t b, uint32_t sign)
{
	uint32_t t = lower_temporary(l, CLASS_32);

	lower_emit(l, OP_XOR_32, t, a, b, 0);
	lower_emit(l, OP_AND_32, t, t, lower_constant(l, CLASS_32, sign), 0);
	lower_emit(l, OP_AND_32, d, d, lower_constant(l, CLASS_32, sign - 1), 0);
	lower_emit(l, OP_OR_32, d, d, t, 0);
}

static int minmax_f32(struct lowering *l)
{
	bool min = l->instr->op == PTX_OP_MIN, nan = l->instr->flags & PTX_FLAG_NAN;
	bool absolute = l->instr->flags & (PTX_FLAG_XORSIGN | PTX_FLAG_ABS);
	enum op op = min ? (nan ? OP_MIN_NAN_F32 : OP_MIN_F32)
			 : (nan ? OP_MAX_NAN_F32 : OP_MAX_F32);
	unsigned int n = lower_has_operand(l, 3) ? 3 : 2;
	uint32_t s[3], x[3], r = lower_temporary(l, CLASS_32), d;

	if (n == 3 && l->instr->flags & PTX_FLAG_XORSIGN)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < n; i++) {
		s[i] = x[i] = flushed(l, lower_source(l, i + 1, PTX_TYPE_F32));
		if (!absolute)
			continue;
		x[i] = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_ABS_F32, x[i], s[i], 0, 0);
	}
	lower_emit(l, op, r, x[0], x[1], 0);
	if (n == 3)
		lower_emit(l, op, r, r, x[2], 0);
	if (absolute && n == 2)
		xor_sign(l, r, s[0], s[1], 0x80000000u);
	d = lower_destination(l, 0, PTX_TYPE_F32);
	lower_emit(l, OP_MOV_32, d, r, 0, 0);
	return finish_f32(l, d, true);
}

/*
 * Halves
 */

/* The operation of the wider type, PTX_TYPE_F32 or PTX_TYPE_F64 for fma. */
static unsigned int half_operation(struct lowering *l)
{
	bool nan = l->instr->flags & PTX_FLAG_NAN;

	switch (l->instr->op) {
	case PTX_OP_ADD:
		return OP_ADD_F32;
	case PTX_OP_SUB:
		return OP_SUB_F32;
	case PTX_OP_MUL:
		return OP_MUL_F32;
	case PTX_OP_FMA:
		return OP_FMA_ODD_F64;
	case PTX_OP_ABS:
		return OP_ABS_F32;
	case PTX_OP_NEG:
		return OP_NEG_F32;
	case PTX_OP_MIN:
		return nan ? OP_MIN_NAN_F32 : OP_MIN_F32;
	case PTX_OP_MAX:
		return nan ? OP_MAX_NAN_F32 : OP_MAX_F32;
	case PTX_OP_EX2:
		return OP_EX2_F32;
	case PTX_OP_TANH:
		return OP_TANH_F32;
	default:
		return 0;
	}
}

static uint32_t flush_half(struct lowering *l, unsigned int type, uint32_t value)
{
	uint32_t t;

	if (!(l->instr->flags & PTX_FLAG_FTZ))
		return value;
	t = lower_temporary(l, CLASS_32);
	lower_emit(l, type == PTX_TYPE_F16 ? OP_FTZ_F16 : OP_FTZ_BF16, t, value, 0, 0);
	return t;
}

static uint32_t half_lane(struct lowering *l, unsigned int op, unsigned int type,
	const uint32_t *sources, unsigned int n)
{
	bool wide = op == OP_FMA_ODD_F64, absolute = l->instr->flags & PTX_FLAG_XORSIGN;
	enum value_class class = wide ? CLASS_64 : CLASS_32;
	unsigned int with = wide ? PTX_TYPE_F64 : PTX_TYPE_F32;
	uint32_t s[3] = { 0 }, r = lower_temporary(l, class),
		 d = lower_temporary(l, CLASS_32);

	for (unsigned int i = 0; i < n; i++) {
		s[i] = lower_temporary(l, class);
		lower_emit_imm(l, wide ? OP_CVT_64_32 : OP_CVT_32_32, s[i],
			flush_half(l, type, sources[i]), 0, 0,
			conversion(with, type, PTX_ROUND_NONE));
		if (absolute)
			lower_emit(l, OP_ABS_F32, s[i], s[i], 0, 0);
	}
	lower_emit(l, op, r, s[0], s[1], s[2]);
	if (l->instr->flags & PTX_FLAG_SAT)
		lower_emit(l, wide ? OP_SAT_F64 : OP_SAT_F32, r, r, 0, 0);
	if (l->instr->flags & PTX_FLAG_RELU)
		lower_emit(l, wide ? OP_RELU_F64 : OP_RELU_F32, r, r, 0, 0);
	lower_emit_imm(l, wide ? OP_CVT_32_64 : OP_CVT_32_32, d, r, 0, 0,
		conversion(type, with, PTX_ROUND_RN));
	d = flush_half(l, type, d);
	if (absolute)
		xor_sign(l, d, sources[0], sources[1], 0x8000);
	return d;
}

static int arithmetic_half(struct lowering *l, unsigned int type)
{
	unsigned int op = half_operation(l), n = l->instr->n_operands - 1;
	bool pair = type == PTX_TYPE_F16X2 || type == PTX_TYPE_BF16X2;
	unsigned int one = type == PTX_TYPE_F16X2    ? PTX_TYPE_F16
			   : type == PTX_TYPE_BF16X2 ? PTX_TYPE_BF16
						     : type;
	uint32_t s[3] = { 0 }, high[3] = { 0 }, d, low_result, high_result;

	if (!op)
		return lower_unsupported(l);
	while (n && !lower_has_operand(l, n))
		n--;
	if (n > (op == OP_FMA_ODD_F64 ? 3u : 2u))
		return lower_unsupported(l);
	for (unsigned int i = 0; i < n; i++)
		s[i] = lower_source(l, i + 1, type);
	low_result = half_lane(l, op, one, s, n);
	d = lower_destination(l, 0, type);
	if (!pair) {
		lower_emit(l, OP_MOV_32, d, low_result, 0, 0);
		return l->error;
	}
	for (unsigned int i = 0; i < n; i++) {
		high[i] = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_HIGH_32, high[i], s[i], 0, 0);
	}
	high_result = half_lane(l, op, one, high, n);
	lower_emit(l, OP_PACK_32, d, low_result, high_result, 0);
	return l->error;
}

int translate_real(struct lowering *l)
{
	unsigned int type = l->instr->types[0];

	if (l->instr->n_types == 2)
		return type == PTX_TYPE_F32 ? mixed(l) : lower_unsupported(l);
	if (is_half(type))
		return arithmetic_half(l, type);
	if (type == PTX_TYPE_F32X2)
		return pair_f32(l);
	if (type == PTX_TYPE_F64)
		return arithmetic_f64(l);
	if (type != PTX_TYPE_F32)
		return lower_unsupported(l);
	if (l->instr->op == PTX_OP_MIN || l->instr->op == PTX_OP_MAX)
		return minmax_f32(l);
	return arithmetic_f32(l);
}
