/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emit: operations become instructions
 *
 * The last place where anything is checked: handlers trust what is written here. Each
 * operand has the class its signature asks for and a slot within the file, each branch
 * a target within the code.
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"

#define LETTER_u8 'w'
#define LETTER_s8 'w'
#define LETTER_u16 'w'
#define LETTER_s16 'w'
#define LETTER_u32 'w'
#define LETTER_s32 'w'
#define LETTER_f32 'w'
#define LETTER_u64 'x'
#define LETTER_s64 'x'
#define LETTER_f64 'x'
#define RESULT(_T) (LETTER_##_T == 'w' ? 'W' : 'X')

static const char signatures[_OP_N][_FIELD_N + 1] = {
#define UNARY(_name, _D, _A, _expr)                                                      \
	[OP_##_name] = { RESULT(_D), LETTER_##_A, '-', '-', '-', '-', 0 },
#define BINARY(_name, _D, _A, _B, _expr)                                                 \
	[OP_##_name] = { RESULT(_D), LETTER_##_A, LETTER_##_B, '-', '-', '-', 0 },
#define TERNARY(_name, _D, _A, _B, _C, _expr)                                            \
	[OP_##_name] = { RESULT(_D), LETTER_##_A, LETTER_##_B, LETTER_##_C, '-', '-', 0 },
#define COMPARE(_name, _T, _expr)                                                        \
	[OP_##_name] = { 'P', LETTER_##_T, LETTER_##_T, '-', '-', '-', 0 },
#define COMPARE_BRANCH(_name, _T, _expr) COMPARE(_name##_BRA, _T, _expr)
#define OTHER(_name, _signature) [OP_##_name] = _signature,
	SOFTGPU_OPS_UNARY(UNARY) SOFTGPU_OPS_BINARY(BINARY) SOFTGPU_OPS_TERNARY(TERNARY)
		SOFTGPU_OPS_COMPARE(COMPARE) SOFTGPU_OPS_COMPARE(COMPARE_BRANCH)
			SOFTGPU_OPS_OTHER(OTHER)
};

const char *op_signature(unsigned int op)
{
	return signatures[op];
}

static const char *const names[_OP_N] = {
#define NAME(_name, ...) [OP_##_name] = #_name,
#define NAME_BRANCH(_name, ...) [OP_##_name##_BRA] = #_name,
	SOFTGPU_OPS_UNARY(NAME) SOFTGPU_OPS_BINARY(NAME) SOFTGPU_OPS_TERNARY(NAME)
		SOFTGPU_OPS_COMPARE(NAME) SOFTGPU_OPS_COMPARE(NAME_BRANCH)
			SOFTGPU_OPS_OTHER(NAME)
};

const char *op_name(unsigned int op)
{
	return names[op];
}

static bool fits(const struct value *v, char kind)
{
	switch (kind) {
	case 'w':
	case 'W':
		return v->class == CLASS_32;
	case 'x':
	case 'X':
		return v->class == CLASS_64;
	case 'p':
		return v->class == CLASS_PRED;
	default:
		return v->class == CLASS_PRED && v->slot != PRED_TRUE;
	}
}

/* Returns: the operand as the instruction holds it; the first misfit raises an error. */
static uint16_t operand(
	struct lowering *l, const struct operation *o, unsigned int i, char kind)
{
	uint32_t value = o->field[i] & ~VALUE_NEGATED;
	bool negated = o->field[i] & VALUE_NEGATED;
	const struct value *v = &l->values[value];
	bool writes = kind == 'W' || kind == 'X' || kind == 'P';

	if (!value || !fits(v, kind) || (negated && kind != 'p') ||
		(writes && (v->kind == VALUE_CONSTANT || v->kind == VALUE_SREG)) ||
		v->slot >= (v->class == CLASS_PRED ? l->n_preds : l->n_slots)) {
		lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
			"line %u: the operands do not fit (%s, operand %u)", o->line,
			op_name(o->op), i);
		return 0;
	}
	return (uint16_t)(v->slot | (negated ? PRED_NEGATED : 0));
}

static void emit_insn(struct lowering *l, const struct operation *o, struct insn *insn,
	uint32_t at, const insn_fn *handlers)
{
	const char *signature = op_signature(o->op);
	uint16_t field[_FIELD_N] = { 0 };
	const struct value *guard = &l->values[o->guard & ~VALUE_NEGATED];

	for (unsigned int i = 0; i < _FIELD_N; i++)
		if (signature[i] != '-')
			field[i] = operand(l, o, i, signature[i]);
	*insn = (struct insn){
		.fn = handlers[o->op],
		.d = field[FIELD_D],
		.a = field[FIELD_A],
		.b = field[FIELD_B],
		.c = field[FIELD_C],
		.guard = (uint16_t)(guard->slot |
				    (o->guard & VALUE_NEGATED ? PRED_NEGATED : 0)),
		.reserved = o->reserved,
	};
	insn->imm = o->imm;
	if (signature[FIELD_E] != '-')
		insn->e = field[FIELD_E];
	if (signature[FIELD_F] != '-')
		insn->f = field[FIELD_F];
	if (o->op == OP_BRA)
		insn->target = (int32_t)l->labels[o->target] - (int32_t)at;
	else if (o->op == OP_BRX)
		insn->off += (int32_t)l->base[TABLE_TARGETS];
	else if (o->op == OP_CALL || o->op == OP_CALL_POINTER || o->op == OP_SERVE)
		insn->off += (int32_t)l->base[TABLE_CALLS];
}

static uint32_t count_values(const struct lowering *l, enum value_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < l->n_values; i++)
		n += l->values[i].kind == kind && l->values[i].start != UINT32_MAX;
	return n;
}

/* Those of the common subroutines, as this kernel has them. */
static void emit_common_slots(struct lowering *l, struct softgpu_kernel *kernel)
{
	const struct lower_common *c = l->common;

	for (uint32_t i = 0; i < c->n_constants; i++) {
		struct code_constant *to = &kernel->constants[kernel->n_constants++];

		*to = c->constants[i].constant;
		if (c->constants[i].is_shared_end)
			to->bits += l->shared_size;
	}
	for (uint32_t i = 0; i < c->n_sregs; i++)
		kernel->sregs[kernel->n_sregs++] = c->sregs[i];
}

static void emit_fixed_slots(struct lowering *l, struct softgpu_kernel *kernel)
{
	if (l->common)
		emit_common_slots(l, kernel);
	for (uint32_t i = 1; i < l->n_values; i++) {
		const struct value *v = &l->values[i];

		if (v->start == UINT32_MAX)
			continue;
		if (v->kind == VALUE_CONSTANT)
			kernel->constants[kernel->n_constants++] = (struct code_constant){
				.bits = v->bits + (v->is_shared_end ? l->shared_size : 0),
				.slot = (uint16_t)v->slot,
				.wide = v->class == CLASS_64,
				.is_param = v->is_param,
			};
		else if (v->kind == VALUE_SREG)
			kernel->sregs[kernel->n_sregs++] = (struct code_sreg){
				.sreg = v->sreg,
				.number = v->number,
				.slot = (uint16_t)v->slot,
				.wide = v->class == CLASS_64,
			};
	}
}

static int make_fixed_slots(struct lowering *l, struct softgpu_kernel *kernel)
{
	size_t n_constants = count_values(l, VALUE_CONSTANT);
	size_t n_sregs = count_values(l, VALUE_SREG);

	if (l->common) {
		n_constants += l->common->n_constants;
		n_sregs += l->common->n_sregs;
	}
	kernel->constants = calloc(n_constants + 1, sizeof(*kernel->constants));
	kernel->sregs = calloc(n_sregs + 1, sizeof(*kernel->sregs));
	if (!kernel->constants || !kernel->sregs)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	emit_fixed_slots(l, kernel);
	return 0;
}

static int emit_targets(struct lowering *l, struct softgpu_kernel *kernel)
{
	void *base, *room;
	uint32_t *to;
	int r = lower_room(l, TABLE_TARGETS, l->n_tables, &base, &room);

	if (r)
		return r;
	kernel->targets = base;
	to = room;
	for (uint32_t i = 0; i < l->n_tables; i++)
		to[i] = l->base[TABLE_CODE] + l->labels[l->tables[i]];
	return 0;
}

static int emit_code(
	struct lowering *l, struct softgpu_kernel *kernel, const insn_fn *handlers)
{
	void *base, *room;
	struct insn *code;
	uint32_t *lines;
	int r = lower_room(l, TABLE_CODE, l->n_ops + 1, &base, &room);

	if (r)
		return r;
	kernel->code = base;
	kernel->n_code = l->base[TABLE_CODE] + l->n_ops + 1;
	code = room;
	r = lower_room(l, TABLE_LINES, l->n_ops + 1, &base, &room);
	if (r)
		return r;
	kernel->lines = base;
	lines = room;
	for (uint32_t i = 0; i < l->n_ops; i++) {
		emit_insn(l, &l->ops[i], &code[i], i, handlers);
		lines[i] = l->ops[i].line;
	}
	code[l->n_ops] = (struct insn){ .fn = handlers[OP_EXIT] };
	return l->error;
}

int lower_encode(
	struct lowering *l, struct softgpu_kernel *kernel, const insn_fn *handlers)
{
	int r = make_fixed_slots(l, kernel);

	if (!r)
		r = emit_targets(l, kernel);
	if (!r)
		r = emit_code(l, kernel, handlers);
	kernel->n_slots = l->n_slots;
	kernel->n_preds = l->n_preds;
	return r;
}
