/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: parameters in registers
 *
 * Functions may have registers for parameters and results, and calls may name registers
 * and numbers where the function has variables. Between the two the values are in local
 * memory, as variables are: the caller's frame has room for the parameters of one call in
 * registers, where the caller stores and loads them, and so does the callee at its
 * beginning and its end. A parameter that is a register on both sides is copied twice;
 * compilers do not generate such code, people write it.
 */

#include "lower/lower.h"

#define ACTUAL_SIZE 64u /* of one: eight elements of eight bytes */

bool lower_is_actual(const struct ptx_operand *operand)
{
	return operand->kind != PTX_OPERAND_SYMBOL;
}

static uint32_t count(const struct ptx_operand *list)
{
	return list->kind == PTX_OPERAND_VECTOR ? list->count : 0;
}

/* Returns: bytes that the call with the most of them needs. */
uint32_t lower_actuals_size(const struct ptx_body *body)
{
	const struct ptx_operand *operands, *list;
	uint32_t most = 0, n;

	for (uint32_t i = 0; i < body->n_instrs; i++) {
		if (body->instrs[i].op != PTX_OP_CALL)
			continue;
		operands = &body->operands[body->instrs[i].first_operand];
		n = 0;
		for (unsigned int k = 0; k < 4; k += 2) {
			list = &operands[k];
			for (uint32_t at = 0; at < count(list); at++)
				n += lower_is_actual(&body->operands[list->index + at]);
		}
		most = n > most ? n : most;
	}
	return most * ACTUAL_SIZE;
}

/* The address of the result (0) or argument (2) of that number. */
uint32_t lower_place_of_actual(const struct lowering *l, unsigned int i, uint32_t number)
{
	const struct ptx_operand *operands = l->frame->body->operands;
	uint32_t n = 0;

	for (unsigned int k = 0; k <= i; k += 2) {
		const struct ptx_operand *list = &l->operands[k];
		uint32_t end = k == i ? number : count(list);

		for (uint32_t at = 0; at < end; at++)
			n += lower_is_actual(&operands[list->index + at]);
	}
	return l->frame->actual_base + n * ACTUAL_SIZE;
}

/*
 * One value of a type in local memory; of a predicate a byte
 */

static enum op store_of(unsigned int type)
{
	switch (ptx_type_size(type)) {
	case 1:
		return OP_ST_U8;
	case 2:
		return OP_ST_U16;
	case 4:
		return OP_ST_32;
	default:
		return OP_ST_64;
	}
}

static enum op load_of(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_S8:
		return OP_LD_S8;
	case PTX_TYPE_S16:
		return OP_LD_S16;
	default:
		break;
	}
	switch (ptx_type_size(type)) {
	case 1:
		return OP_LD_U8;
	case 2:
		return OP_LD_U16;
	case 4:
		return OP_LD_32;
	default:
		return OP_LD_64;
	}
}

static void store_value(
	struct lowering *l, unsigned int type, uint32_t place, uint32_t value)
{
	uint32_t t;

	if (type == PTX_TYPE_B128) {
		lower_emit(l, OP_ST_64, 0, lower_local_address(l, place + 8),
			l->values[value].high, 0);
	} else if (type == PTX_TYPE_PRED) {
		t = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_SELP_32, t, lower_constant(l, CLASS_32, 1),
			lower_constant(l, CLASS_32, 0), value);
		value = t;
	}
	lower_emit(l, store_of(type), 0, lower_local_address(l, place), value, 0);
}

static void load_value(
	struct lowering *l, unsigned int type, uint32_t place, uint32_t value)
{
	uint32_t t;

	if (type == PTX_TYPE_B128)
		lower_emit(l, OP_LD_64, l->values[value].high,
			lower_local_address(l, place + 8), 0, 0);
	if (type != PTX_TYPE_PRED) {
		lower_emit(l, load_of(type), value, lower_local_address(l, place), 0, 0);
		return;
	}
	t = lower_temporary(l, CLASS_32);
	lower_emit(l, OP_LD_U8, t, lower_local_address(l, place), 0, 0);
	lower_emit_imm(l, OP_EQ_U32, value, t, lower_constant(l, CLASS_32, 0), 0, 1);
}

/* Returns: the elements of an actual parameter; how many, and of what size, fit. */
static const struct ptx_operand *elements_of(struct lowering *l,
	const struct ptx_operand *actual, const struct ptx_param *param)
{
	uint32_t n = actual->kind == PTX_OPERAND_VECTOR ? actual->count : 1;

	if (n * ptx_type_size(param->type) != param->size || param->size > ACTUAL_SIZE ||
		(lower_class_of(param->type) == CLASS_NONE &&
			param->type != PTX_TYPE_B128)) {
		lower_unsupported(l);
		return NULL;
	}
	return actual->kind == PTX_OPERAND_VECTOR
		       ? &l->frame->body->operands[actual->index]
		       : actual;
}

/* Of 128 bits the register itself, which knows its other half. */
static uint32_t actual_value(
	struct lowering *l, const struct ptx_operand *operand, unsigned int type)
{
	uint32_t halves[2];

	if (type != PTX_TYPE_B128)
		return lower_source_of(l, operand, type);
	if (operand->kind == PTX_OPERAND_NONE)
		lower_unsupported(l);
	return lower_wide_of(l, operand, halves) ? VALUE_NONE : halves[0];
}

void lower_store_actuals(struct lowering *l, const struct ptx_param *params, uint32_t n)
{
	for (uint32_t i = 0; i < n && !l->error; i++) {
		const struct ptx_operand *actual =
			&l->frame->body->operands[l->operands[2].index + i];
		uint32_t size = ptx_type_size(params[i].type);
		const struct ptx_operand *elements;

		if (!lower_is_actual(actual))
			continue;
		elements = elements_of(l, actual, &params[i]);
		for (uint32_t k = 0; elements && k < params[i].size / size; k++)
			store_value(l, params[i].type,
				lower_place_of_actual(l, 2, i) + k * size,
				actual_value(l, &elements[k], params[i].type));
	}
}

void lower_load_results(struct lowering *l, const struct ptx_param *params, uint32_t n)
{
	for (uint32_t i = 0; i < n && !l->error; i++) {
		const struct ptx_operand *actual =
			&l->frame->body->operands[l->operands[0].index + i];
		uint32_t size = ptx_type_size(params[i].type), type = params[i].type, d;
		const struct ptx_operand *elements;

		if (!lower_is_actual(actual) || actual->kind == PTX_OPERAND_NONE)
			continue;
		elements = elements_of(l, actual, &params[i]);
		for (uint32_t k = 0; elements && k < params[i].size / size; k++) {
			if (type == PTX_TYPE_B128) {
				d = actual_value(l, &elements[k], type);
				load_value(l, type,
					lower_place_of_actual(l, 0, i) + k * size, d);
				continue;
			}
			d = lower_destination_of(l, &elements[k], type);
			load_value(l, type, lower_place_of_actual(l, 0, i) + k * size, d);
			lower_finish_of(l, &elements[k], type, d);
		}
	}
}

/* At the beginning of a function: its registers get what the caller left. */
void lower_load_formals(struct lowering *l)
{
	const struct frame *f = l->frame;

	for (uint32_t i = 0; i < f->ptx->n_params; i++) {
		const struct ptx_param *p = &f->ptx->params[i];
		uint32_t size = ptx_type_size(p->type);

		if (p->is_register && !f->param_places)
			lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
				"%.80s: a kernel's parameter is a register",
				f->ptx->name);

		for (uint32_t k = 0; p->is_register && !l->error && k < p->vector; k++)
			load_value(l, p->type, f->param_places[i] + k * size,
				f->first_register + p->reg + k);
	}
}

void lower_store_returns(struct lowering *l, const struct frame *frame)
{
	l->frame = frame;
	for (uint32_t i = 0; i < frame->ptx->n_returns && frame->return_places; i++) {
		const struct ptx_param *p = &frame->ptx->returns[i];
		uint32_t size = ptx_type_size(p->type);

		for (uint32_t k = 0; p->is_register && k < p->vector; k++)
			store_value(l, p->type, frame->return_places[i] + k * size,
				frame->first_register + p->reg + k);
	}
}
