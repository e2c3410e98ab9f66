/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: values of 128 bits
 *
 * A register of 128 bits is two values of 64: the lower one has its number, and refers to
 * the other. Memory accesses are those of vectors of two; the atomic operations are
 * separate.
 */

#include "lower/lower.h"

bool lower_is_wide(const struct lowering *l)
{
	return l->instr->types[0] == PTX_TYPE_B128;
}

int lower_wide_of(
	struct lowering *l, const struct ptx_operand *operand, uint32_t halves[2])
{
	if (operand->kind == PTX_OPERAND_NONE) {
		halves[0] = lower_temporary(l, CLASS_64);
		halves[1] = lower_temporary(l, CLASS_64);
		return l->error;
	}
	if (operand->kind != PTX_OPERAND_REG)
		return lower_unsupported(l);
	halves[0] = l->frame->first_register + operand->index;
	halves[1] = l->values[halves[0]].high;
	return halves[1] ? 0 : lower_unsupported(l);
}

/* {low, high} of 64 bits, or four of 32. */
static int unpack(struct lowering *l, const struct ptx_operand *to)
{
	const struct ptx_operand *elements = &l->frame->body->operands[to->index];
	uint32_t halves[2], d;
	int r = lower_wide_of(l, &l->operands[1], halves);

	if (r)
		return r;
	if (to->count != 2 && to->count != 4)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < to->count; i++) {
		d = lower_destination_of(
			l, &elements[i], to->count == 2 ? PTX_TYPE_B64 : PTX_TYPE_B32);
		if (to->count == 2)
			lower_emit(l, OP_MOV_64, d, halves[i], 0, 0);
		else
			lower_emit(l, i % 2 ? OP_HIGH_64 : OP_LOW_64, d, halves[i / 2], 0,
				0);
	}
	return l->error;
}

static int pack(struct lowering *l, const struct ptx_operand *from)
{
	const struct ptx_operand *elements = &l->frame->body->operands[from->index];
	uint32_t halves[2], s[4];
	int r = lower_wide_of(l, &l->operands[0], halves);

	if (r)
		return r;
	if (from->count != 2 && from->count != 4)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < from->count; i++)
		s[i] = lower_source_of(
			l, &elements[i], from->count == 2 ? PTX_TYPE_B64 : PTX_TYPE_B32);
	for (unsigned int i = 0; i < 2; i++) {
		if (from->count == 2)
			lower_emit(l, OP_MOV_64, halves[i], s[i], 0, 0);
		else
			lower_emit(l, OP_PACK_64, halves[i], s[2 * i], s[2 * i + 1], 0);
	}
	return l->error;
}

int lower_wide_move(struct lowering *l)
{
	const struct ptx_operand *to = &l->operands[0], *from = &l->operands[1];
	uint32_t d[2], s[2];
	int r;

	if (l->instr->vector > 1)
		return lower_unsupported(l);
	if (to->kind == PTX_OPERAND_VECTOR)
		return unpack(l, to);
	if (from->kind == PTX_OPERAND_VECTOR)
		return pack(l, from);
	r = lower_wide_of(l, to, d);
	if (!r)
		r = lower_wide_of(l, from, s);
	for (unsigned int i = 0; i < 2 && !r; i++)
		lower_emit(l, OP_MOV_64, d[i], s[i], 0, 0);
	return r ? r : l->error;
}

/*
 * @address: of 64 bits; the offset and the space are encoded in the operation
 *
 * The operation has one field less than compare-and-swap needs: the comparand is stored
 * before it.
 */
int lower_wide_atomic(
	struct lowering *l, uint32_t address, uint32_t off, uint16_t reserved)
{
	const struct ptx_instr *in = l->instr;
	bool cas = in->atom == PTX_ATOM_CAS;
	uint32_t d[2], b[2], c[2];
	struct operation *o;
	int r;

	if (in->op != PTX_OP_ATOM || in->vector > 1 ||
		(!cas && in->atom != PTX_ATOM_EXCH))
		return lower_unsupported(l);
	r = lower_wide_of(l, &l->operands[0], d);
	if (!r)
		r = lower_wide_of(l, &l->operands[2], b);
	if (!r && cas)
		r = lower_wide_of(l, &l->operands[3], c);
	if (r)
		return r;
	if (cas)
		lower_emit(l, OP_ATOM_PUT_128, 0, b[0], b[1], 0)->reserved =
			INSN_KEEPS_TURN;
	o = lower_emit(l, cas ? OP_ATOM_CAS_128 : OP_ATOM_EXCH_128, d[0], address,
		cas ? c[0] : b[0], cas ? c[1] : b[1]);
	o->imm = off;
	o->field[FIELD_F] = d[1];
	o->reserved = reserved;
	return l->error;
}
