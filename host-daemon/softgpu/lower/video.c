/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: video instructions
 *
 * All modifiers of an instruction are in the immediate of one operation, see enum video.
 */

#include "lower/lower.h"

static enum video_op operation(unsigned int op)
{
	switch (op) {
	case PTX_OP_VSUB:
	case PTX_OP_VSUB2:
	case PTX_OP_VSUB4:
		return VIDEO_SUB;
	case PTX_OP_VABSDIFF:
	case PTX_OP_VABSDIFF2:
	case PTX_OP_VABSDIFF4:
		return VIDEO_ABSDIFF;
	case PTX_OP_VMIN:
	case PTX_OP_VMIN2:
	case PTX_OP_VMIN4:
		return VIDEO_MIN;
	case PTX_OP_VMAX:
	case PTX_OP_VMAX2:
	case PTX_OP_VMAX4:
		return VIDEO_MAX;
	case PTX_OP_VSET:
	case PTX_OP_VSET2:
	case PTX_OP_VSET4:
		return VIDEO_SET;
	case PTX_OP_VAVRG2:
	case PTX_OP_VAVRG4:
		return VIDEO_AVRG;
	case PTX_OP_VSHL:
		return VIDEO_SHL;
	case PTX_OP_VSHR:
		return VIDEO_SHR;
	default:
		return VIDEO_ADD;
	}
}

/* Returns: in how many lanes the instruction computes. */
static unsigned int lanes_of(unsigned int op)
{
	switch (op) {
	case PTX_OP_VABSDIFF2:
	case PTX_OP_VADD2:
	case PTX_OP_VAVRG2:
	case PTX_OP_VMAX2:
	case PTX_OP_VMIN2:
	case PTX_OP_VSET2:
	case PTX_OP_VSUB2:
		return 2;
	case PTX_OP_VABSDIFF4:
	case PTX_OP_VADD4:
	case PTX_OP_VAVRG4:
	case PTX_OP_VMAX4:
	case PTX_OP_VMIN4:
	case PTX_OP_VSET4:
	case PTX_OP_VSUB4:
		return 4;
	default:
		return 1;
	}
}

/* The modifiers, whatever the number of lanes. *okp: all of them are known. */
static uint64_t modifiers(const struct ptx_instr *in, bool *okp)
{
	static const uint64_t signs[] = { VIDEO_SIGNED_D, VIDEO_SIGNED_A,
		VIDEO_SIGNED_B };
	bool is_set = operation(in->op) == VIDEO_SET;
	uint64_t imm = operation(in->op);

	*okp = true;
	for (unsigned int i = 0; i < in->n_types; i++) {
		if (in->types[i] == PTX_TYPE_S32)
			imm |= signs[i + is_set];
		else if (in->types[i] != PTX_TYPE_U32)
			*okp = false;
	}
	if (in->flags & PTX_FLAG_SAT)
		imm |= VIDEO_SAT;
	if (in->wrap == PTX_WRAP_WRAP)
		imm |= VIDEO_WRAP;
	if (is_set) {
		if (in->cmp < PTX_CMP_EQ || in->cmp > PTX_CMP_GE)
			*okp = false;
		imm |= (uint64_t)(in->cmp - PTX_CMP_EQ) << VIDEO_CMP_SHIFT;
	}
	switch (in->atom) {
	case PTX_ATOM_NONE:
		break;
	case PTX_ATOM_ADD:
		imm |= UINT64_C(1) << VIDEO_SECOND_SHIFT;
		break;
	case PTX_ATOM_MIN:
		imm |= UINT64_C(2) << VIDEO_SECOND_SHIFT;
		break;
	case PTX_ATOM_MAX:
		imm |= UINT64_C(3) << VIDEO_SECOND_SHIFT;
		break;
	default:
		*okp = false;
		break;
	}
	return imm;
}

/* Returns: the parts an operand names; of immediates all. */
static uint32_t parts_of(const struct ptx_operand *operand)
{
	return operand->kind == PTX_OPERAND_REG ? (uint32_t)operand->imm : 0;
}

/* One part as enum video numbers it. *okp: it is one that there is. */
static uint64_t one_part(const struct ptx_operand *operand, bool *okp)
{
	uint32_t parts = parts_of(operand), number = parts & 15;

	if (!parts)
		return 0;
	if ((parts >> PTX_PARTS_COUNT_SHIFT & 7) != 1 ||
		number > (parts & PTX_PARTS_BYTES ? 3u : 1u))
		*okp = false;
	return parts & PTX_PARTS_BYTES ? 1 + number : 5 + number;
}

static int scalar(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool mad = in->op == PTX_OP_VMAD, ok, has_c = lower_has_operand(l, 3);
	bool merges = parts_of(&l->operands[0]);
	uint64_t imm = modifiers(in, &ok);
	uint32_t s[3], d;

	imm |= one_part(&l->operands[1], &ok) << VIDEO_PART_A_SHIFT;
	imm |= one_part(&l->operands[2], &ok) << VIDEO_PART_B_SHIFT;
	if (mad) {
		imm |= in->flags & PTX_FLAG_PLUS_ONE ? VIDEO_PLUS_ONE : 0;
		imm |= l->operands[1].negated != l->operands[2].negated
			       ? VIDEO_NEGATE_PRODUCT
			       : 0;
		imm |= l->operands[3].negated ? VIDEO_NEGATE_C : 0;
		imm |= (in->mode == PTX_MODE_SHR7	    ? UINT64_C(7)
			       : in->mode == PTX_MODE_SHR15 ? UINT64_C(15)
							    : 0)
		       << VIDEO_SCALE_SHIFT;
		ok = ok && !parts_of(&l->operands[3]) &&
		     !!(imm & VIDEO_PLUS_ONE) + !!(imm & VIDEO_NEGATE_PRODUCT) +
				     !!(imm & VIDEO_NEGATE_C) <
			     2;
	} else {
		imm |= one_part(&l->operands[0], &ok) << VIDEO_PART_D_SHIFT;
		ok = ok && (has_c || !(merges || in->atom)) && !(merges && in->atom) &&
		     !l->operands[1].negated && !l->operands[2].negated;
	}
	if (!ok)
		return lower_unsupported(l);
	s[0] = lower_source(l, 1, PTX_TYPE_U32);
	s[1] = lower_source(l, 2, PTX_TYPE_U32);
	s[2] = has_c ? lower_source(l, 3, PTX_TYPE_U32) : lower_constant(l, CLASS_32, 0);
	d = lower_destination(l, 0, PTX_TYPE_U32);
	lower_emit_imm(l, mad ? OP_VIDEO_MAD : OP_VIDEO, d, s[0], s[1], s[2], imm);
	return l->error;
}

/* From where each lane is, 3 bits for each; or the lanes one after the other from @first
 */
static uint64_t selection(
	const struct ptx_operand *operand, unsigned int n, unsigned int first, bool *okp)
{
	uint32_t parts = parts_of(operand),
		 kind = n == 2 ? PTX_PARTS_HALVES : PTX_PARTS_BYTES;
	uint64_t imm = 0;

	if (parts && (!(parts & kind) || (parts >> PTX_PARTS_COUNT_SHIFT & 7) != n))
		*okp = false;
	for (unsigned int i = 0; i < n; i++)
		imm |= (uint64_t)(parts ? parts >> 4 * i & 15 : first + i) << 3 * i;
	return imm;
}

/* The lanes that the destination names: each once, or all. */
static uint64_t lane_mask(const struct ptx_operand *operand, unsigned int n, bool *okp)
{
	uint32_t parts = parts_of(operand), count = parts >> PTX_PARTS_COUNT_SHIFT & 7;
	uint64_t mask = 0;

	if (!parts)
		return (UINT64_C(1) << n) - 1;
	if (!(parts & (n == 2 ? PTX_PARTS_HALVES : PTX_PARTS_BYTES)))
		*okp = false;
	for (unsigned int i = 0; i < count; i++) {
		if ((parts >> 4 * i & 15) >= n)
			*okp = false;
		mask |= UINT64_C(1) << (parts >> 4 * i & 3);
	}
	return mask;
}

static int simd(struct lowering *l, unsigned int n)
{
	const struct ptx_instr *in = l->instr;
	uint64_t imm;
	uint32_t s[3], d;
	bool ok;

	imm = modifiers(in, &ok);
	imm |= lane_mask(&l->operands[0], n, &ok) << VIDEO_MASK_SHIFT;
	imm |= selection(&l->operands[1], n, 0, &ok) << VIDEO_FROM_A_SHIFT;
	imm |= selection(&l->operands[2], n, n, &ok) << VIDEO_FROM_B_SHIFT;
	if (!ok || (in->atom && in->atom != PTX_ATOM_ADD) ||
		(in->atom && in->flags & PTX_FLAG_SAT) || l->operands[1].negated ||
		l->operands[2].negated)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < 3; i++)
		s[i] = lower_source(l, i + 1, PTX_TYPE_U32);
	d = lower_destination(l, 0, PTX_TYPE_U32);
	lower_emit_imm(l, n == 2 ? OP_VIDEO_2 : OP_VIDEO_4, d, s[0], s[1], s[2], imm);
	return l->error;
}

int translate_video(struct lowering *l)
{
	unsigned int n = lanes_of(l->instr->op);

	return n == 1 ? scalar(l) : simd(l, n);
}
