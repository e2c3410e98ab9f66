/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: a function's body, instruction by instruction
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

uint32_t new_labels(struct lowering *l, uint32_t n)
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

/* All that begin with a V, but for vote. */
static bool is_video(unsigned int op)
{
	return op >= PTX_OP_VABSDIFF && op <= PTX_OP_VSUB4 && op != PTX_OP_VOTE;
}

static int dispatch_rest(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_ALLOCA:
	case PTX_OP_STACKRESTORE:
	case PTX_OP_STACKSAVE:
		return translate_stack(l);
	case PTX_OP_ST_BULK:
	case PTX_OP_CREATEPOLICY:
	case PTX_OP_ISTYPEP:
		return translate_memory(l);
	case PTX_OP_PREFETCH:
	case PTX_OP_PREFETCHU:
	case PTX_OP_DISCARD:
	case PTX_OP_PMEVENT:
	case PTX_OP_GRIDDEPCONTROL:
	case PTX_OP_APPLYPRIORITY:
	case PTX_OP_SETMAXNREG:
		return l->error; /* hints: no operation */
	default:
		return translate_texture(l);
	}
}

static int dispatch(struct lowering *l)
{
	if (is_video(l->instr->op))
		return translate_video(l);
	switch (l->instr->op) {
	case PTX_OP_ADD:
	case PTX_OP_SUB:
	case PTX_OP_MUL:
	case PTX_OP_MAD:
	case PTX_OP_DIV:
	case PTX_OP_MIN:
	case PTX_OP_MAX:
	case PTX_OP_NEG:
	case PTX_OP_ABS:
		return is_real(l->instr->types[0]) ? translate_real(l)
						   : translate_integer(l);
	case PTX_OP_FMA:
	case PTX_OP_RCP:
	case PTX_OP_SQRT:
	case PTX_OP_RSQRT:
	case PTX_OP_EX2:
	case PTX_OP_LG2:
	case PTX_OP_SIN:
	case PTX_OP_COS:
	case PTX_OP_TANH:
	case PTX_OP_COPYSIGN:
		return translate_real(l);
	case PTX_OP_MOV:
	case PTX_OP_ADDC:
	case PTX_OP_SUBC:
	case PTX_OP_MADC:
	case PTX_OP_MUL24:
	case PTX_OP_MAD24:
	case PTX_OP_REM:
	case PTX_OP_AND:
	case PTX_OP_OR:
	case PTX_OP_XOR:
	case PTX_OP_NOT:
	case PTX_OP_CNOT:
	case PTX_OP_SHL:
	case PTX_OP_SHR:
	case PTX_OP_SAD:
	case PTX_OP_DP4A:
	case PTX_OP_DP2A:
	case PTX_OP_POPC:
	case PTX_OP_CLZ:
	case PTX_OP_BREV:
	case PTX_OP_BFIND:
	case PTX_OP_BFE:
	case PTX_OP_BFI:
	case PTX_OP_BMSK:
	case PTX_OP_SZEXT:
	case PTX_OP_FNS:
	case PTX_OP_PRMT:
	case PTX_OP_SHF:
	case PTX_OP_LOP3:
		return translate_integer(l);
	case PTX_OP_SETP:
	case PTX_OP_SET:
	case PTX_OP_SELP:
	case PTX_OP_SLCT:
	case PTX_OP_TESTP:
		return translate_compare(l);
	case PTX_OP_CVT:
	case PTX_OP_CVTA:
		return translate_convert(l);
	case PTX_OP_LD:
	case PTX_OP_LDU:
	case PTX_OP_ST:
	case PTX_OP_ATOM:
	case PTX_OP_RED:
	case PTX_OP_ISSPACEP:
	case PTX_OP_FENCE:
	case PTX_OP_MEMBAR:
		return translate_memory(l);
	case PTX_OP_ELECT:
	case PTX_OP_SHFL:
	case PTX_OP_VOTE:
	case PTX_OP_MATCH:
	case PTX_OP_REDUX:
	case PTX_OP_ACTIVEMASK:
		return translate_warp(l);
	case PTX_OP_BRA:
	case PTX_OP_BRX:
	case PTX_OP_RET:
	case PTX_OP_EXIT:
	case PTX_OP_TRAP:
	case PTX_OP_BRKPT:
	case PTX_OP_NANOSLEEP:
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
	case PTX_OP_BARRIER_CLUSTER:
	case PTX_OP_MAPA:
	case PTX_OP_GETCTARANK:
		return translate_control(l);
	case PTX_OP_CALL:
		return translate_call(l);
	default:
		return dispatch_rest(l);
	}
}

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
		keep = temporary(l, CLASS_PRED);
		emit(l, OP_MOV_P, keep, guard, 0, 0);
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
		r = dispatch(l);
		finish_instruction(l);
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
	frame->local_end = frame->actual_base + actuals_size(body);
	if (frame->local_end > SOFTGPU_LOCAL_MAX)
		return lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
			"%.80s: too much local memory", frame->ptx->name);
	if (frame->local_end > l->extent)
		l->extent = frame->local_end;
	return 0;
}

static enum value_class class_of_register(unsigned int type)
{
	return type == PTX_TYPE_B128 ? CLASS_64 : class_of(type);
}

static void set_high(struct lowering *l, uint32_t value)
{
	uint32_t high = new_value(l, CLASS_64, VALUE_REGISTER);

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
		new_value(
			l, class_of_register(frame->body->registers[i]), VALUE_REGISTER);
	for (uint32_t i = 0; i < frame->body->n_registers && !l->error; i++)
		if (frame->body->registers[i] == PTX_TYPE_B128)
			set_high(l, frame->first_register + i);
	frame->first_label = new_labels(l, frame->body->n_labels);
	l->frame = frame;
	load_formals(l);
	open_stack(l, frame);
	return l->error ? l->error : translate_body(l, frame);
}
