/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: blocks that take the place of others which have not begun
 *
 * exec/cancel.c has the form of an answer.
 */

#include "lower/lower.h"

/* [answer], [barrier] */
static int ask(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int space = in->spaces[0];
	uint32_t to, barrier;
	int r;

	if (in->mode != PTX_MODE_ASYNC_COMPLETE_TX || in->types[0] != PTX_TYPE_B128 ||
		(space && space != PTX_SPACE_SHARED) || in->spaces[1] ||
		(in->query && in->query != PTX_CANCEL_ALL_BLOCKS))
		return lower_unsupported(l);
	r = lower_absolute_address(l, 0, space, &to);
	if (!r)
		r = lower_absolute_address(l, 1, space, &barrier);
	if (r)
		return r;
	lower_emit(l, OP_TRY_CANCEL, 0, to, barrier, 0)->imm =
		in->query == PTX_CANCEL_ALL_BLOCKS;
	return l->error;
}

static int is_cancelled(struct lowering *l, const uint32_t answer[2])
{
	uint32_t t = lower_temporary(l, CLASS_32);

	lower_emit(l, OP_LOW_64, t, answer[0], 0, 0);
	/* Inverted. */
	lower_emit_imm(l, OP_EQ_U32, lower_destination(l, 0, PTX_TYPE_PRED), t,
		lower_constant(l, CLASS_32, 0), 0, 1);
	return l->error;
}

/* One of the words of the answer behind the first. */
static void take_coordinate(struct lowering *l, const uint32_t answer[2],
	const struct ptx_operand *to, unsigned int i)
{
	uint32_t d = lower_destination_of(l, to, PTX_TYPE_B32);

	lower_emit(l, i % 2 ? OP_LOW_64 : OP_HIGH_64, d, answer[(i + 1) / 2], 0, 0);
	lower_finish_of(l, to, PTX_TYPE_B32, d);
}

/* {x, y, z, any} */
static int take_coordinates(struct lowering *l, const uint32_t answer[2])
{
	const struct ptx_operand *to = &l->operands[0], *elements;
	uint32_t d;

	if (l->instr->vector != 4 || to->kind != PTX_OPERAND_VECTOR || to->count != 4)
		return lower_unsupported(l);
	elements = &l->frame->body->operands[to->index];
	for (unsigned int i = 0; i < 3; i++)
		take_coordinate(l, answer, &elements[i], i);
	d = lower_destination_of(l, &elements[3], PTX_TYPE_B32);
	lower_emit(l, OP_MOV_32, d, lower_constant(l, CLASS_32, 0), 0, 0);
	lower_finish_of(l, &elements[3], PTX_TYPE_B32, d);
	return l->error;
}

static int read_answer(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool is_question = in->query == PTX_CANCEL_IS_CANCELED;
	uint32_t answer[2];
	int r;

	if (in->types[0] != (is_question ? PTX_TYPE_PRED : PTX_TYPE_B32) ||
		in->types[1] != PTX_TYPE_B128 || in->query < PTX_CANCEL_IS_CANCELED ||
		(in->vector > 1 && in->query != PTX_CANCEL_FIRST))
		return lower_unsupported(l);
	r = lower_wide_of(l, &l->operands[1], answer);
	if (r)
		return r;
	if (is_question)
		return is_cancelled(l, answer);
	if (in->query == PTX_CANCEL_FIRST)
		return take_coordinates(l, answer);
	if (l->operands[0].kind == PTX_OPERAND_VECTOR)
		return lower_unsupported(l);
	take_coordinate(l, answer, &l->operands[0], in->query - PTX_CANCEL_FIRST_X);
	return l->error;
}

int translate_cancel(struct lowering *l)
{
	return l->instr->op == PTX_OP_CLUSTERLAUNCHCONTROL_TRY_CANCEL ? ask(l)
								      : read_answer(l);
}
