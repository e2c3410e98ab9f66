/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build: values, operations and operands
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"

int lower_fail(struct lowering *l, int code, const char *format, ...)
{
	va_list ap;

	if (l->error)
		return l->error;
	va_start(ap, format);
	vsnprintf(l->messagep->text, sizeof(l->messagep->text), format, ap);
	va_end(ap);
	l->error = code;
	return code;
}

/* Returns: why the device cannot have an instruction, or NULL. */
static const char *reason_of(const char *name)
{
	static const struct {
		const char *beginning;
		const char *reason;
	} rows[] = {
		{ "multimem.", "the device has no multicast objects" },
		{ "tcgen05.", LOWER_FOR_TENSOR_MEMORY },
		{ "wgmma.", "PTX has it for sm_90a alone" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(name, rows[i].beginning, strlen(rows[i].beginning)))
			return rows[i].reason;
	return NULL;
}

int lower_unsupported(struct lowering *l)
{
	const char *name = ptx_instr_name(l->frame->body, l->instr);
	const char *reason = reason_of(name);

	if (reason)
		return lower_refuse(l, reason);
	return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
		"%.80s, line %u: instruction %.80s is not supported", l->frame->ptx->name,
		l->instr->line, name);
}

int lower_refuse(struct lowering *l, const char *reason)
{
	return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
		"%.80s, line %u: instruction %.80s is not supported: %s",
		l->frame->ptx->name, l->instr->line,
		ptx_instr_name(l->frame->body, l->instr), reason);
}

int lower_reserve(void *arrayp, uint32_t *capacityp, uint32_t need, size_t size)
{
	uint32_t capacity = *capacityp ? *capacityp : 256;
	void *array;

	if (need <= *capacityp)
		return 0;
	while (capacity < need)
		capacity *= 2;
	array = realloc(*(void **)arrayp, capacity * size);
	if (!array)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	*(void **)arrayp = array;
	*capacityp = capacity;
	return 0;
}

/*
 * Values
 */

enum value_class lower_class_of(unsigned int type)
{
	if (type == PTX_TYPE_PRED)
		return CLASS_PRED;
	switch (ptx_type_size(type)) {
	case 1:
	case 2:
	case 4:
		return CLASS_32;
	case 8:
		return CLASS_64;
	default:
		return CLASS_NONE;
	}
}

bool lower_type_is_signed(unsigned int type)
{
	return type >= PTX_TYPE_S8 && type <= PTX_TYPE_S64;
}

uint32_t lower_value_new(struct lowering *l, enum value_class class, enum value_kind kind)
{
	if (l->n_values >= LOWER_VALUES_MAX) {
		lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED, "too many registers");
		return VALUE_NONE;
	}
	if (lower_reserve(&l->values, &l->values_capacity, l->n_values + 1,
		    sizeof(*l->values))) {
		lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
		return VALUE_NONE;
	}
	l->values[l->n_values] = (struct value){
		.class = (uint8_t) class,
		.kind = (uint8_t)kind,
		.start = UINT32_MAX,
	};
	return l->n_values++;
}

uint32_t lower_temporary(struct lowering *l, enum value_class class)
{
	return lower_value_new(l, class, VALUE_TEMPORARY);
}

static uint32_t hash_constant(enum value_class class, uint64_t bits)
{
	uint64_t h = (bits ^ (uint64_t) class << 61) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

/* Doubles the table; value 0 marks a free place. */
static int grow_constants(struct lowering *l)
{
	uint32_t capacity = l->constants_capacity ? l->constants_capacity * 2 : 256;
	uint32_t *table = calloc(capacity, sizeof(*table));

	if (!table)
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	for (uint32_t i = 0; i < l->constants_capacity; i++) {
		uint32_t v = l->constants[i], at;

		if (!v)
			continue;
		at = hash_constant(l->values[v].class, l->values[v].bits);
		while (table[at & (capacity - 1)])
			at++;
		table[at & (capacity - 1)] = v;
	}
	free(l->constants);
	l->constants = table;
	l->constants_capacity = capacity;
	return 0;
}

uint32_t lower_constant(struct lowering *l, enum value_class class, uint64_t bits)
{
	uint32_t at, v;

	if (class == CLASS_PRED)
		return bits ? VALUE_TRUE : VALUE_TRUE | VALUE_NEGATED;
	if (class == CLASS_32)
		bits = (uint32_t)bits;
	if (l->n_constants * 2 >= l->constants_capacity && grow_constants(l))
		return VALUE_NONE;
	at = hash_constant(class, bits);
	while ((v = l->constants[at & (l->constants_capacity - 1)])) {
		if (l->values[v].class == class && l->values[v].bits == bits)
			return v;
		at++;
	}
	v = lower_value_new(l, class, VALUE_CONSTANT);
	if (v) {
		l->values[v].bits = bits;
		l->constants[at & (l->constants_capacity - 1)] = v;
		l->n_constants++;
	}
	return v;
}

static uint32_t sreg_value(struct lowering *l, unsigned int sreg, unsigned int number)
{
	enum value_class class = lower_class_of(ptx_sreg_type(sreg));
	uint32_t v;

	if (class == CLASS_PRED) { /* is_explicit_cluster */
		v = lower_temporary(l, CLASS_PRED);
		lower_emit(l, OP_IS_CLUSTER, v, 0, 0, 0);
		return v;
	}
	/* Found by the same table as constants, under a key that no constant has. */
	v = lower_constant(l, CLASS_NONE, (uint64_t)sreg << 8 | (number & 255));
	if (v && l->values[v].kind == VALUE_CONSTANT) {
		uint32_t twin = lower_value_new(l, class, VALUE_SREG);

		if (!twin)
			return VALUE_NONE;
		l->values[twin].sreg = (uint8_t)sreg;
		l->values[twin].number = (uint8_t)number;
		l->values[v].kind = VALUE_FIXED;
		l->values[v].slot = twin;
	}
	return v ? l->values[v].slot : VALUE_NONE;
}

/*
 * Operations
 */

struct operation *lower_emit(
	struct lowering *l, enum op op, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
	static struct operation nowhere;
	struct operation *o;

	if (l->n_ops >= LOWER_OPS_MAX) {
		lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED, "function too large");
		return &nowhere;
	}
	if (lower_reserve(&l->ops, &l->ops_capacity, l->n_ops + 1, sizeof(*l->ops))) {
		lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
		return &nowhere;
	}
	o = &l->ops[l->n_ops++];
	*o = (struct operation){
		.op = (uint16_t)op,
		.field = { d, a, b, c },
		.guard = l->guard,
		.target = PTX_INDEX_NONE,
		.line = l->instr ? l->instr->line : 0,
	};
	return o;
}

void lower_emit_imm(struct lowering *l, enum op op, uint32_t d, uint32_t a, uint32_t b,
	uint32_t c, uint64_t imm)
{
	lower_emit(l, op, d, a, b, c)->imm = imm;
}

/*
 * Symbols
 */

static uint64_t align_up(uint64_t value, uint32_t alignment)
{
	return alignment ? (value + alignment - 1) & ~(uint64_t)(alignment - 1) : value;
}

static uint32_t place_shared(struct lowering *l, uint64_t size, uint32_t alignment)
{
	uint64_t at = align_up(l->shared_size, alignment);

	if (at + size > SOFTGPU_SHARED_MAX) {
		lower_fail(l, SOFTGPU_ERROR_INVALID_PTX, "%.80s: too much shared memory",
			l->frame->ptx->name);
		return 0;
	}
	if (alignment > l->shared_align)
		l->shared_align = alignment;
	l->shared_size = (uint32_t)(at + size);
	return (uint32_t)at;
}

static uint64_t module_variable(struct lowering *l, uint32_t index, bool *is_shared_endp)
{
	const struct ptx_variable *v = &l->module->variables[index];

	if (v->space != PTX_SPACE_SHARED) {
		if (v->linkage == PTX_LINKAGE_EXTERN)
			lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
				"%.80s, line %u: the external variable %.80s is not "
				"defined",
				l->frame->ptx->name, l->instr->line, v->name);
		return l->addresses[index];
	}
	if (v->unsized || !v->size) {
		*is_shared_endp = true;
		if (v->align > l->shared_align)
			l->shared_align = v->align;
		return 0;
	}
	if (!l->shared_variables[index])
		l->shared_variables[index] = place_shared(l, v->size, v->align) + 1;
	return l->shared_variables[index] - 1;
}

static uint64_t body_variable(struct lowering *l, uint32_t index)
{
	const struct frame *f = l->frame;
	const struct ptx_variable *v = &f->body->variables[index];
	uint32_t *block = &l->shared_blocks[f->function];

	if (v->space == PTX_SPACE_LOCAL)
		return f->local_base + v->offset;
	if (v->space == PTX_SPACE_PARAM)
		return f->param_base + v->offset;
	if (!*block)
		*block = place_shared(l, f->body->shared_size, f->body->shared_align) + 1;
	return *block - 1 + v->offset;
}

/*
 * Parameters of an entry function are in its parameter block, those of an inlined
 * function, and all .param variables, in local memory.
 */
bool lower_symbol_place(struct lowering *l, const struct ptx_operand *operand,
	enum ptx_space *spacep, uint64_t *placep, bool *is_shared_endp)
{
	const struct frame *f = l->frame;

	*is_shared_endp = false;
	switch (operand->symbol) {
	case PTX_SYMBOL_VARIABLE:
		*spacep = l->module->variables[operand->index].space;
		*placep = module_variable(l, operand->index, is_shared_endp);
		break;
	case PTX_SYMBOL_LOCAL:
		*spacep = f->body->variables[operand->index].space;
		*placep = body_variable(l, operand->index);
		if (*spacep == PTX_SPACE_PARAM)
			*spacep = PTX_SPACE_LOCAL;
		break;
	case PTX_SYMBOL_PARAM:
		*spacep = f->param_places ? PTX_SPACE_LOCAL : PTX_SPACE_PARAM;
		*placep = f->param_places ? f->param_places[operand->index]
					  : f->ptx->params[operand->index].offset;
		break;
	case PTX_SYMBOL_RETURN:
		if (!f->return_places)
			return false;
		*spacep = PTX_SPACE_LOCAL;
		*placep = f->return_places[operand->index];
		break;
	case PTX_SYMBOL_FUNCTION:
		*spacep = PTX_SPACE_NONE;
		*placep = FUNCTION_HANDLE_BASE + operand->index;
		break;
	default:
		return false;
	}
	*placep += (uint64_t)operand->imm;
	return true;
}

uint32_t lower_symbol_value(
	struct lowering *l, const struct ptx_operand *operand, enum value_class class)
{
	enum ptx_space space;
	bool is_shared_end;
	uint64_t place;
	uint32_t v, low;

	if (!lower_symbol_place(l, operand, &space, &place, &is_shared_end)) {
		lower_unsupported(l);
		return VALUE_NONE;
	}
	if (space == PTX_SPACE_LOCAL && l->frame->base) {
		v = lower_temporary(l, CLASS_64);
		lower_emit(l, OP_ADD_64, v, l->frame->base,
			lower_constant(l, CLASS_64, place), 0);
		if (class == CLASS_64)
			return v;
		low = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_LOW_64, low, v, 0, 0);
		return low;
	}
	if (!is_shared_end)
		return lower_constant(l, class, place);
	v = lower_value_new(l, class, VALUE_CONSTANT);
	if (v) {
		l->values[v].bits = place;
		l->values[v].is_shared_end = true;
	}
	return v;
}

/*
 * The address of an element in its own space, of 64 bits. The product of the index and
 * the size has 32, whatever the register's type is.
 */
uint32_t lower_element_value(struct lowering *l, const struct ptx_operand *operand)
{
	const struct ptx_operand *parts = &l->frame->body->operands[operand->index];
	uint32_t base = lower_symbol_value(l, &parts[0], CLASS_64);
	uint32_t off = lower_temporary(l, CLASS_32), wide = lower_temporary(l, CLASS_64);
	uint32_t v = lower_temporary(l, CLASS_64);

	lower_emit(l, OP_ADD_32, off, lower_source_of(l, &parts[1], PTX_TYPE_B32),
		lower_constant(l, CLASS_32, (uint64_t)parts[1].imm), 0);
	lower_emit(
		l, OP_MUL_32, off, off, lower_constant(l, CLASS_32, operand->count), 0);
	lower_emit(l, OP_EXT_U32_64, wide, off, 0, 0);
	lower_emit(l, OP_ADD_64, v, base, wide, 0);
	return v;
}

/*
 * Operands
 */

bool lower_has_operand(const struct lowering *l, unsigned int i)
{
	return i < l->instr->n_operands && l->operands[i].kind != PTX_OPERAND_NONE;
}

/* Clocks are read when the instruction runs, all else is known before. */
static uint32_t read_sreg(struct lowering *l, const struct ptx_operand *operand)
{
	enum op op = OP_READ_CLOCK;
	uint32_t wide, d;

	switch (operand->index) {
	case PTX_SREG_GLOBALTIMER:
	case PTX_SREG_GLOBALTIMER_LO:
	case PTX_SREG_GLOBALTIMER_HI:
		op = OP_READ_TIMER;
		break;
	case PTX_SREG_CLOCK:
	case PTX_SREG_CLOCK_HI:
	case PTX_SREG_CLOCK64:
		break;
	default:
		return sreg_value(l, operand->index, (unsigned int)operand->imm);
	}
	wide = lower_temporary(l, CLASS_64);
	lower_emit(l, op, wide, 0, 0, 0);
	if (operand->index == PTX_SREG_GLOBALTIMER || operand->index == PTX_SREG_CLOCK64)
		return wide;
	d = lower_temporary(l, CLASS_32);
	lower_emit(l,
		operand->index == PTX_SREG_CLOCK_HI ||
				operand->index == PTX_SREG_GLOBALTIMER_HI
			? OP_HIGH_64
			: OP_LOW_64,
		d, wide, 0, 0);
	return d;
}

uint32_t lower_source_of(
	struct lowering *l, const struct ptx_operand *operand, unsigned int type)
{
	enum value_class class = lower_class_of(type);
	struct value value;
	uint32_t v, d;

	switch (operand->kind) {
	case PTX_OPERAND_REG:
		v = l->frame->first_register + operand->index;
		if (operand->negated && l->values[v].class == CLASS_PRED)
			return v | VALUE_NEGATED;
		break;
	case PTX_OPERAND_INT:
	case PTX_OPERAND_F32:
	case PTX_OPERAND_F64:
		if (class == CLASS_PRED)
			return lower_constant(
				l, class, (operand->imm != 0) ^ operand->negated);
		return lower_constant(l, class, ptx_operand_bits(operand, type));
	case PTX_OPERAND_SREG:
		v = read_sreg(l, operand);
		break;
	case PTX_OPERAND_SYMBOL:
		return lower_symbol_value(l, operand, class);
	case PTX_OPERAND_ELEMENT:
		v = lower_element_value(l, operand);
		break;
	default:
		lower_unsupported(l);
		return VALUE_NONE;
	}
	/* A special register that is a predicate may be negated, too. */
	value = l->values[v & ~VALUE_NEGATED];
	if (value.class == class && !value.high)
		return v;
	/* The low part of a register that is wider than the type. */
	if (class == CLASS_32 && value.class == CLASS_64 && !value.high) {
		d = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_LOW_64, d, v, 0, 0);
		return d;
	}
	if (class == CLASS_64 && value.class == CLASS_32 &&
		operand->kind == PTX_OPERAND_SREG) {
		d = lower_temporary(l, CLASS_64);
		lower_emit(l, OP_EXT_U32_64, d, v, 0, 0);
		return d;
	}
	lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
		"%.80s, line %u: a register does not fit the type of %.80s",
		l->frame->ptx->name, l->instr->line,
		ptx_instr_name(l->frame->body, l->instr));
	return VALUE_NONE;
}

uint32_t lower_source(struct lowering *l, unsigned int i, unsigned int type)
{
	return lower_source_of(l, &l->operands[i], type);
}

uint32_t lower_predicate(struct lowering *l, unsigned int i)
{
	return lower_source_of(l, &l->operands[i], PTX_TYPE_PRED);
}

static void fail_destination(struct lowering *l)
{
	lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
		"%.80s, line %u: the destination does not fit the type of %.80s",
		l->frame->ptx->name, l->instr->line,
		ptx_instr_name(l->frame->body, l->instr));
}

uint32_t lower_destination_of(
	struct lowering *l, const struct ptx_operand *operand, unsigned int type)
{
	enum value_class class = lower_class_of(type);
	uint32_t v;

	if (operand->kind == PTX_OPERAND_NONE)
		return lower_temporary(l, class);
	if (operand->kind != PTX_OPERAND_REG) {
		lower_unsupported(l);
		return VALUE_NONE;
	}
	v = l->frame->first_register + operand->index;
	if (l->values[v].class == class && !l->values[v].high)
		return v;
	if (l->values[v].class != CLASS_64 || class != CLASS_32 || l->values[v].high) {
		fail_destination(l);
		return VALUE_NONE;
	}
	l->n_unfinished++;
	return lower_temporary(l, class);
}

void lower_finish_of(struct lowering *l, const struct ptx_operand *operand,
	unsigned int type, uint32_t value)
{
	uint32_t v;

	if (operand->kind != PTX_OPERAND_REG || l->error)
		return;
	v = l->frame->first_register + operand->index;
	if (v == value)
		return;
	if (l->values[v].class != CLASS_64 || l->values[value].class != CLASS_32) {
		fail_destination(l);
		return;
	}
	l->n_unfinished--;
	lower_emit(l, lower_type_is_signed(type) ? OP_EXT_S32_64 : OP_EXT_U32_64, v,
		value, 0, 0);
}

/* Bits that were not extended would be lost: the instruction does not allow a wider
 * register. */
void lower_finish_instruction(struct lowering *l)
{
	if (l->n_unfinished && !l->error)
		fail_destination(l);
}

uint32_t lower_destination(struct lowering *l, unsigned int i, unsigned int type)
{
	return lower_destination_of(l, &l->operands[i], type);
}

void lower_finish(struct lowering *l, unsigned int i, unsigned int type, uint32_t value)
{
	lower_finish_of(l, &l->operands[i], type, value);
}
