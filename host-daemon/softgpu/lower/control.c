/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: branches, barriers, calls, instructions among lanes
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

static void branch(struct lowering *l, uint32_t label)
{
	emit(l, OP_BRA, 0, 0, 0, 0)->target = label;
}

static int branch_indexed(struct lowering *l)
{
	const struct ptx_body *body = l->frame->body;
	const struct ptx_branch_table *table;
	uint32_t index = source(l, 0, PTX_TYPE_U32), first = l->n_tables;
	struct operation *o;

	if (l->operands[1].kind != PTX_OPERAND_BRANCH_TABLE)
		return lower_unsupported(l);
	table = &body->branch_tables[l->operands[1].index];
	if (!table->count || table->count > UINT16_MAX ||
		lower_reserve(&l->tables, &l->tables_capacity, first + table->count,
			sizeof(*l->tables)))
		return lower_unsupported(l);
	for (uint32_t i = 0; i < table->count; i++)
		l->tables[first + i] =
			l->frame->first_label + body->branch_targets[table->first + i];
	l->n_tables += table->count;
	o = emit(l, OP_BRX, 0, index, 0, 0);
	o->target = first;
	o->imm = first | (uint64_t)table->count << 32;
	return l->error;
}

static int barrier(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t id, count, p, d;
	struct operation *o;
	bool counted = has_operand(l, 2);

	if (in->mode == PTX_MODE_BAR_WARP_SYNC) {
		uint32_t members = source(l, 1, PTX_TYPE_U32);

		emit(l, OP_WARP_SYNC, 0, 0, 0, 0)->field[FIELD_E] = members;
		return l->error;
	}
	id = source(l, 1, PTX_TYPE_U32);
	count = counted ? source(l, 2, PTX_TYPE_U32) : constant(l, CLASS_32, 0);
	switch (in->mode) {
	case PTX_MODE_BAR_SYNC:
		emit(l, counted ? OP_BAR_SYNC_N : OP_BAR_SYNC, 0, id, counted ? count : 0,
			0);
		return l->error;
	case PTX_MODE_BAR_ARRIVE:
		if (!counted)
			return lower_unsupported(l);
		emit(l, OP_BAR_ARRIVE, 0, id, count, 0);
		return l->error;
	case PTX_MODE_BAR_RED:
		p = predicate(l, 3);
		d = destination(
			l, 0, in->atom == PTX_ATOM_POPC ? PTX_TYPE_U32 : PTX_TYPE_PRED);
		o = emit(l,
			in->atom == PTX_ATOM_POPC  ? OP_BAR_RED_POPC
			: in->atom == PTX_ATOM_AND ? OP_BAR_RED_AND
						   : OP_BAR_RED_OR,
			d, id, count, p);
		o->reserved = in->atom == PTX_ATOM_POPC	 ? RED_POPC
			      : in->atom == PTX_ATOM_AND ? RED_AND
							 : RED_OR;
		return l->error;
	default:
		return lower_unsupported(l);
	}
}

int translate_control(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_BRA:
		branch(l, l->frame->first_label + l->operands[0].index);
		return l->error;
	case PTX_OP_BRX:
		return branch_indexed(l);
	case PTX_OP_RET:
		if (l->frame->return_label == PTX_INDEX_NONE)
			emit(l, OP_EXIT, 0, 0, 0, 0);
		else
			branch(l, l->frame->return_label);
		return l->error;
	case PTX_OP_EXIT:
		emit(l, OP_EXIT, 0, 0, 0, 0);
		return l->error;
	case PTX_OP_TRAP:
	case PTX_OP_BRKPT:
		emit(l, OP_TRAP, 0, 0, 0, 0);
		return l->error;
	case PTX_OP_NANOSLEEP:
		emit(l, OP_NANOSLEEP, 0, 0, 0, 0);
		return l->error;
	default:
		return barrier(l);
	}
}

/*
 * Among lanes
 */

/* The forms without .sync take whoever is there, which a set of 0 stands for. */
static uint32_t members(struct lowering *l, unsigned int i)
{
	return l->instr->flags & PTX_FLAG_SYNC ? source(l, i, PTX_TYPE_B32)
					       : constant(l, CLASS_32, 0);
}

static int shuffle(struct lowering *l)
{
	uint32_t a = source(l, 2, PTX_TYPE_B32), b = source(l, 3, PTX_TYPE_B32);
	uint32_t c = source(l, 4, PTX_TYPE_B32), e = members(l, 5);
	uint32_t d = destination(l, 0, PTX_TYPE_B32),
		 f = destination(l, 1, PTX_TYPE_PRED);
	unsigned int mode = l->instr->mode;
	struct operation *o;

	if (mode < PTX_MODE_SHFL_UP || mode > PTX_MODE_SHFL_IDX ||
		l->instr->types[0] != PTX_TYPE_B32)
		return lower_unsupported(l);
	o = emit(l, OP_SHFL_UP + mode - PTX_MODE_SHFL_UP, d, a, b, c);
	o->field[FIELD_E] = e;
	o->field[FIELD_F] = f;
	return l->error;
}

static int vote(struct lowering *l)
{
	bool ballot = l->instr->mode == PTX_MODE_BALLOT;
	uint32_t p = predicate(l, 1), e = members(l, 2);
	uint32_t d = destination(l, 0, ballot ? PTX_TYPE_B32 : PTX_TYPE_PRED);
	enum op op = ballot			      ? OP_VOTE_BALLOT
		     : l->instr->mode == PTX_MODE_ALL ? OP_VOTE_ALL
		     : l->instr->mode == PTX_MODE_ANY ? OP_VOTE_ANY
						      : OP_VOTE_UNI;

	emit(l, op, d, 0, p, 0)->field[FIELD_E] = e;
	return l->error;
}

static int match(struct lowering *l)
{
	unsigned int type = l->instr->types[0];
	bool wide = class_of(type) == CLASS_64, all = l->instr->mode == PTX_MODE_ALL;
	uint32_t a = source(l, 2, type), e = members(l, 3);
	uint32_t d = destination(l, 0, PTX_TYPE_B32), f = VALUE_NONE;
	struct operation *o;

	if (all)
		f = destination(l, 1, PTX_TYPE_PRED);
	o = emit(l,
		all ? (wide ? OP_MATCH_ALL_64 : OP_MATCH_ALL_32)
		    : (wide ? OP_MATCH_ANY_64 : OP_MATCH_ANY_32),
		d, a, 0, 0);
	o->field[FIELD_E] = e;
	o->field[FIELD_F] = f;
	return l->error;
}

static unsigned int redux_operation(unsigned int atom, unsigned int type)
{
	bool is_signed = type_is_signed(type);

	if (class_of(type) != CLASS_32 || type == PTX_TYPE_F32)
		return 0;
	switch (atom) {
	case PTX_ATOM_ADD:
		return OP_REDUX_ADD;
	case PTX_ATOM_MIN:
		return is_signed ? OP_REDUX_MIN_S32 : OP_REDUX_MIN_U32;
	case PTX_ATOM_MAX:
		return is_signed ? OP_REDUX_MAX_S32 : OP_REDUX_MAX_U32;
	case PTX_ATOM_AND:
		return OP_REDUX_AND;
	case PTX_ATOM_OR:
		return OP_REDUX_OR;
	case PTX_ATOM_XOR:
		return OP_REDUX_XOR;
	default:
		return 0;
	}
}

static int redux(struct lowering *l)
{
	unsigned int type = l->instr->types[0];
	unsigned int op = redux_operation(l->instr->atom, type);
	uint32_t a, e, d;

	if (!op)
		return lower_unsupported(l);
	a = source(l, 1, type);
	e = members(l, 2);
	d = destination(l, 0, type);
	emit(l, op, d, a, 0, 0)->field[FIELD_E] = e;
	return l->error;
}

int translate_warp(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_SHFL:
		return shuffle(l);
	case PTX_OP_VOTE:
		return vote(l);
	case PTX_OP_MATCH:
		return match(l);
	case PTX_OP_REDUX:
		return redux(l);
	default:
		emit(l, OP_ACTIVEMASK, destination(l, 0, PTX_TYPE_B32), 0, 0, 0);
		return l->error;
	}
}

/*
 * Calls
 *
 * The body of the callee is written out in place. Arguments and results are .param
 * variables of the caller: they lie in local memory, and the callee's parameters are
 * those very places.
 */

/* Returns: the places of the .param variables a call names, or NULL. */
static uint32_t *places_of(struct lowering *l, unsigned int i, uint32_t n)
{
	const struct ptx_operand *list = &l->operands[i];
	_vgpu_cleanup_(vgpu_freep) uint32_t *places = calloc(n + 1, sizeof(*places));
	uint32_t *r = NULL;

	if (!places) {
		lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
		return NULL;
	}
	if ((list->kind == PTX_OPERAND_VECTOR ? list->count : 0) != n) {
		lower_unsupported(l);
		return NULL;
	}
	for (uint32_t k = 0; k < n; k++) {
		const struct ptx_operand *o = &l->frame->body->operands[list->index + k];
		enum ptx_space space;
		bool is_shared_end;
		uint64_t at;

		if (o->kind != PTX_OPERAND_SYMBOL ||
			!symbol_place(l, o, &space, &at, &is_shared_end) ||
			space != PTX_SPACE_LOCAL) {
			lower_unsupported(l);
			return NULL;
		}
		places[k] = (uint32_t)at;
	}
	r = places;
	places = NULL;
	return r;
}

static bool is_recursive(const struct lowering *l, uint32_t function)
{
	unsigned int depth = 0;

	for (const struct frame *f = l->frame; f; f = f->caller)
		if (f->function == function || ++depth > LOWER_DEPTH_MAX)
			return true;
	return false;
}

static int check_recursion(struct lowering *l, uint32_t function)
{
	if (!is_recursive(l, function))
		return 0;
	return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
		"%.80s, line %u: recursive calls are not supported", l->frame->ptx->name,
		l->instr->line);
}

static int write_out(struct lowering *l, uint32_t function)
{
	const struct ptx_function *callee = &l->module->functions[function];
	const struct frame *caller = l->frame;
	const struct ptx_instr *instr = l->instr;
	_vgpu_cleanup_(vgpu_freep) uint32_t *params = NULL;
	_vgpu_cleanup_(vgpu_freep) uint32_t *returns = NULL;
	struct frame frame = { .caller = caller, .function = function, .ptx = callee };
	uint32_t skip = PTX_INDEX_NONE, guard = l->guard;
	int r;

	params = places_of(l, 2, callee->n_params);
	returns = params ? places_of(l, 0, callee->n_returns) : NULL;
	if (!returns)
		return l->error;
	frame.param_places = params;
	frame.return_places = returns;
	frame.local_end = caller->local_end;
	if (guard != VALUE_TRUE) {
		/* Lanes whose guard is false go around the body. */
		skip = new_labels(l, 1);
		l->guard = guard ^ VALUE_NEGATED;
		branch(l, skip);
		l->guard = VALUE_TRUE;
	}
	frame.return_label = new_labels(l, 1);
	r = translate_function(l, &frame);
	if (r)
		return r;
	l->labels[frame.return_label] = l->n_ops;
	if (skip != PTX_INDEX_NONE)
		l->labels[skip] = l->n_ops;
	l->frame = caller;
	l->instr = instr;
	l->operands = &caller->body->operands[instr->first_operand];
	l->guard = guard;
	return l->error;
}

/*
 * Functions of the runtime: argument types, the result's type, the operation and the
 * fields its arguments go to.
 */
struct runtime_function {
	const char *name;
	uint16_t op;
	uint8_t n_params;
	uint8_t params[5]; /* enum ptx_type */
	uint8_t result;
	uint8_t fields[5];
};

static const struct runtime_function runtime_functions[] = {
	{ "vprintf", OP_VPRINTF, 2, { PTX_TYPE_B64, PTX_TYPE_B64 }, PTX_TYPE_B32,
		{ FIELD_A, FIELD_B } },
	{ "__assertfail", OP_ASSERT_FAIL, 5,
		{ PTX_TYPE_B64, PTX_TYPE_B64, PTX_TYPE_B32, PTX_TYPE_B64, PTX_TYPE_B64 },
		PTX_TYPE_NONE, { FIELD_A, FIELD_B, FIELD_C, FIELD_E } },
	{ "malloc", OP_MALLOC, 1, { PTX_TYPE_B64 }, PTX_TYPE_B64, { FIELD_A } },
	{ "free", OP_FREE, 1, { PTX_TYPE_B64 }, PTX_TYPE_NONE, { FIELD_A } },
};

static uint32_t local_address(struct lowering *l, uint32_t place)
{
	return constant(l, CLASS_64, (uint64_t)SOFTGPU_GENERIC_LOCAL + place);
}

/* Loads the arguments from where the caller put them, and stores the result. */
static int call_runtime(struct lowering *l, const struct runtime_function *f)
{
	_vgpu_cleanup_(vgpu_freep) uint32_t *params = places_of(l, 2, f->n_params);
	_vgpu_cleanup_(vgpu_freep) uint32_t *returns =
		params ? places_of(l, 0, f->result ? 1 : 0) : NULL;
	uint32_t values[5], d = VALUE_NONE;
	struct operation *o;

	if (!returns)
		return l->error;
	for (unsigned int i = 0; i < f->n_params; i++) {
		bool wide = f->params[i] == PTX_TYPE_B64;

		values[i] = temporary(l, class_of(f->params[i]));
		o = emit(l, wide ? OP_LD_64 : OP_LD_32, values[i],
			local_address(l, params[i]), 0, 0);
		o->reserved = wide ? 7 : 3;
	}
	if (f->result)
		d = temporary(l, class_of(f->result));
	o = emit(l, f->op, d, 0, 0, 0);
	for (unsigned int i = 0; i < f->n_params && f->fields[i]; i++)
		o->field[f->fields[i]] = values[i];
	if (f->result)
		emit(l, f->result == PTX_TYPE_B64 ? OP_ST_64 : OP_ST_32, 0,
			local_address(l, returns[0]), d, 0);
	return l->error;
}

static const struct runtime_function *find_runtime(const char *name)
{
	for (size_t i = 0; i < sizeof(runtime_functions) / sizeof(runtime_functions[0]);
		i++)
		if (!strcmp(runtime_functions[i].name, name))
			return &runtime_functions[i];
	return NULL;
}

static bool fits_params(
	const struct ptx_param *a, uint32_t n_a, const struct ptx_param *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (a[i].size != b[i].size || a[i].is_register || b[i].is_register)
			return false;
	return true;
}

static bool is_candidate(
	const struct lowering *l, const struct ptx_prototype *proto, uint32_t function)
{
	const struct ptx_function *f = &l->module->functions[function];

	return !f->is_entry && f->is_defined && !is_recursive(l, function) &&
	       fits_params(f->params, f->n_params, proto->params, proto->n_params) &&
	       fits_params(f->returns, f->n_returns, proto->returns, proto->n_returns);
}

/*
 * A call through a pointer: each function it could lead to is written out behind a
 * comparison. A function that calls back to itself this way finds no place: 718.
 */
static int call_indirect(struct lowering *l)
{
	const struct ptx_operand *callee = &l->operands[1], *proto = &l->operands[3];
	uint32_t guard = l->guard, pointer, end, next, here, n = 0;
	const struct ptx_prototype *prototype;
	int r;

	if (callee->kind != PTX_OPERAND_REG || proto->kind != PTX_OPERAND_PROTOTYPE)
		return lower_unsupported(l);
	prototype = &l->frame->body->prototypes[proto->index];
	pointer = source(l, 1, PTX_TYPE_B64);
	end = new_labels(l, 1);
	here = new_value(l, CLASS_PRED, VALUE_REGISTER);
	if (guard != VALUE_TRUE) {
		l->guard = guard ^ VALUE_NEGATED;
		branch(l, end);
	}
	l->guard = VALUE_TRUE;
	for (uint32_t i = 0; i < l->module->n_functions && !l->error; i++) {
		if (!is_candidate(l, prototype, i))
			continue;
		if (++n > CANDIDATES_MAX)
			return lower_unsupported(l);
		next = new_labels(l, 1);
		emit(l, OP_EQ_U64, here, pointer,
			constant(l, CLASS_64, FUNCTION_HANDLE_BASE + i), 0);
		l->guard = here | VALUE_NEGATED;
		branch(l, next);
		l->guard = VALUE_TRUE;
		r = write_out(l, i);
		if (r)
			return r;
		branch(l, end);
		l->labels[next] = l->n_ops;
	}
	emit(l, OP_BAD_CALL, 0, pointer, 0, 0);
	l->labels[end] = l->n_ops;
	return l->error;
}

int translate_call(struct lowering *l)
{
	const struct runtime_function *runtime;
	const struct ptx_operand *callee = &l->operands[1];
	int r;

	if (callee->kind != PTX_OPERAND_SYMBOL || callee->symbol != PTX_SYMBOL_FUNCTION)
		return call_indirect(l);
	runtime = find_runtime(l->module->functions[callee->index].name);
	if (runtime && !l->module->functions[callee->index].is_defined)
		return call_runtime(l, runtime);
	if (!l->module->functions[callee->index].is_defined)
		return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"%.80s, line %u: calls %.80s, which is not defined",
			l->frame->ptx->name, l->instr->line,
			l->module->functions[callee->index].name);
	r = check_recursion(l, callee->index);
	return r ? r : write_out(l, callee->index);
}
