/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: memory from the stack
 *
 * alloca takes it from the upper end of a thread's local memory, towards which frames
 * grow. A function, inlined or a subroutine, frees it when it returns; stackrestore does
 * so earlier.
 */

#include "lower/lower.h"

static bool takes_stack(const struct ptx_body *body)
{
	for (uint32_t i = 0; i < body->n_instrs; i++)
		if (body->instrs[i].op == PTX_OP_ALLOCA)
			return true;
	return false;
}

/* Below it lie the frame of the subroutine, or the kernel's own variables. */
static void restore(struct lowering *l, uint32_t top)
{
	lower_emit_imm(l, OP_STACK_SET, 0, top, 0, 0, l->subroutine);
}

void lower_stack_open(struct lowering *l, struct frame *frame)
{
	if (frame->return_label == PTX_INDEX_NONE || !takes_stack(frame->body))
		return;
	l->uses_stack = true;
	frame->stack_mark = lower_value_new(l, CLASS_64, VALUE_REGISTER);
	lower_emit(l, OP_STACK_GET, frame->stack_mark, 0, 0, 0);
}

void lower_stack_close(struct lowering *l, const struct frame *frame)
{
	if (frame->stack_mark)
		restore(l, frame->stack_mark);
}

static uint32_t widened(struct lowering *l, uint32_t value)
{
	uint32_t t;

	if (l->values[value].class == CLASS_64)
		return value;
	t = lower_temporary(l, CLASS_64);
	lower_emit(l, OP_EXT_U32_64, t, value, 0, 0);
	return t;
}

/* alloca ptr, size{, alignment} */
static int allocate(struct lowering *l, unsigned int type)
{
	bool wide = lower_class_of(type) == CLASS_64;
	struct operation *o;
	uint64_t align = 8;
	uint32_t size, d, t;

	if (lower_has_operand(l, 2)) {
		align = (uint64_t)l->operands[2].imm;
		if (l->operands[2].kind != PTX_OPERAND_INT || !align ||
			align & (align - 1) || align > 4096)
			return lower_unsupported(l);
	}
	size = widened(l, lower_source(l, 1, type));
	d = lower_destination(l, 0, type);
	t = wide ? d : lower_temporary(l, CLASS_64);
	o = lower_emit(l, OP_ALLOCA, t, size, 0, 0);
	o->imm = l->subroutine;
	o->reserved = (uint16_t)__builtin_ctzll(align);
	if (!wide)
		lower_emit(l, OP_LOW_64, d, t, 0, 0);
	return l->error;
}

int translate_stack(struct lowering *l)
{
	unsigned int type = l->instr->types[0];
	uint32_t d, t;

	if (type != PTX_TYPE_U32 && type != PTX_TYPE_U64)
		return lower_unsupported(l);
	l->uses_stack = true;
	switch (l->instr->op) {
	case PTX_OP_ALLOCA:
		return allocate(l, type);
	case PTX_OP_STACKRESTORE:
		restore(l, widened(l, lower_source(l, 0, type)));
		return l->error;
	default:
		d = lower_destination(l, 0, type);
		t = type == PTX_TYPE_U64 ? d : lower_temporary(l, CLASS_64);
		lower_emit(l, OP_STACK_GET, t, 0, 0, 0);
		if (t != d)
			lower_emit(l, OP_LOW_64, d, t, 0, 0);
		return l->error;
	}
}
