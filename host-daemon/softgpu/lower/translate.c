/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: a function's body, instruction by instruction
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

uint32_t lower_labels_new(struct lowering *l, uint32_t n)
{
	uint32_t first = l->n_labels;

	if (lower_reserve(
		    &l->labels, &l->labels_capacity, first + n, sizeof(*l->labels))) {
		lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
		return 0;
	}
	if (n)
		memset(l->labels + first, 0, n * sizeof(*l->labels));
	l->n_labels += n;
	return first;
}

static bool is_real(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_F16:
	case PTX_TYPE_F16X2:
	case PTX_TYPE_BF16:
	case PTX_TYPE_BF16X2:
	case PTX_TYPE_F32:
	case PTX_TYPE_F32X2:
	case PTX_TYPE_F64:
	case PTX_TYPE_TF32:
		return true;
	default:
		return false;
	}
}

static int translate_arithmetic(struct lowering *l)
{
	return is_real(l->instr->types[0]) ? translate_real(l) : translate_integer(l);
}

static int translate_hint(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_CP_ASYNC_BULK_WAIT_GROUP:
	case PTX_OP_CP_ASYNC_WAIT_ALL:
	case PTX_OP_CP_ASYNC_WAIT_GROUP:
		if (l->cache->is_watched)
			lower_emit(l, OP_COPIES_WAIT, 0, 0, 0, 0);
		break;
	}
	return l->error;
}

static int (*const families[_PTX_FAMILY_N])(struct lowering *l) = {
	[PTX_FAMILY_NONE] = lower_unsupported,
	[PTX_FAMILY_ARITHMETIC] = translate_arithmetic,
	[PTX_FAMILY_INTEGER] = translate_integer,
	[PTX_FAMILY_REAL] = translate_real,
	[PTX_FAMILY_COMPARE] = translate_compare,
	[PTX_FAMILY_CONVERT] = translate_convert,
	[PTX_FAMILY_MEMORY] = translate_memory,
	[PTX_FAMILY_TEXTURE] = translate_texture,
	[PTX_FAMILY_WARP] = translate_warp,
	[PTX_FAMILY_MATRIX] = translate_matrix,
	[PTX_FAMILY_CONTROL] = translate_control,
	[PTX_FAMILY_CALL] = translate_call,
	[PTX_FAMILY_STACK] = translate_stack,
	[PTX_FAMILY_VIDEO] = translate_video,
	[PTX_FAMILY_ASYNC] = translate_async,
	[PTX_FAMILY_HINT] = translate_hint,
};

/*
 * An instruction may write the predicate that guards it. Where it becomes several
 * operations, the later ones must still see the old one.
 */
static uint32_t guard_of(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t guard, keep;

	if (in->guard == PTX_INDEX_NONE)
		return VALUE_TRUE;
	guard = l->frame->first_register + in->guard;
	for (unsigned int i = 0; i < 2 && i < in->n_operands; i++) {
		if (l->operands[i].kind != PTX_OPERAND_REG ||
			l->operands[i].index != in->guard || in->op == PTX_OP_BRX)
			continue;
		l->guard = VALUE_TRUE;
		keep = lower_temporary(l, CLASS_PRED);
		lower_emit(l, OP_MOV_P, keep, guard, 0, 0);
		guard = keep;
		break;
	}
	return in->guard_negated ? guard ^ VALUE_NEGATED : guard;
}

/* Modifiers that change a result and that only some translations know. */
static bool has_strange_modifier(const struct ptx_instr *in)
{
	switch (in->op) {
	case PTX_OP_CVT:
	case PTX_OP_REDUX:
	case PTX_OP_MMA:
	case PTX_OP_MMA_SP:
	case PTX_OP_MMA_SP_ORDERED:
	case PTX_OP_WMMA_MMA:
		return false;
	case PTX_OP_MIN:
	case PTX_OP_MAX:
	case PTX_OP_FMA:
	case PTX_OP_ADD:
	case PTX_OP_SUB:
	case PTX_OP_MUL:
		return in->flags & PTX_FLAG_SATFINITE;
	default:
		return in->flags &
		       (PTX_FLAG_SATFINITE | PTX_FLAG_RELU | PTX_FLAG_XORSIGN |
			       PTX_FLAG_ABS | PTX_FLAG_NAN);
	}
}

static int translate_body(struct lowering *l, struct frame *frame)
{
	const struct ptx_body *body = frame->body;
	_vgpu_cleanup_(vgpu_freep) uint32_t *starts =
		calloc((size_t)body->n_instrs + 1, sizeof(*starts));
	int r;

	if (!starts)
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	for (uint32_t i = 0; i < body->n_instrs; i++) {
		l->frame = frame;
		l->instr = &body->instrs[i];
		l->operands = l->instr->n_operands
				      ? &body->operands[l->instr->first_operand]
				      : NULL;
		starts[i] = l->n_ops;
		if (has_strange_modifier(l->instr))
			return lower_unsupported(l);
		l->guard = guard_of(l);
		r = families[ptx_op_family(l->instr->op)](l);
		lower_finish_instruction(l);
		if (!r)
			r = l->error;
		if (r)
			return r;
	}
	starts[body->n_instrs] = l->n_ops;
	for (uint32_t i = 0; i < body->n_labels; i++)
		l->labels[frame->first_label + i] = starts[body->labels[i]];
	return 0;
}

static uint32_t align_local(uint32_t at, uint32_t alignment)
{
	alignment = alignment < 16 ? 16 : alignment;
	return (at + alignment - 1) & ~(alignment - 1);
}

static int place_frame(struct lowering *l, struct frame *frame)
{
	const struct ptx_body *body = frame->body;

	if (body->local_align > 4096 || body->param_align > 4096)
		return lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
			"%.80s: too strict an alignment of local memory",
			frame->ptx->name);
	frame->local_base = align_local(frame->local_end, body->local_align);
	frame->param_base =
		align_local(frame->local_base + body->local_size, body->param_align);
	frame->actual_base = align_local(frame->param_base + body->param_size, 16);
	frame->local_end = frame->actual_base + lower_actuals_size(body);
	if (frame->local_end > SOFTGPU_LOCAL_MAX)
		return lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
			"%.80s: too much local memory", frame->ptx->name);
	if (frame->local_end > l->extent)
		l->extent = frame->local_end;
	return 0;
}

static enum value_class class_of_register(unsigned int type)
{
	return type == PTX_TYPE_B128 ? CLASS_64 : lower_class_of(type);
}

static void set_high(struct lowering *l, uint32_t value)
{
	uint32_t high = lower_value_new(l, CLASS_64, VALUE_REGISTER);

	l->values[value].high = high;
}

int translate_function(struct lowering *l, struct frame *frame)
{
	struct ptx_error error = {};
	int r = ptx_function_parse(l->module, frame->function, &error);

	if (r)
		return lower_fail(l, r > 0 ? ptx_result(r) : SOFTGPU_ERROR_OUT_OF_MEMORY,
			"%.80s, line %u: %.150s", frame->ptx->name, error.line,
			r > 0 ? error.message : "cannot be parsed");
	frame->body = frame->ptx->body;
	r = place_frame(l, frame);
	if (r)
		return r;
	frame->first_register = l->n_values;
	for (uint32_t i = 0; i < frame->body->n_registers; i++)
		lower_value_new(
			l, class_of_register(frame->body->registers[i]), VALUE_REGISTER);
	for (uint32_t i = 0; i < frame->body->n_registers && !l->error; i++)
		if (frame->body->registers[i] == PTX_TYPE_B128)
			set_high(l, frame->first_register + i);
	frame->first_label = lower_labels_new(l, frame->body->n_labels);
	l->frame = frame;
	lower_load_formals(l);
	lower_stack_open(l, frame);
	return l->error ? l->error : translate_body(l, frame);
}
