/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: calls
 *
 * Arguments and results are .param variables of the caller: they are in its frame, in
 * local memory. There are three kinds of calls.
 *
 * A function that is called directly is inlined: its parameters are those variables of
 * the caller. The exceptions are recursion, code that would get too large, and calls
 * through a pointer. There the callee is a *subroutine*: translated once for the kernel,
 * with a separate frame for each call. Its arguments are copied into the new frame,
 * results back; values that the caller needs afterwards are saved, because the callee
 * uses the same slots (exec/call.c). A pointer may lead to each function of its type
 * whose address the module takes. All subroutines precede the entry function's own code,
 * so that lanes in a call run, and return, before those that wait after the call.
 *
 * Functions of the runtime (printf() and its kind) and of the device runtime (service.c)
 * are operations.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/*
 * Bytes of the variable that is an argument or takes a result. The engine copies them
 * without further checks, so it has to be exactly such a variable.
 */
static uint64_t size_of_place(const struct lowering *l, const struct ptx_operand *o)
{
	const struct frame *f = l->frame;

	if (o->kind != PTX_OPERAND_SYMBOL || o->imm)
		return 0;
	switch (o->symbol) {
	case PTX_SYMBOL_LOCAL:
		return f->body->variables[o->index].size;
	case PTX_SYMBOL_PARAM:
		return f->ptx->params[o->index].size;
	case PTX_SYMBOL_RETURN:
		return f->ptx->returns[o->index].size;
	default:
		return 0;
	}
}

/*
 * @params: what the callee has there; NULL where it looks for itself
 *
 * Returns: the places of the .param variables a call names, or NULL.
 */
static uint32_t *places_of(
	struct lowering *l, unsigned int i, const struct ptx_param *params, uint32_t n)
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
		uint64_t at, size = size_of_place(l, o);

		if (params && lower_is_actual(o)) {
			places[k] = lower_place_of_actual(l, i, k);
			continue;
		}
		if (!size || (params && size < params[k].size) ||
			!lower_symbol_place(l, o, &space, &at, &is_shared_end) ||
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

/* Arguments and results in a subroutine's frame: 16 bytes are enough for any type. */
static uint32_t lay_out(
	const struct ptx_param *params, uint32_t n, uint32_t at, uint32_t *places)
{
	for (uint32_t i = 0; i < n; i++) {
		if (places)
			places[i] = at;
		at += (params[i].size + FRAME_ALIGN - 1) & ~(FRAME_ALIGN - 1);
	}
	return at;
}

static bool is_recursive(const struct lowering *l, uint32_t function)
{
	unsigned int depth = 0;

	for (const struct frame *f = l->frame; f; f = f->caller)
		if (f->function == function || ++depth > LOWER_DEPTH_MAX)
			return true;
	return false;
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

	params = places_of(l, 2, callee->params, callee->n_params);
	returns = params ? places_of(l, 0, callee->returns, callee->n_returns) : NULL;
	if (!returns)
		return l->error;
	frame.param_places = params;
	frame.return_places = returns;
	frame.local_end = caller->local_end;
	frame.base = caller->base;
	if (guard != VALUE_TRUE) {
		/* Lanes whose guard is false go around the body. */
		skip = lower_labels_new(l, 1);
		l->guard = guard ^ VALUE_NEGATED;
		lower_branch(l, skip);
		l->guard = VALUE_TRUE;
	}
	frame.return_label = lower_labels_new(l, 1);
	lower_store_actuals(l, callee->params, callee->n_params);
	r = translate_function(l, &frame);
	if (r)
		return r;
	l->labels[frame.return_label] = l->n_ops;
	l->guard = VALUE_TRUE;
	lower_stack_close(l, &frame);
	lower_store_returns(l, &frame);
	l->frame = caller;
	l->instr = instr;
	l->operands = &caller->body->operands[instr->first_operand];
	lower_load_results(l, callee->returns, callee->n_returns);
	if (skip != PTX_INDEX_NONE)
		l->labels[skip] = l->n_ops;
	l->guard = guard;
	return l->error;
}

/*
 * Subroutines
 */

/* Returns: whether a frame that the engine lays out can hold these. */
static int check_params(struct lowering *l, const struct ptx_param *params, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (params[i].align > FRAME_ALIGN || params[i].size > SOFTGPU_PARAMS_MAX)
			return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
				"%.80s, line %u: a parameter of this kind is not "
				"supported in a recursive or indirect call",
				l->frame->ptx->name, l->instr->line);
	return 0;
}

/* Returns: the subroutine's number; the body is translated later. */
static uint32_t subroutine_of(struct lowering *l, uint32_t function)
{
	const struct ptx_function *f = &l->module->functions[function];
	uint32_t *number = &l->subroutines_of[function];

	if (*number)
		return *number - 1;
	if (check_params(l, f->params, f->n_params) ||
		check_params(l, f->returns, f->n_returns))
		return 0;
	if (lower_reserve(&l->subroutines, &l->subroutines_capacity, l->n_subroutines + 1,
		    sizeof(*l->subroutines))) {
		lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
		return 0;
	}
	l->subroutines[l->n_subroutines] = (struct subroutine){ .function = function };
	*number = ++l->n_subroutines;
	return *number - 1;
}

static void add_move(struct lowering *l, uint32_t from, uint32_t to, uint32_t size)
{
	if (lower_reserve(
		    &l->moves, &l->moves_capacity, l->n_moves + 1, sizeof(*l->moves)))
		lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	else
		l->moves[l->n_moves++] = (struct code_move){ from, to, size };
}

/* The part of a call besides the jump: the same for both kinds of callees. */
static int add_call(struct lowering *l, const struct ptx_param *params, uint32_t n_params,
	const struct ptx_param *returns, uint32_t n_returns, struct code_call *call)
{
	_vgpu_cleanup_(vgpu_freep) uint32_t *from = places_of(l, 2, params, n_params);
	_vgpu_cleanup_(vgpu_freep) uint32_t *to =
		from ? places_of(l, 0, returns, n_returns) : NULL;
	uint32_t at = 0;

	if (!to || check_params(l, params, n_params) ||
		check_params(l, returns, n_returns))
		return l->error;
	lower_store_actuals(l, params, n_params);
	call->frame_end = (l->frame->local_end + FRAME_ALIGN - 1) & ~(FRAME_ALIGN - 1);
	call->first_move = l->n_moves;
	call->n_arguments = n_params;
	call->n_results = n_returns;
	for (uint32_t i = 0; i < n_params; i++) {
		uint32_t place = at;

		at = lay_out(&params[i], 1, at, NULL);
		add_move(l, from[i], place, params[i].size);
	}
	for (uint32_t i = 0; i < n_returns; i++) {
		uint32_t place = at;

		at = lay_out(&returns[i], 1, at, NULL);
		add_move(l, place, to[i], returns[i].size);
	}
	if (lower_reserve(
		    &l->calls, &l->calls_capacity, l->n_calls + 1, sizeof(*l->calls)))
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	l->calls[l->n_calls++] = *call;
	return l->error;
}

static int call_subroutine(struct lowering *l, uint32_t function)
{
	const struct ptx_function *callee = &l->module->functions[function];
	struct code_call call = { .subroutine = subroutine_of(l, function) };
	int r = l->error;

	if (!r)
		l->subroutines[call.subroutine].is_called = true;
	if (!r)
		r = add_call(l, callee->params, callee->n_params, callee->returns,
			callee->n_returns, &call);
	if (!r)
		lower_emit_imm(l, OP_CALL, 0, 0, 0, 0, l->n_calls - 1);
	if (!r)
		lower_load_results(l, callee->returns, callee->n_returns);
	return r ? r : l->error;
}

/* Translates a body: its frame holds arguments, results, and then its own variables. */
static int translate_whole(struct lowering *l, uint32_t number)
{
	uint32_t function = l->subroutines[number].function, end;
	const struct ptx_function *ptx = &l->module->functions[function];
	_vgpu_cleanup_(vgpu_freep) uint32_t *params =
		calloc((size_t)ptx->n_params + 1, sizeof(*params));
	_vgpu_cleanup_(vgpu_freep) uint32_t *returns =
		calloc((size_t)ptx->n_returns + 1, sizeof(*returns));
	struct frame frame = {
		.function = function,
		.ptx = ptx,
		.param_places = params,
		.return_places = returns,
	};
	int r;

	if (!params || !returns)
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	end = lay_out(ptx->params, ptx->n_params, 0, params);
	frame.local_end = lay_out(ptx->returns, ptx->n_returns, end, returns);
	l->subroutines[number].first_op = l->n_ops;
	l->subroutines[number].first_value = l->n_values;
	l->extent = frame.local_end;
	l->subroutine = number + 1;
	l->guard = VALUE_TRUE;
	l->frame = &frame;
	frame.return_label = lower_labels_new(l, 1);
	frame.base = lower_value_new(l, CLASS_64, VALUE_REGISTER);
	lower_emit(l, OP_FRAME, frame.base, 0, 0, 0);
	r = translate_function(l, &frame);
	if (r)
		return r;
	l->labels[frame.return_label] = l->n_ops;
	l->guard = VALUE_TRUE;
	lower_stack_close(l, &frame);
	lower_store_returns(l, &frame);
	lower_emit(l, OP_RETURN, 0, 0, 0, 0);
	return l->error;
}

/* Where what cannot be translated is taken back to; values stay, and are not used. */
struct place {
	uint32_t n_ops, n_labels, n_tables;
};

/*
 * In the place of a function that a pointer may lead to and that cannot be run: most
 * kernels never call it, and those that do end there, with the reason.
 */
static int translate_refusal(
	struct lowering *l, const char *name, const struct place *place)
{
	char text[sizeof(l->messagep->text) + 128], *reason;

	snprintf(text, sizeof(text), "call of %.80s, which cannot be run: %s", name,
		l->messagep->text);
	l->error = 0;
	l->messagep->text[0] = 0;
	l->n_ops = place->n_ops;
	l->n_labels = place->n_labels;
	l->n_tables = place->n_tables;
	reason = strdup(text);
	if (!reason || lower_reserve(&l->refusals, &l->refusals_capacity,
			       l->n_refusals + 1, sizeof(*l->refusals))) {
		free(reason);
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	}
	l->refusals[l->n_refusals++] = reason;
	l->guard = VALUE_TRUE;
	lower_emit_imm(l, OP_REFUSE, 0, 0, 0, 0, l->n_refusals - 1);
	lower_emit(l, OP_RETURN, 0, 0, 0, 0);
	return l->error;
}

static int translate_subroutine(struct lowering *l, uint32_t number)
{
	const struct place place = { l->n_ops, l->n_labels, l->n_tables };
	uint32_t function = l->subroutines[number].function;
	struct subroutine *done;
	int r = translate_whole(l, number);

	l->cache->n_subroutines++;
	if (r && r != SOFTGPU_ERROR_OUT_OF_MEMORY && !l->subroutines[number].is_called)
		r = translate_refusal(l, l->module->functions[function].name, &place);
	if (r)
		return r;
	done = &l->subroutines[number];
	done->end_op = l->n_ops;
	done->end_value = l->n_values;
	done->frame_size = l->extent;
	return 0;
}

/* Puts what comes after the entry function's own @n operations before it. */
static int put_first(struct lowering *l, uint32_t n)
{
	uint32_t rest = l->n_ops - n;
	struct operation *ops = calloc((size_t)l->n_ops + 1, sizeof(*ops));

	if (!ops)
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	memcpy(ops, l->ops + n, rest * sizeof(*ops));
	memcpy(ops + rest, l->ops, n * sizeof(*ops));
	free(l->ops);
	l->ops = ops;
	l->ops_capacity = l->n_ops + 1;
	for (uint32_t i = 0; i < l->n_labels; i++)
		l->labels[i] = l->labels[i] < n ? l->labels[i] + rest : l->labels[i] - n;
	for (uint32_t i = l->first_subroutine; i < l->n_subroutines; i++) {
		l->subroutines[i].first_op -= n;
		l->subroutines[i].end_op -= n;
	}
	l->entry = rest;
	return 0;
}

static int translate_all(struct lowering *l)
{
	int r;

	for (uint32_t i = l->first_subroutine; i < l->n_subroutines && !l->error; i++) {
		r = translate_subroutine(l, i);
		if (r)
			return r;
	}
	return l->error;
}

int lower_wanted(struct lowering *l, uint32_t function)
{
	static const struct ptx_instr nowhere;
	struct frame frame = { .ptx = &l->module->functions[function] };

	/* The name in a refusal of its parameters. */
	l->frame = &frame;
	l->instr = &nowhere;
	subroutine_of(l, function);
	l->frame = NULL;
	return l->error;
}

int lower_wanted_done(struct lowering *l)
{
	int r = translate_all(l);

	l->entry = l->n_ops;
	l->n_entry_values = l->n_values;
	return r;
}

int translate_subroutines(struct lowering *l)
{
	uint32_t n;
	int r;

	if (!l->n_calls)
		return 0;
	/* So that no label of the entry function is after its last operation. */
	l->guard = VALUE_TRUE;
	lower_emit(l, OP_EXIT, 0, 0, 0, 0);
	n = l->n_ops;
	l->n_entry_values = l->n_values;
	r = translate_all(l);
	return r ? r : put_first(l, n);
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
	{ "cudaGraphSetConditional", OP_SET_CONDITION, 2, { PTX_TYPE_B64, PTX_TYPE_B32 },
		PTX_TYPE_NONE, { FIELD_A, FIELD_B } },
};

uint32_t lower_local_address(struct lowering *l, uint32_t place)
{
	uint32_t at = lower_constant(
			 l, CLASS_64, (uint64_t)SOFTGPU_GENERIC_LOCAL + place),
		 t;

	if (!l->frame->base)
		return at;
	t = lower_temporary(l, CLASS_64);
	lower_emit(l, OP_ADD_64, t, l->frame->base, at, 0);
	return t;
}

/* Loads the arguments from where the caller put them, and stores the result. */
static int call_runtime(struct lowering *l, const struct runtime_function *f)
{
	_vgpu_cleanup_(vgpu_freep) uint32_t *params = places_of(l, 2, NULL, f->n_params);
	_vgpu_cleanup_(vgpu_freep) uint32_t *returns =
		params ? places_of(l, 0, NULL, f->result ? 1 : 0) : NULL;
	uint32_t values[5], d = VALUE_NONE;
	struct operation *o;

	if (!returns)
		return l->error;
	for (unsigned int i = 0; i < f->n_params; i++) {
		bool wide = f->params[i] == PTX_TYPE_B64;

		values[i] = lower_temporary(l, lower_class_of(f->params[i]));
		o = lower_emit(l, wide ? OP_LD_64 : OP_LD_32, values[i],
			lower_local_address(l, params[i]), 0, 0);
		o->reserved = wide ? 7 : 3;
	}
	if (f->result)
		d = lower_temporary(l, lower_class_of(f->result));
	o = lower_emit(l, f->op, d, 0, 0, 0);
	for (unsigned int i = 0; i < f->n_params && f->fields[i]; i++)
		o->field[f->fields[i]] = values[i];
	if (f->result)
		lower_emit(l, f->result == PTX_TYPE_B64 ? OP_ST_64 : OP_ST_32, 0,
			lower_local_address(l, returns[0]), d, 0);
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

bool softgpu_has_function(const char *name)
{
	return find_runtime(name) || lower_is_service(name);
}

bool softgpu_is_device_runtime(const char *name)
{
	return !strncmp(name, "__cuda_syscall_", 15) || !strncmp(name, "cnp", 3) ||
	       !strncmp(name, "cudaGraph", 9);
}

/* Arguments and result stay where the caller has them; nothing is saved. */
static int call_service(
	struct lowering *l, uint32_t service, const struct ptx_function *callee)
{
	struct code_call call = { .subroutine = service };
	int r = add_call(l, callee->params, callee->n_params, callee->returns,
		callee->n_returns, &call);

	if (r)
		return r;
	lower_emit_imm(l, OP_SERVE, 0, 0, 0, 0, l->n_calls - 1);
	lower_load_results(l, callee->returns, callee->n_returns);
	return l->error;
}

static bool fits_params(
	const struct ptx_param *a, uint32_t n_a, const struct ptx_param *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (a[i].size != b[i].size)
			return false;
	return true;
}

static bool is_candidate(
	const struct lowering *l, const struct ptx_prototype *proto, uint32_t function)
{
	const struct ptx_function *f = &l->module->functions[function];

	return !f->is_entry && f->is_defined &&
	       fits_params(f->params, f->n_params, proto->params, proto->n_params) &&
	       fits_params(f->returns, f->n_returns, proto->returns, proto->n_returns);
}

/* By function: the subroutine + 1, or 0 where this call must not lead. */
static int add_candidates(
	struct lowering *l, const struct ptx_prototype *proto, struct code_call *call)
{
	uint32_t first = l->n_candidates, n = l->module->n_functions;
	const uint32_t *pointed = lower_pointed(l);

	if (!pointed)
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	if ((uint64_t)first + n > CANDIDATES_MAX ||
		lower_reserve(&l->candidates, &l->candidates_capacity, first + n + 1,
			sizeof(*l->candidates)))
		return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"%.80s: too many calls through pointers", l->frame->ptx->name);
	for (uint32_t i = 0; i < n && !l->error; i++) {
		l->candidates[first + i] = 0;
		if (!pointed[i] || !is_candidate(l, proto, pointed[i] - 1))
			continue;
		if (l->wanted)
			l->wanted[pointed[i] - 1] = l->wants = true;
		else
			l->candidates[first + i] = subroutine_of(l, pointed[i] - 1) + 1;
	}
	call->first_candidate = first;
	call->n_candidates = n;
	l->n_candidates += n;
	return l->error;
}

static int call_indirect(struct lowering *l)
{
	const struct ptx_operand *callee = &l->operands[1], *proto = &l->operands[3];
	const struct ptx_prototype *prototype;
	struct code_call call = {};
	uint32_t pointer;
	int r;

	if (callee->kind != PTX_OPERAND_REG || proto->kind != PTX_OPERAND_PROTOTYPE)
		return lower_unsupported(l);
	prototype = &l->frame->body->prototypes[proto->index];
	r = add_candidates(l, prototype, &call);
	if (!r)
		r = add_call(l, prototype->params, prototype->n_params,
			prototype->returns, prototype->n_returns, &call);
	if (r)
		return r;
	pointer = lower_source(l, 1, PTX_TYPE_B64);
	lower_emit_imm(l, OP_CALL_POINTER, 0, pointer, 0, 0, l->n_calls - 1);
	lower_load_results(l, prototype->returns, prototype->n_returns);
	return l->error;
}

int translate_call(struct lowering *l)
{
	const struct runtime_function *runtime;
	const struct ptx_operand *callee = &l->operands[1];
	const struct ptx_function *function;
	uint32_t service;

	if (callee->kind != PTX_OPERAND_SYMBOL || callee->symbol != PTX_SYMBOL_FUNCTION)
		return call_indirect(l);
	function = &l->module->functions[callee->index];
	runtime = function->is_defined ? NULL : find_runtime(function->name);
	if (runtime)
		return call_runtime(l, runtime);
	service = lower_service_of(function);
	if (service != SERVICE_NONE)
		return call_service(l, service, function);
	if (!function->is_defined)
		return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"%.80s, line %u: calls %.80s, which %s", l->frame->ptx->name,
			l->instr->line, function->name,
			softgpu_is_device_runtime(function->name)
				? "only a GPU's driver has"
				: "is not defined");
	if (l->subroutines_of[callee->index] || l->n_ops > INLINE_OPS_MAX ||
		is_recursive(l, callee->index))
		return call_subroutine(l, callee->index);
	return write_out(l, callee->index);
}
