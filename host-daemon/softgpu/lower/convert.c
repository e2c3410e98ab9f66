/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: cvt and cvta
 */

#include "lower/lower.h"

static bool is_real(unsigned int type)
{
	return type == PTX_TYPE_F16 || type == PTX_TYPE_BF16 || type == PTX_TYPE_F32 ||
	       type == PTX_TYPE_F64;
}

static bool is_integer(unsigned int type)
{
	return type >= PTX_TYPE_U8 && type <= PTX_TYPE_S64;
}

/* Cuts to or widens from 8 or 16 bits, inside a 32-bit register. */
static enum op extend(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_U8:
	case PTX_TYPE_B8:
		return OP_EXT_U8_32;
	case PTX_TYPE_S8:
		return OP_EXT_S8_32;
	case PTX_TYPE_U16:
	case PTX_TYPE_B16:
		return OP_EXT_U16_32;
	case PTX_TYPE_S16:
		return OP_EXT_S16_32;
	default:
		return OP_MOV_32;
	}
}

static int between_integers(struct lowering *l, unsigned int to, unsigned int from)
{
	unsigned int to_size = ptx_type_size(to), from_size = ptx_type_size(from);
	uint32_t s = lower_source(l, 1, from), d = lower_destination(l, 0, to), t;

	if (to_size == 8 && from_size == 8) {
		lower_emit(l, OP_MOV_64, d, s, 0, 0);
		return l->error;
	}
	if (to_size == 8) {
		if (from_size < 4) {
			t = lower_temporary(l, CLASS_32);
			lower_emit(l, extend(from), t, s, 0, 0);
			s = t;
		}
		lower_emit(l, lower_type_is_signed(from) ? OP_EXT_S32_64 : OP_EXT_U32_64,
			d, s, 0, 0);
		return l->error;
	}
	if (from_size == 8) {
		t = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_LOW_64, t, s, 0, 0);
		s = t;
	}
	/* A wider register is filled as the destination's type says, not the source's. */
	if (to_size > from_size && to_size < 4 && lower_type_is_signed(from) &&
		!lower_type_is_signed(to)) {
		t = lower_temporary(l, CLASS_32);
		lower_emit(l, extend(from), t, s, 0, 0);
		s = t;
		from_size = to_size;
	}
	lower_emit(l, extend(to_size <= from_size ? to : from), d, s, 0, 0);
	lower_finish(l, 0, to, d);
	return l->error;
}

/* The conversions with a loop of their own; 0: none. */
static unsigned int real_to_real(
	unsigned int to, unsigned int from, unsigned int round, bool saturates)
{
	bool single = to == PTX_TYPE_F32;

	if (to == PTX_TYPE_F64 && from == PTX_TYPE_F32)
		return round == PTX_ROUND_NONE ? OP_F64_FROM_F32 : 0;
	if (to == PTX_TYPE_F32 && from == PTX_TYPE_F64)
		return round == PTX_ROUND_RN ? OP_F32_FROM_F64 : 0;
	if (to != from || !(single || to == PTX_TYPE_F64))
		return 0;
	switch (round) {
	case PTX_ROUND_NONE:
		/* The general one gives the one NaN that f32 has; no saturation does. */
		if (single)
			return saturates ? OP_SAT_F32 : 0;
		return OP_MOV_64;
	case PTX_ROUND_RNI:
		return single ? OP_RINT_F32 : OP_RINT_F64;
	case PTX_ROUND_RZI:
		return single ? OP_TRUNC_F32 : OP_TRUNC_F64;
	case PTX_ROUND_RMI:
		return single ? OP_FLOOR_F32 : OP_FLOOR_F64;
	case PTX_ROUND_RPI:
		return single ? OP_CEIL_F32 : OP_CEIL_F64;
	default:
		return 0;
	}
}

static unsigned int real_to_integer(
	unsigned int to, unsigned int from, unsigned int round)
{
	if (from == PTX_TYPE_F64)
		return to == PTX_TYPE_S32 && round == PTX_ROUND_RZI ? OP_S32_FROM_F64_RZ
								    : 0;
	if (from != PTX_TYPE_F32)
		return 0;
	if (to == PTX_TYPE_U32)
		return round == PTX_ROUND_RZI ? OP_U32_FROM_F32_RZ : 0;
	if (to != PTX_TYPE_S32)
		return 0;
	switch (round) {
	case PTX_ROUND_RZI:
		return OP_S32_FROM_F32_RZ;
	case PTX_ROUND_RNI:
		return OP_S32_FROM_F32_RN;
	case PTX_ROUND_RMI:
		return OP_S32_FROM_F32_RM;
	case PTX_ROUND_RPI:
		return OP_S32_FROM_F32_RP;
	default:
		return 0;
	}
}

static unsigned int integer_to_real(
	unsigned int to, unsigned int from, unsigned int round)
{
	bool wide = ptx_type_size(from) == 8;

	if (round != PTX_ROUND_RN && !(to == PTX_TYPE_F64 && !wide))
		return 0;
	if (to == PTX_TYPE_F32 && !wide)
		return lower_type_is_signed(from) ? OP_F32_FROM_S32 : OP_F32_FROM_U32;
	if (to == PTX_TYPE_F64 && wide)
		return lower_type_is_signed(from) ? OP_F64_FROM_S64 : OP_F64_FROM_U64;
	if (to == PTX_TYPE_F64)
		return lower_type_is_signed(from) ? OP_F64_FROM_S32 : OP_F64_FROM_U32;
	return 0;
}

static enum op general(unsigned int to, unsigned int from)
{
	if (lower_class_of(to) == CLASS_64)
		return lower_class_of(from) == CLASS_64 ? OP_CVT_64_64 : OP_CVT_64_32;
	return lower_class_of(from) == CLASS_64 ? OP_CVT_32_64 : OP_CVT_32_32;
}

static uint64_t conversion(const struct ptx_instr *in, unsigned int to, unsigned int from)
{
	return (uint64_t)to << CONVERT_TO | (uint64_t)from << CONVERT_FROM |
	       (uint64_t)in->round << CONVERT_ROUND |
	       (in->flags & PTX_FLAG_FTZ ? CONVERT_FTZ : 0) |
	       (in->flags & PTX_FLAG_SAT ? CONVERT_SAT : 0) |
	       (in->flags & PTX_FLAG_RELU ? CONVERT_RELU : 0) |
	       (in->flags & PTX_FLAG_SATFINITE ? CONVERT_SATFINITE : 0);
}

/* A fast operation between two flushes and a saturation, as the modifiers ask. */
static int by_operation(
	struct lowering *l, unsigned int op, unsigned int to, unsigned int from)
{
	uint32_t s = lower_source(l, 1, from), d, t;
	bool flush = l->instr->flags & PTX_FLAG_FTZ;

	if (is_integer(from) && ptx_type_size(from) < 4) {
		t = lower_temporary(l, CLASS_32);
		lower_emit(l, extend(from), t, s, 0, 0);
		s = t;
	}
	if (flush && from == PTX_TYPE_F32) {
		t = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_FTZ_F32, t, s, 0, 0);
		s = t;
	}
	d = lower_destination(l, 0, to);
	lower_emit(l, op, d, s, 0, 0);
	if (flush && to == PTX_TYPE_F32)
		lower_emit(l, OP_FTZ_F32, d, d, 0, 0);
	if ((l->instr->flags & PTX_FLAG_SAT) && is_real(to) && op != OP_SAT_F32)
		lower_emit(l, to == PTX_TYPE_F64 ? OP_SAT_F64 : OP_SAT_F32, d, d, 0, 0);
	lower_finish(l, 0, to, d);
	return l->error;
}

/* cvt.rn.f16x2.f32 d, high, low */
static int pair(struct lowering *l, unsigned int one)
{
	uint32_t high = lower_source(l, 1, PTX_TYPE_F32),
		 low = lower_source(l, 2, PTX_TYPE_F32);
	uint32_t h = lower_temporary(l, CLASS_32), lo = lower_temporary(l, CLASS_32);
	uint64_t imm = conversion(l->instr, one, PTX_TYPE_F32);

	lower_emit_imm(l, OP_CVT_32_32, h, high, 0, 0, imm);
	lower_emit_imm(l, OP_CVT_32_32, lo, low, 0, 0, imm);
	lower_emit(l, OP_PACK_32, lower_destination(l, 0, PTX_TYPE_B32), lo, h, 0);
	return l->error;
}

/* Returns: whether .relu and .satfinite belong to the conversion. */
static bool takes_limits(unsigned int to, unsigned int from)
{
	return from == PTX_TYPE_F32 &&
	       (to == PTX_TYPE_F16 || to == PTX_TYPE_BF16 || to == PTX_TYPE_F16X2 ||
		       to == PTX_TYPE_BF16X2 || to == PTX_TYPE_TF32);
}

static bool is_tf32(unsigned int to, unsigned int from)
{
	return to == PTX_TYPE_TF32 && from == PTX_TYPE_F32;
}

/* Returns: the bits of a result of cvt.pack, 0 for another type. */
static unsigned int pack_size(unsigned int to)
{
	switch (to) {
	case PTX_TYPE_U2:
	case PTX_TYPE_S2:
		return 2;
	case PTX_TYPE_U4:
	case PTX_TYPE_S4:
		return 4;
	default:
		return is_integer(to) ? 8 * ptx_type_size(to) : 0;
	}
}

/* A source of cvt.pack in @size bits, which are not cut out. */
static void pack_one(
	struct lowering *l, unsigned int to, unsigned int size, uint32_t d, uint32_t s)
{
	bool is_signed =
		lower_type_is_signed(to) || to == PTX_TYPE_S2 || to == PTX_TYPE_S4;
	uint32_t high = (1u << (size - is_signed)) - 1, low = is_signed ? ~high : 0;

	lower_emit(l, OP_MIN_S32, d, s, lower_constant(l, CLASS_32, high), 0);
	lower_emit(l, OP_MAX_S32, d, d, lower_constant(l, CLASS_32, low), 0);
}

/* cvt.pack d, high, low{, rest}: saturated, the rest moved up above them */
static int pack(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int to = in->types[0], size = pack_size(to);
	bool has_rest = in->n_types == 3;
	uint32_t part[2], d, t;

	if (!(in->flags & PTX_FLAG_SAT) || in->types[1] != PTX_TYPE_S32 || !size ||
		size > 16 || has_rest != (size <= 8) ||
		lower_has_operand(l, 3) != has_rest ||
		(has_rest && in->types[2] != PTX_TYPE_B32))
		return lower_unsupported(l);
	for (unsigned int i = 0; i < 2; i++) {
		t = lower_temporary(l, CLASS_32);
		part[i] = lower_temporary(l, CLASS_32);
		pack_one(l, to, size, t, lower_source(l, i + 1, PTX_TYPE_S32));
		lower_emit(l, OP_AND_32, part[i], t,
			lower_constant(l, CLASS_32, (UINT64_C(1) << size) - 1), 0);
	}
	t = lower_temporary(l, CLASS_32);
	lower_emit(l, OP_SHL_32, part[0], part[0], lower_constant(l, CLASS_32, size), 0);
	lower_emit(l, OP_OR_32, part[0], part[0], part[1], 0);
	if (has_rest)
		lower_emit(l, OP_SHL_32, t, lower_source(l, 3, PTX_TYPE_B32),
			lower_constant(l, CLASS_32, 2 * size), 0);
	else
		lower_emit(l, OP_MOV_32, t, lower_constant(l, CLASS_32, 0), 0, 0);
	d = lower_destination(l, 0, PTX_TYPE_B32);
	lower_emit(l, OP_OR_32, d, part[0], t, 0);
	return l->error;
}

/*
 * Floats of 8 bits and less, in pairs
 */

/* Returns: the type of one element, 0 for another type. */
static unsigned int small_of(unsigned int pair)
{
	switch (pair) {
	case PTX_TYPE_E4M3X2:
		return PTX_TYPE_E4M3;
	case PTX_TYPE_E5M2X2:
		return PTX_TYPE_E5M2;
	case PTX_TYPE_E2M3X2:
		return PTX_TYPE_E2M3;
	case PTX_TYPE_E3M2X2:
		return PTX_TYPE_E3M2;
	case PTX_TYPE_E2M1X2:
		return PTX_TYPE_E2M1;
	case PTX_TYPE_UE8M0X2:
		return PTX_TYPE_UE8M0;
	default:
		return 0;
	}
}

/* Bits from one element of a pair to the other. */
static unsigned int small_step(unsigned int small)
{
	return small == PTX_TYPE_E2M1 ? 4 : 8;
}

/* What ptxas 13.0 takes for sm_121a. */
static bool is_to_small(const struct ptx_instr *in, unsigned int small)
{
	unsigned int from = in->types[1];

	if (small == PTX_TYPE_UE8M0)
		return (from == PTX_TYPE_F32 || from == PTX_TYPE_BF16X2) &&
		       (in->round == PTX_ROUND_RZ || in->round == PTX_ROUND_RP) &&
		       !(in->flags & ~PTX_FLAG_SATFINITE);
	if (from == PTX_TYPE_F16X2 && (small == PTX_TYPE_E2M3 || small == PTX_TYPE_E3M2))
		return false;
	return (from == PTX_TYPE_F32 || from == PTX_TYPE_F16X2) &&
	       in->round == PTX_ROUND_RN && in->flags & PTX_FLAG_SATFINITE &&
	       !(in->flags & ~(PTX_FLAG_SATFINITE | PTX_FLAG_RELU));
}

static bool is_from_small(const struct ptx_instr *in, unsigned int small)
{
	bool is_scale = small == PTX_TYPE_UE8M0;

	return in->types[0] == (is_scale ? PTX_TYPE_BF16X2 : PTX_TYPE_F16X2) &&
	       in->round == PTX_ROUND_RN &&
	       !(in->flags & ~(is_scale ? 0u : (unsigned int)PTX_FLAG_RELU));
}

/* cvt.rn.satfinite.e4m3x2.f32 d, high, low; or of a pair of 16 bits */
static int to_small(struct lowering *l, unsigned int small)
{
	unsigned int from = l->instr->types[1], one = from;
	uint32_t parts[2], d, t;

	if (!is_to_small(l->instr, small) ||
		lower_has_operand(l, 2) != (from == PTX_TYPE_F32))
		return lower_unsupported(l);
	if (from == PTX_TYPE_F32) {
		parts[0] = lower_source(l, 2, from);
		parts[1] = lower_source(l, 1, from);
	} else {
		one = from == PTX_TYPE_F16X2 ? PTX_TYPE_F16 : PTX_TYPE_BF16;
		parts[0] = lower_source(l, 1, PTX_TYPE_B32);
		parts[1] = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_HIGH_32, parts[1], parts[0], 0, 0);
	}
	for (unsigned int i = 0; i < 2; i++) {
		t = lower_temporary(l, CLASS_32);
		lower_emit_imm(l, OP_CVT_32_32, t, parts[i], 0, 0,
			conversion(l->instr, small, one));
		parts[i] = t;
	}
	lower_emit(l, OP_SHL_32, parts[1], parts[1],
		lower_constant(l, CLASS_32, small_step(small)), 0);
	d = lower_destination(l, 0, PTX_TYPE_B16);
	lower_emit(l, OP_OR_32, d, parts[0], parts[1], 0);
	return l->error;
}

static int from_small(struct lowering *l, unsigned int small)
{
	unsigned int one =
		l->instr->types[0] == PTX_TYPE_F16X2 ? PTX_TYPE_F16 : PTX_TYPE_BF16;
	uint32_t parts[2], t;

	if (!is_from_small(l->instr, small) || lower_has_operand(l, 2))
		return lower_unsupported(l);
	parts[0] = lower_source(l, 1, PTX_TYPE_B16);
	parts[1] = lower_temporary(l, CLASS_32);
	lower_emit(l, OP_SHR_U32, parts[1], parts[0],
		lower_constant(l, CLASS_32, small_step(small)), 0);
	for (unsigned int i = 0; i < 2; i++) {
		t = lower_temporary(l, CLASS_32);
		lower_emit_imm(l, OP_CVT_32_32, t, parts[i], 0, 0,
			conversion(l->instr, one, small));
		parts[i] = t;
	}
	lower_emit(l, OP_PACK_32, lower_destination(l, 0, PTX_TYPE_B32), parts[0],
		parts[1], 0);
	return l->error;
}

static int convert(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int to = in->types[0], from = in->types[1], op;
	uint32_t s, d;

	if (in->flags & PTX_FLAG_PACK)
		return pack(l);
	if (in->n_types == 2 && small_of(to))
		return to_small(l, small_of(to));
	if (in->n_types == 2 && small_of(from))
		return from_small(l, small_of(from));
	if (in->n_types != 2 || ((in->flags & (PTX_FLAG_RELU | PTX_FLAG_SATFINITE)) &&
					!takes_limits(to, from)))
		return lower_unsupported(l);
	if ((to == PTX_TYPE_F16X2 || to == PTX_TYPE_BF16X2) && from == PTX_TYPE_F32 &&
		lower_has_operand(l, 2) && !(in->flags & PTX_FLAG_SAT))
		return pair(l, to == PTX_TYPE_F16X2 ? PTX_TYPE_F16 : PTX_TYPE_BF16);
	if (lower_has_operand(l, 2) ||
		!(is_integer(to) || is_real(to) || is_tf32(to, from)) ||
		!(is_integer(from) || is_real(from)) ||
		(in->round == PTX_ROUND_RNA && to != PTX_TYPE_TF32))
		return lower_unsupported(l);
	if (is_integer(to) && is_integer(from) && !(in->flags & PTX_FLAG_SAT))
		return between_integers(l, to, from);
	op = 0;
	if (is_real(to) && is_real(from))
		op = real_to_real(to, from, in->round, in->flags & PTX_FLAG_SAT);
	else if (is_real(from))
		op = real_to_integer(to, from, in->round);
	else if (is_real(to))
		op = integer_to_real(to, from, in->round);
	if (op)
		return by_operation(l, op, to, from);
	s = lower_source(l, 1, from);
	d = lower_destination(l, 0, to);
	lower_emit_imm(l, general(to, from), d, s, 0, 0, conversion(in, to, from));
	lower_finish(l, 0, to, d);
	return l->error;
}

uint32_t lower_space_base(unsigned int space)
{
	switch (space) {
	case PTX_SPACE_SHARED:
	case PTX_SPACE_SHARED_CLUSTER:
		return SOFTGPU_GENERIC_SHARED;
	case PTX_SPACE_LOCAL:
		return SOFTGPU_GENERIC_LOCAL;
	case PTX_SPACE_PARAM:
		return SOFTGPU_GENERIC_PARAM;
	default:
		return 0;
	}
}

static int convert_address(struct lowering *l)
{
	unsigned int type = PTX_TYPE_U64, space = l->instr->spaces[0];
	uint32_t base = lower_space_base(space), s, d;

	if (l->instr->types[0] != PTX_TYPE_U64)
		return lower_unsupported(l);
	s = lower_source(l, 1, type);
	d = lower_destination(l, 0, type);
	if (!base)
		lower_emit(l, OP_MOV_64, d, s, 0, 0);
	else
		lower_emit(l, l->instr->flags & PTX_FLAG_TO ? OP_SUB_64 : OP_ADD_64, d, s,
			lower_constant(l, CLASS_64, base), 0);
	return l->error;
}

int translate_convert(struct lowering *l)
{
	return l->instr->op == PTX_OP_CVTA ? convert_address(l) : convert(l);
}
