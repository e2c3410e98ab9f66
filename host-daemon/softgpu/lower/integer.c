/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: integer arithmetic, logic, bits, moves
 */

#include "lower/lower.h"

static unsigned int width_of(unsigned int type)
{
	return ptx_type_size(type) * 8;
}

/* Picks the variant of an operation for the type; 0 where there is none. */
#define PICK(_op, _type)                                                                 \
	pick(_type, OP_##_op##_U16, OP_##_op##_S16, OP_##_op##_U32, OP_##_op##_S32,      \
		OP_##_op##_U64, OP_##_op##_S64)
#define PICK_WIDTH(_op, _type) (width_of(_type) == 64 ? OP_##_op##_64 : OP_##_op##_32)

static unsigned int pick(unsigned int type, unsigned int u16, unsigned int s16,
	unsigned int u32, unsigned int s32, unsigned int u64, unsigned int s64)
{
	bool is_signed = lower_type_is_signed(type);

	switch (width_of(type)) {
	case 16:
		return is_signed ? s16 : u16;
	case 32:
		return is_signed ? s32 : u32;
	default:
		return is_signed ? s64 : u64;
	}
}

static int unary(struct lowering *l, unsigned int op, unsigned int to, unsigned int from,
	uint64_t imm)
{
	uint32_t a = lower_source(l, 1, from), d = lower_destination(l, 0, to);

	lower_emit_imm(l, op, d, a, 0, 0, imm);
	lower_finish(l, 0, to, d);
	return l->error;
}

static int binary(struct lowering *l, unsigned int op, unsigned int to,
	unsigned int type_a, unsigned int type_b, uint64_t imm)
{
	uint32_t a = lower_source(l, 1, type_a), b = lower_source(l, 2, type_b);
	uint32_t d = lower_destination(l, 0, to);

	lower_emit_imm(l, op, d, a, b, 0, imm);
	lower_finish(l, 0, to, d);
	return l->error;
}

static int ternary(struct lowering *l, unsigned int op, unsigned int to,
	unsigned int type_a, unsigned int type_b, unsigned int type_c, uint64_t imm)
{
	uint32_t a = lower_source(l, 1, type_a), b = lower_source(l, 2, type_b);
	uint32_t c = lower_source(l, 3, type_c), d = lower_destination(l, 0, to);

	lower_emit_imm(l, op, d, a, b, c, imm);
	lower_finish(l, 0, to, d);
	return l->error;
}

static unsigned int doubled(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_U16:
		return PTX_TYPE_U32;
	case PTX_TYPE_S16:
		return PTX_TYPE_S32;
	case PTX_TYPE_U32:
		return PTX_TYPE_U64;
	case PTX_TYPE_S32:
		return PTX_TYPE_S64;
	default:
		return PTX_TYPE_NONE;
	}
}

static int multiply(struct lowering *l, unsigned int type)
{
	unsigned int wide = doubled(type);

	switch (l->instr->mul) {
	case PTX_MUL_LO:
	case PTX_MUL_NONE:
		return binary(l, PICK_WIDTH(MUL, type), type, type, type, 0);
	case PTX_MUL_HI:
		return binary(l, PICK(MULHI, type), type, type, type, 0);
	default:
		if (!wide)
			return lower_unsupported(l);
		return binary(l,
			pick(type, OP_MULWIDE_U16, OP_MULWIDE_S16, OP_MULWIDE_U32,
				OP_MULWIDE_S32, 0, 0),
			wide, type, type, 0);
	}
}

static int multiply_add(struct lowering *l, unsigned int type)
{
	unsigned int wide = doubled(type);
	uint32_t a, b, c, d, t;

	switch (l->instr->mul) {
	case PTX_MUL_LO:
	case PTX_MUL_NONE:
		return ternary(l, PICK_WIDTH(MAD, type), type, type, type, type, 0);
	case PTX_MUL_HI:
		a = lower_source(l, 1, type);
		b = lower_source(l, 2, type);
		c = lower_source(l, 3, type);
		t = lower_temporary(l, lower_class_of(type));
		d = lower_destination(l, 0, type);
		lower_emit(l, PICK(MULHI, type), t, a, b, 0);
		if (l->instr->flags & PTX_FLAG_SAT)
			lower_emit(l, OP_ADD_SAT_S32, d, t, c, 0);
		else
			lower_emit(l, PICK_WIDTH(ADD, type), d, t, c, 0);
		lower_finish(l, 0, type, d);
		return l->error;
	default:
		if (!wide)
			return lower_unsupported(l);
		return ternary(l,
			pick(type, OP_MADWIDE_U16, OP_MADWIDE_S16, OP_MADWIDE_U32,
				OP_MADWIDE_S32, 0, 0),
			wide, type, type, wide, 0);
	}
}

/* Sums that read or set the carry flag. */
static int carry(struct lowering *l, unsigned int type)
{
	const struct ptx_instr *in = l->instr;
	bool mad = in->op == PTX_OP_MAD || in->op == PTX_OP_MADC;
	uint32_t how = in->flags & PTX_FLAG_CC ? CARRY_OUT : 0, a, b, c, d;
	enum value_class class = lower_class_of(type);

	if (in->op == PTX_OP_ADDC || in->op == PTX_OP_SUBC || in->op == PTX_OP_MADC)
		how |= CARRY_IN;
	if (in->op == PTX_OP_SUB || in->op == PTX_OP_SUBC)
		how |= CARRY_SUB;
	if (mad)
		how |= in->mul == PTX_MUL_HI ? CARRY_HIGH : CARRY_LOW;
	if (mad && in->mul == PTX_MUL_WIDE)
		return lower_unsupported(l);
	if (lower_type_is_signed(type))
		how |= CARRY_SIGNED;
	a = lower_source(l, 1, type);
	b = lower_source(l, 2, type);
	c = mad ? lower_source(l, 3, type) : lower_constant(l, class, 0);
	d = lower_destination(l, 0, type);
	lower_emit_imm(l, PICK_WIDTH(CARRY, type), d, a, b, c, how);
	lower_finish(l, 0, type, d);
	return l->error;
}

/* The lower 24 bits of source @i, by the sign of the type. */
static uint32_t source_24(struct lowering *l, unsigned int i, unsigned int type)
{
	uint32_t s = lower_source(l, i, type), t = lower_temporary(l, CLASS_32);

	lower_emit(l, lower_type_is_signed(type) ? OP_BFE_S32 : OP_BFE_U32, t, s,
		lower_constant(l, CLASS_32, 0), lower_constant(l, CLASS_32, 24));
	return t;
}

/* mul24 and mad24: of the 48 bits of the product the lower 32, or the upper ones. */
static int multiply_24(struct lowering *l, unsigned int type)
{
	const struct ptx_instr *in = l->instr;
	bool is_signed = lower_type_is_signed(type), mad = in->op == PTX_OP_MAD24;
	bool sat = in->flags & PTX_FLAG_SAT;
	uint32_t a, b, c, wide, t, d;

	if ((type != PTX_TYPE_U32 && type != PTX_TYPE_S32) ||
		(in->mul != PTX_MUL_LO && in->mul != PTX_MUL_HI) ||
		(sat && !(mad && is_signed && in->mul == PTX_MUL_HI)))
		return lower_unsupported(l);
	a = source_24(l, 1, type);
	b = source_24(l, 2, type);
	c = mad ? lower_source(l, 3, type) : lower_constant(l, CLASS_32, 0);
	t = lower_temporary(l, CLASS_32);
	if (in->mul == PTX_MUL_LO) {
		lower_emit(l, OP_MUL_32, t, a, b, 0);
	} else {
		wide = lower_temporary(l, CLASS_64);
		lower_emit(l, is_signed ? OP_MULWIDE_S32 : OP_MULWIDE_U32, wide, a, b, 0);
		lower_emit(l, OP_SHR_U64, wide, wide, lower_constant(l, CLASS_32, 16), 0);
		lower_emit(l, OP_LOW_64, t, wide, 0, 0);
	}
	d = lower_destination(l, 0, type);
	lower_emit(l, sat ? OP_ADD_SAT_S32 : OP_ADD_32, d, t, c, 0);
	lower_finish(l, 0, type, d);
	return l->error;
}

static int add(struct lowering *l, unsigned int type)
{
	const struct ptx_instr *in = l->instr;
	bool sub = in->op == PTX_OP_SUB;

	if (in->n_types != 1)
		return lower_unsupported(l);
	if (in->flags & PTX_FLAG_CC)
		return carry(l, type);
	if (in->flags & PTX_FLAG_SAT) {
		if (type != PTX_TYPE_S32)
			return lower_unsupported(l);
		return binary(
			l, sub ? OP_SUB_SAT_S32 : OP_ADD_SAT_S32, type, type, type, 0);
	}
	if (type == PTX_TYPE_U16X2 || type == PTX_TYPE_S16X2)
		return sub ? lower_unsupported(l)
			   : binary(l, OP_ADD_X16, type, type, type, 0);
	return binary(l, sub ? PICK_WIDTH(SUB, type) : PICK_WIDTH(ADD, type), type, type,
		type, 0);
}

static unsigned int packed_minmax(bool min, unsigned int type)
{
	if (type == PTX_TYPE_S16X2)
		return min ? OP_MIN_S16X2 : OP_MAX_S16X2;
	return min ? OP_MIN_U16X2 : OP_MAX_U16X2;
}

static int minmax(struct lowering *l, unsigned int type)
{
	bool min = l->instr->op == PTX_OP_MIN, packed;
	bool relu = l->instr->flags & PTX_FLAG_RELU;
	uint32_t d;
	int r;

	packed = type == PTX_TYPE_U16X2 || type == PTX_TYPE_S16X2;
	if (lower_has_operand(l, 3) ||
		(relu && type != PTX_TYPE_S16X2 && type != PTX_TYPE_S32))
		return lower_unsupported(l);
	r = binary(l,
		packed ? packed_minmax(min, type)
		: min  ? PICK(MIN, type)
		       : PICK(MAX, type),
		type, type, type, 0);
	if (r || !relu)
		return r;
	d = lower_destination(l, 0, type);
	lower_emit(l, packed ? OP_MAX_S16X2 : OP_MAX_S32, d, d,
		lower_constant(l, CLASS_32, 0), 0);
	return l->error;
}

/* `!` is for predicates alone. */
static bool negates_numbers(const struct lowering *l)
{
	for (unsigned int i = 1; i < l->instr->n_operands; i++)
		if (l->operands[i].negated && l->instr->types[0] != PTX_TYPE_PRED)
			return true;
	return false;
}

static int logic(struct lowering *l, unsigned int type)
{
	unsigned int op = l->instr->op;

	if (negates_numbers(l))
		return lower_unsupported(l);

	if (type == PTX_TYPE_PRED)
		return binary(l,
			op == PTX_OP_AND  ? OP_AND_P
			: op == PTX_OP_OR ? OP_OR_P
					  : OP_XOR_P,
			type, type, type, 0);
	return binary(l,
		op == PTX_OP_AND  ? PICK_WIDTH(AND, type)
		: op == PTX_OP_OR ? PICK_WIDTH(OR, type)
				  : PICK_WIDTH(XOR, type),
		type, type, type, 0);
}

static int logical_not(struct lowering *l, unsigned int type)
{
	uint32_t a;

	if (negates_numbers(l))
		return lower_unsupported(l);
	if (type != PTX_TYPE_PRED)
		return unary(l, PICK_WIDTH(NOT, type), type, type, 0);
	a = lower_source(l, 1, type) ^ VALUE_NEGATED;
	lower_emit(l, OP_MOV_P, lower_destination(l, 0, type), a, 0, 0);
	return l->error;
}

/*
 * Bits
 */

static int lop3(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t a = lower_source(l, 2, PTX_TYPE_B32),
		 b = lower_source(l, 3, PTX_TYPE_B32);
	uint32_t c = lower_source(l, 4, PTX_TYPE_B32),
		 d = lower_destination(l, 0, PTX_TYPE_B32), q, p, t;

	if (l->operands[5].kind != PTX_OPERAND_INT)
		return lower_unsupported(l);
	lower_emit_imm(l, OP_LOP3_32, d, a, b, c, (uint64_t)l->operands[5].imm & 255);
	if (in->bool_op == PTX_BOOL_NONE)
		return l->error;
	p = lower_predicate(l, 6);
	t = lower_temporary(l, CLASS_PRED);
	q = lower_destination(l, 1, PTX_TYPE_PRED);
	lower_emit_imm(l, OP_EQ_U32, t, d, lower_constant(l, CLASS_32, 0), 0, 1);
	lower_emit(l, in->bool_op == PTX_BOOL_AND ? OP_AND_P : OP_OR_P, q, t, p, 0);
	return l->error;
}

static int prmt(struct lowering *l)
{
	unsigned int mode = l->instr->mode;

	if (mode == PTX_MODE_NONE)
		return ternary(l, OP_PRMT_32, PTX_TYPE_B32, PTX_TYPE_B32, PTX_TYPE_B32,
			PTX_TYPE_B32, 0);
	return ternary(l, OP_PRMT_MODE_32, PTX_TYPE_B32, PTX_TYPE_B32, PTX_TYPE_B32,
		PTX_TYPE_B32, mode - PTX_MODE_PRMT_F4E);
}

static int shf(struct lowering *l)
{
	bool left = l->instr->mode == PTX_MODE_SHF_L,
	     wrap = l->instr->wrap == PTX_WRAP_WRAP;
	unsigned int t = PTX_TYPE_B32;

	return ternary(l,
		left ? (wrap ? OP_SHF_L_WRAP : OP_SHF_L_CLAMP)
		     : (wrap ? OP_SHF_R_WRAP : OP_SHF_R_CLAMP),
		t, t, t, t, 0);
}

static int bfi(struct lowering *l, unsigned int type)
{
	uint32_t a = lower_source(l, 1, type), b = lower_source(l, 2, type);
	uint32_t pos = lower_source(l, 3, PTX_TYPE_U32),
		 len = lower_source(l, 4, PTX_TYPE_U32);
	uint32_t d = lower_destination(l, 0, type);

	lower_emit(l, PICK_WIDTH(BFI, type), d, a, b, pos)->field[FIELD_E] = len;
	return l->error;
}

static int bits(struct lowering *l, unsigned int type)
{
	const struct ptx_instr *in = l->instr;
	unsigned int u32 = PTX_TYPE_U32;

	switch (in->op) {
	case PTX_OP_POPC:
		return unary(l, PICK_WIDTH(POPC, type), u32, type, 0);
	case PTX_OP_CLZ:
		return unary(l, PICK_WIDTH(CLZ, type), u32, type, 0);
	case PTX_OP_BREV:
		return unary(l, PICK_WIDTH(BREV, type), type, type, 0);
	case PTX_OP_BFIND:
		return unary(l,
			pick(type, 0, 0, OP_BFIND_U32, OP_BFIND_S32, OP_BFIND_U64,
				OP_BFIND_S64),
			u32, type, !!(in->flags & PTX_FLAG_SHIFTAMT));
	case PTX_OP_BFE:
		return ternary(l,
			pick(type, 0, 0, OP_BFE_U32, OP_BFE_S32, OP_BFE_U64, OP_BFE_S64),
			type, type, u32, u32, 0);
	case PTX_OP_BFI:
		return bfi(l, type);
	case PTX_OP_BMSK:
		return binary(l, OP_BMSK_32, u32, u32, u32, in->wrap == PTX_WRAP_CLAMP);
	case PTX_OP_SZEXT:
		return binary(l, lower_type_is_signed(type) ? OP_SZEXT_S32 : OP_SZEXT_U32,
			type, type, u32, in->wrap == PTX_WRAP_CLAMP);
	case PTX_OP_FNS:
		return ternary(l, OP_FNS_32, u32, u32, u32, PTX_TYPE_S32, 0);
	case PTX_OP_PRMT:
		return prmt(l);
	case PTX_OP_SHF:
		return shf(l);
	default:
		return lop3(l);
	}
}

static int dot_product(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint64_t imm = (lower_type_is_signed(in->types[0]) ? 1 : 0) |
		       (lower_type_is_signed(in->types[1]) ? 2 : 0) |
		       (in->mul == PTX_MUL_HI ? 4 : 0);
	unsigned int t = PTX_TYPE_B32;

	return ternary(
		l, in->op == PTX_OP_DP4A ? OP_DP4A_32 : OP_DP2A_32, t, t, t, t, imm);
}

/*
 * Moves, with vectors taken apart and put together
 */

static void unpack_16(
	struct lowering *l, const struct ptx_operand *elements, uint32_t from)
{
	uint32_t low = lower_destination_of(l, &elements[0], PTX_TYPE_B16);
	uint32_t high = lower_destination_of(l, &elements[1], PTX_TYPE_B16);

	lower_emit(l, OP_EXT_U16_32, low, from, 0, 0);
	lower_emit(l, OP_HIGH_32, high, from, 0, 0);
}

/* Two or four bytes, the lowest one first. */
static void unpack_bytes(struct lowering *l, const struct ptx_operand *elements,
	unsigned int n, uint32_t from)
{
	uint32_t shifted, d;

	for (unsigned int i = 0; i < n; i++) {
		shifted = lower_temporary(l, CLASS_32);
		d = lower_destination_of(l, &elements[i], PTX_TYPE_B8);
		lower_emit(l, OP_SHR_U32, shifted, from,
			lower_constant(l, CLASS_32, 8 * i), 0);
		lower_emit(l, OP_EXT_U8_32, d, shifted, 0, 0);
	}
}

static void pack_bytes(struct lowering *l, const struct ptx_operand *elements,
	unsigned int n, uint32_t to)
{
	uint32_t sum = lower_temporary(l, CLASS_32), byte;

	lower_emit(l, OP_MOV_32, sum, lower_constant(l, CLASS_32, 0), 0, 0);
	for (unsigned int i = 0; i < n; i++) {
		byte = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_EXT_U8_32, byte,
			lower_source_of(l, &elements[i], PTX_TYPE_B8), 0, 0);
		lower_emit(
			l, OP_SHL_32, byte, byte, lower_constant(l, CLASS_32, 8 * i), 0);
		lower_emit(l, OP_OR_32, sum, sum, byte, 0);
	}
	lower_emit(l, OP_MOV_32, to, sum, 0, 0);
}

static int unpack(struct lowering *l, unsigned int type)
{
	const struct ptx_operand *v = &l->operands[0];
	const struct ptx_operand *elements = &l->frame->body->operands[v->index];
	uint32_t from = lower_source(l, 1, type), low, high;

	if (ptx_type_size(type) == 4 && v->count == 2) {
		unpack_16(l, elements, from);
	} else if (ptx_type_size(type) == 8 && v->count == 2) {
		low = lower_destination_of(l, &elements[0], PTX_TYPE_B32);
		high = lower_destination_of(l, &elements[1], PTX_TYPE_B32);
		lower_emit(l, OP_LOW_64, low, from, 0, 0);
		lower_emit(l, OP_HIGH_64, high, from, 0, 0);
	} else if (ptx_type_size(type) == 8 && v->count == 4) {
		low = lower_temporary(l, CLASS_32);
		high = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_LOW_64, low, from, 0, 0);
		lower_emit(l, OP_HIGH_64, high, from, 0, 0);
		unpack_16(l, elements, low);
		unpack_16(l, elements + 2, high);
	} else if (ptx_type_size(type) == v->count && v->count <= 4) {
		unpack_bytes(l, elements, v->count, from);
	} else {
		return lower_unsupported(l);
	}
	return l->error;
}

static uint32_t pack_16(
	struct lowering *l, const struct ptx_operand *elements, uint32_t to)
{
	uint32_t low = lower_source_of(l, &elements[0], PTX_TYPE_B16);
	uint32_t high = lower_source_of(l, &elements[1], PTX_TYPE_B16);

	lower_emit(l, OP_PACK_32, to, low, high, 0);
	return to;
}

static int pack(struct lowering *l, unsigned int type)
{
	const struct ptx_operand *v = &l->operands[1];
	const struct ptx_operand *elements = &l->frame->body->operands[v->index];
	uint32_t d = lower_destination(l, 0, type), low, high;

	if (ptx_type_size(type) == 4 && v->count == 2) {
		pack_16(l, elements, d);
	} else if (ptx_type_size(type) == 8 && v->count == 2) {
		low = lower_source_of(l, &elements[0], PTX_TYPE_B32);
		high = lower_source_of(l, &elements[1], PTX_TYPE_B32);
		lower_emit(l, OP_PACK_64, d, low, high, 0);
	} else if (ptx_type_size(type) == 8 && v->count == 4) {
		low = pack_16(l, elements, lower_temporary(l, CLASS_32));
		high = pack_16(l, elements + 2, lower_temporary(l, CLASS_32));
		lower_emit(l, OP_PACK_64, d, low, high, 0);
	} else if (ptx_type_size(type) == v->count && v->count <= 4) {
		pack_bytes(l, elements, v->count, d);
	} else {
		return lower_unsupported(l);
	}
	return l->error;
}

/* mov.v2 and mov.v4; what is written may be read by a later element. */
static int move_vector(struct lowering *l, unsigned int type)
{
	const struct ptx_operand *to = &l->operands[0], *from = &l->operands[1];
	const struct ptx_operand *operands = l->frame->body->operands;
	unsigned int n = l->instr->vector;
	enum op op = PICK_WIDTH(MOV, type);
	uint32_t values[4], d;

	if (to->kind != PTX_OPERAND_VECTOR || from->kind != PTX_OPERAND_VECTOR ||
		to->count != n || from->count != n || n > 4)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < n; i++) {
		values[i] = lower_temporary(l, lower_class_of(type));
		lower_emit(l, op, values[i],
			lower_source_of(l, &operands[from->index + i], type), 0, 0);
	}
	for (unsigned int i = 0; i < n; i++) {
		d = lower_destination_of(l, &operands[to->index + i], type);
		lower_emit(l, op, d, values[i], 0, 0);
		lower_finish_of(l, &operands[to->index + i], type, d);
	}
	return l->error;
}

static int move(struct lowering *l, unsigned int type)
{
	switch (lower_class_of(type)) {
	case CLASS_PRED:
		return unary(l, OP_MOV_P, type, type, 0);
	case CLASS_NONE:
		return type == PTX_TYPE_B128 ? lower_wide_move(l) : lower_unsupported(l);
	default:
		break;
	}
	if (negates_numbers(l))
		return lower_unsupported(l);
	if (l->instr->vector > 1)
		return move_vector(l, type);
	if (l->operands[0].kind == PTX_OPERAND_VECTOR)
		return unpack(l, type);
	if (l->operands[1].kind == PTX_OPERAND_VECTOR)
		return pack(l, type);
	return unary(l, PICK_WIDTH(MOV, type), type, type, 0);
}

/* Only these compute with pairs of 16 bits; as 32 bits the others would be wrong. */
static bool takes_pairs(unsigned int op)
{
	return op == PTX_OP_ADD || op == PTX_OP_SUB || op == PTX_OP_MIN ||
	       op == PTX_OP_MAX;
}

int translate_integer(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int type = in->types[0];

	if ((type == PTX_TYPE_U16X2 || type == PTX_TYPE_S16X2) && !takes_pairs(in->op))
		return lower_unsupported(l);
	switch (in->op) {
	case PTX_OP_MOV:
		return move(l, type);
	case PTX_OP_ADD:
	case PTX_OP_SUB:
		return add(l, type);
	case PTX_OP_ADDC:
	case PTX_OP_SUBC:
	case PTX_OP_MADC:
		return carry(l, type);
	case PTX_OP_MUL:
		return multiply(l, type);
	case PTX_OP_MAD:
		return in->flags & PTX_FLAG_CC ? carry(l, type) : multiply_add(l, type);
	case PTX_OP_MUL24:
	case PTX_OP_MAD24:
		return multiply_24(l, type);
	case PTX_OP_DIV:
		return binary(l, PICK(DIV, type), type, type, type, 0);
	case PTX_OP_REM:
		return binary(l, PICK(REM, type), type, type, type, 0);
	case PTX_OP_MIN:
	case PTX_OP_MAX:
		return minmax(l, type);
	case PTX_OP_NEG:
		return unary(l, PICK_WIDTH(NEG, type), type, type, 0);
	case PTX_OP_ABS:
		return unary(l, pick(type, 0, OP_ABS_S16, 0, OP_ABS_S32, 0, OP_ABS_S64),
			type, type, 0);
	case PTX_OP_AND:
	case PTX_OP_OR:
	case PTX_OP_XOR:
		return logic(l, type);
	case PTX_OP_NOT:
		return logical_not(l, type);
	case PTX_OP_CNOT:
		return unary(l, pick(type, OP_CNOT_16, 0, OP_CNOT_32, 0, OP_CNOT_64, 0),
			type, type, 0);
	case PTX_OP_SHL:
		return binary(l, PICK_WIDTH(SHL, type), type, type, PTX_TYPE_U32, 0);
	case PTX_OP_SHR:
		return binary(l, PICK(SHR, type), type, type, PTX_TYPE_U32, 0);
	case PTX_OP_SAD:
		return ternary(l, PICK(SAD, type), type, type, type, type, 0);
	case PTX_OP_DP4A:
	case PTX_OP_DP2A:
		return dot_product(l);
	default:
		return bits(l, type);
	}
}
