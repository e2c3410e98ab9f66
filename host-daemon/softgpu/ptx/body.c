/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: the body of a function
 *
 * Braces open scopes. Names of registers and variables end with their scope; labels are
 * kept with the number of their scope, because a branch may precede the label, and are
 * looked up from the branch's scope outwards when the body ends. Registers get their
 * numbers when they are first used: a declaration of thousands, of which a body uses ten,
 * makes ten.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"

#include "ptx/parser.h"

#define SCOPES_MAX (1u << 18) /* a call sequence has one */

static int define(struct ptx_body_parser *b, const struct ptx_token *token,
	const struct ptx_name *values)
{
	struct ptx_name entry = *values;
	uint32_t at;

	entry.text = token->text;
	entry.size = token->size;
	at = ptx_names_find(b->names, token->text, token->size, entry.space);
	if (at > b->names_mark[b->depth - 1])
		return ptx_fail_at(&b->p, PTX_E_INVALID, token->line,
			"\"%.*s\" is declared twice", PTX_SHOWN(token));
	return ptx_names_add(b->names, &entry);
}

/*
 * Scopes
 */

static int open_scope(struct ptx_body_parser *b)
{
	uint32_t *parent;

	if (b->depth == PTX_NESTING_MAX)
		return ptx_fail(&b->p, "scopes nested deeper than %u", PTX_NESTING_MAX);
	if (b->scopes.n == SCOPES_MAX)
		return ptx_fail(&b->p, "more than %u scopes", SCOPES_MAX);
	parent = ptx_array_push(&b->scopes, 1, sizeof(*parent));
	if (!parent)
		return vgpu_error_origin(-ENOMEM);
	*parent = b->depth ? ptx_scope(b) : PTX_INDEX_NONE;
	b->scope_stack[b->depth] = b->scopes.n - 1;
	b->names_mark[b->depth] = ptx_names_count(b->names);
	b->depth++;
	ptx_next(&b->p);
	return 0;
}

static void close_scope(struct ptx_body_parser *b)
{
	b->depth--;
	ptx_names_cut(b->names, b->names_mark[b->depth]);
	/* after the last brace of the body the text belongs to the module again */
	if (b->depth)
		ptx_next(&b->p);
}

/*
 * Labels
 */

static int define_label(struct ptx_body_parser *b, const struct ptx_token *token)
{
	struct ptx_name entry = {
		.text = token->text,
		.size = token->size,
		.space = ptx_scope(b),
		.index = b->label_at.n,
	};
	uint32_t *slot;

	if (ptx_names_find(b->labels, token->text, token->size, entry.space))
		return ptx_fail_at(&b->p, PTX_E_INVALID, token->line,
			"the label \"%.*s\" is defined twice", PTX_SHOWN(token));
	if (b->label_at.n == PTX_LABELS_MAX)
		return ptx_fail(&b->p, "more than %u labels", PTX_LABELS_MAX);
	slot = ptx_array_push(&b->label_at, 1, sizeof(*slot));
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	*slot = b->instrs.n;
	return ptx_names_add(b->labels, &entry);
}

int ptx_note_label(struct ptx_body_parser *b, const struct ptx_token *name,
	uint32_t operand, bool is_table)
{
	struct ptx_label_ref *ref = ptx_array_push(&b->label_refs, 1, sizeof(*ref));

	if (!ref)
		return vgpu_error_origin(-ENOMEM);
	*ref = (struct ptx_label_ref){
		.name = *name,
		.scope = ptx_scope(b),
		.operand = operand,
		.is_table = is_table,
	};
	return 0;
}

static int resolve_label(struct ptx_body_parser *b, const struct ptx_label_ref *ref)
{
	const uint32_t *parents = b->scopes.items;
	uint32_t at = 0, label;

	for (uint32_t scope = ref->scope; !at && scope != PTX_INDEX_NONE;
		scope = parents[scope])
		at = ptx_names_find(b->labels, ref->name.text, ref->name.size, scope);
	if (!at)
		return ptx_fail_at(&b->p, PTX_E_INVALID, ref->name.line,
			"there is no label \"%.*s\"", PTX_SHOWN(&ref->name));
	label = ptx_names_at(b->labels, at - 1)->index;
	if (ref->is_table)
		((uint32_t *)b->branch_targets.items)[ref->operand] = label;
	else
		((struct ptx_operand *)b->operands.items)[ref->operand].index = label;
	return 0;
}

static int resolve_labels(struct ptx_body_parser *b)
{
	const struct ptx_label_ref *refs = b->label_refs.items;
	int r = 0;

	for (uint32_t i = 0; !r && i < b->label_refs.n; i++)
		r = resolve_label(b, &refs[i]);
	return r;
}

/* `name: .branchtargets a, b;` */
static int parse_branch_targets(struct ptx_body_parser *b, const struct ptx_token *name)
{
	struct ptx_name entry = { .kind = PTX_NAME_BRANCH_TABLE,
		.index = b->branch_tables.n };
	struct ptx_branch_table *table;
	struct ptx_token label;
	int r;

	table = ptx_array_push(&b->branch_tables, 1, sizeof(*table));
	if (!table)
		return vgpu_error_origin(-ENOMEM);
	table->first = b->branch_targets.n;
	do {
		ptx_next(&b->p);
		r = ptx_expect_name(&b->p, &label);
		if (r)
			return r;
		if (b->branch_targets.n == PTX_LABELS_MAX)
			return ptx_fail(
				&b->p, "more than %u branch targets", PTX_LABELS_MAX);
		if (!ptx_array_push(&b->branch_targets, 1, sizeof(uint32_t)))
			return vgpu_error_origin(-ENOMEM);
		r = ptx_note_label(b, &label, b->branch_targets.n - 1, true);
		if (r)
			return r;
		table->count++;
	} while (b->p.token.kind == ',');
	r = define(b, name, &entry);
	return r ? r : ptx_expect(&b->p, ';');
}

/* `name: .callprototype (returns) _ (params);` */
static int parse_prototype(struct ptx_body_parser *b, const struct ptx_token *name)
{
	struct ptx_name entry = { .kind = PTX_NAME_PROTOTYPE, .index = b->prototypes.n };
	struct ptx_prototype *prototype;
	struct ptx_parser *p = &b->p;
	struct ptx_token unused;
	int r = 0;

	ptx_next(p);
	if (b->prototypes.n == PTX_LABELS_MAX)
		return ptx_fail(p, "more than %u prototypes", PTX_LABELS_MAX);
	prototype = ptx_array_push(&b->prototypes, 1, sizeof(*prototype));
	if (!prototype)
		return vgpu_error_origin(-ENOMEM);
	if (p->token.kind == '(')
		r = ptx_parse_params(p, &prototype->returns, &prototype->n_returns,
			&prototype->returns_size);
	if (!r)
		r = ptx_expect_name(p, &unused);
	if (!r && p->token.kind == '(')
		r = ptx_parse_params(p, &prototype->params, &prototype->n_params,
			&prototype->params_size);
	if (!r)
		r = define(b, name, &entry);
	/* .noreturn and .abi_preserve may follow */
	return r ? r : ptx_skip_statement(p);
}

/*
 * `name: .calltargets f, g;`: all have the type of the first. The others are skipped.
 */
static int parse_call_targets(struct ptx_body_parser *b, const struct ptx_token *name)
{
	struct ptx_name entry = { .kind = PTX_NAME_PROTOTYPE, .index = b->prototypes.n };
	const struct ptx_module *module = b->p.module;
	const struct ptx_function *f;
	struct ptx_prototype *prototype;
	struct ptx_token target;
	uint32_t at;
	int r;

	ptx_next(&b->p);
	r = ptx_expect_name(&b->p, &target);
	if (r)
		return r;
	at = ptx_names_find(module->names, target.text, target.size, 0);
	if (!at || ptx_names_at(module->names, at - 1)->kind != PTX_SYMBOL_FUNCTION)
		return ptx_fail(&b->p, "\"%.*s\" is no function", PTX_SHOWN(&target));
	if (b->prototypes.n == PTX_LABELS_MAX)
		return ptx_fail(&b->p, "more than %u prototypes", PTX_LABELS_MAX);
	prototype = ptx_array_push(&b->prototypes, 1, sizeof(*prototype));
	if (!prototype)
		return vgpu_error_origin(-ENOMEM);
	f = &module->functions[ptx_names_at(module->names, at - 1)->index];
	*prototype = (struct ptx_prototype){
		.params = f->params,
		.returns = f->returns,
		.n_params = f->n_params,
		.n_returns = f->n_returns,
		.params_size = f->params_size,
		.returns_size = f->returns_size,
	};
	r = define(b, name, &entry);
	return r ? r : ptx_skip_statement(&b->p);
}

/* A name with a colon: a label, or what a call or an indexed branch refers to. */
static int parse_labelled(struct ptx_body_parser *b, const struct ptx_token *name)
{
	const struct ptx_token *token = &b->p.token;

	ptx_next(&b->p);
	if (ptx_token_is(token, PTX_TOKEN_DOT, "branchtargets"))
		return parse_branch_targets(b, name);
	if (ptx_token_is(token, PTX_TOKEN_DOT, "callprototype"))
		return parse_prototype(b, name);
	if (ptx_token_is(token, PTX_TOKEN_DOT, "calltargets"))
		return parse_call_targets(b, name);
	return define_label(b, name);
}

/*
 * Declarations
 */

static int define_registers(struct ptx_body_parser *b, const struct ptx_declaration *d)
{
	struct ptx_name entry = {
		.space = d->is_range ? PTX_NAMES_RANGE : PTX_NAMES_PLAIN,
		.kind = PTX_NAME_REG,
		.index = b->reg_map.n,
		.count = d->count,
		.type = d->type | (uint32_t)d->vector << 8,
	};
	uint64_t n = d->count * d->vector;
	uint32_t *slots;

	if (d->is_array)
		return ptx_fail(&b->p, "an array of registers");
	if (n > PTX_REGISTERS_MAX - b->reg_map.n)
		return ptx_fail(&b->p, "more than %u registers", PTX_REGISTERS_MAX);
	slots = ptx_array_push(&b->reg_map, n, sizeof(*slots));
	if (!slots)
		return vgpu_error_origin(-ENOMEM);
	memset(slots, 0xff, n * sizeof(*slots));
	return define(b, &d->name, &entry);
}

/* Places a variable after the others of its block. */
static int place(struct ptx_body_parser *b, struct ptx_variable *variable)
{
	struct ptx_body *body = b->body;
	uint32_t *sizep, *alignp, max;
	uint64_t end;

	switch (variable->space) {
	case PTX_SPACE_LOCAL:
		sizep = &body->local_size;
		alignp = &body->local_align;
		max = PTX_LOCAL_SIZE_MAX;
		break;
	case PTX_SPACE_SHARED:
		sizep = &body->shared_size;
		alignp = &body->shared_align;
		max = PTX_SHARED_SIZE_MAX;
		break;
	case PTX_SPACE_PARAM:
		sizep = &body->param_size;
		alignp = &body->param_align;
		max = PTX_LOCAL_SIZE_MAX;
		break;
	default:
		return ptx_fail(&b->p, "such a variable belongs outside of a function");
	}
	if (variable->unsized)
		return 0;
	if (!vgpu_align_u64(*sizep, variable->align, &end) ||
		!vgpu_add_u64(end, variable->size, &end) || end > max)
		return ptx_fail(&b->p, "variables of more than %u bytes", max);
	variable->offset = end - variable->size;
	*sizep = end;
	if (*alignp < variable->align)
		*alignp = variable->align;
	return 0;
}

static int define_variable(struct ptx_body_parser *b, const struct ptx_declaration *d)
{
	struct ptx_name entry = { .kind = PTX_NAME_LOCAL, .index = b->variables.n };
	struct ptx_variable *slot, variable;
	int r;

	if (b->variables.n == PTX_VARIABLES_MAX)
		return ptx_fail(&b->p, "more than %u variables", PTX_VARIABLES_MAX);
	r = ptx_make_variable(&b->p, d, &variable);
	if (r)
		return r;
	r = place(b, &variable);
	if (r)
		return r;
	slot = ptx_array_push(&b->variables, 1, sizeof(*slot));
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	*slot = variable;
	return define(b, &d->name, &entry);
}

/* A variable of the module, which has been made already, with its first value. */
static int define_inside(struct ptx_body_parser *b, const struct ptx_declaration *d)
{
	struct ptx_name entry = {
		.kind = PTX_NAME_INSIDE,
		.index = ptx_inside_find(b->p.module, d->name.text),
	};
	struct ptx_parser *p = &b->p;
	unsigned int depth = 0;

	if (entry.index == PTX_INDEX_NONE)
		return ptx_fail(p, "such a variable belongs outside of a function");
	while (depth || (p->token.kind != ',' && p->token.kind != ';')) {
		if (p->token.kind == PTX_TOKEN_END || p->token.kind == PTX_TOKEN_BAD)
			return ptx_expect(p, ';');
		depth += p->token.kind == '{';
		depth -= p->token.kind == '}' && depth;
		ptx_next(p);
	}
	return define(b, &d->name, &entry);
}

/* name<count>: what registers mostly come as, GCC writes for .param variables too. */
static int define_variables(
	struct ptx_body_parser *b, const struct ptx_declaration *range)
{
	struct ptx_declaration one = *range;
	char name[160];
	int r = 0, n;

	one.is_range = false;
	one.count = 1;
	for (uint64_t i = 0; i < range->count && !r; i++) {
		n = snprintf(name, sizeof(name), "%.*s%llu", (int)range->name.size,
			range->name.text, (unsigned long long)i);
		if (n >= (int)sizeof(name))
			return ptx_fail(&b->p, "a name of more than %zu characters",
				sizeof(name) - 1);
		one.name.size = n;
		one.name.text = ptx_arena_string(b->p.arena, name, n);
		r = one.name.text ? define_variable(b, &one) : vgpu_error_origin(-ENOMEM);
	}
	return r;
}

static int parse_declarations(struct ptx_body_parser *b)
{
	struct ptx_declaration d = {};
	struct ptx_parser *p = &b->p;
	int r;

	if (ptx_token_is(&p->token, PTX_TOKEN_DOT, "extern")) {
		d.linkage = PTX_LINKAGE_EXTERN;
		ptx_next(p);
	}
	r = ptx_parse_declaration_head(p, &d);
	if (r)
		return r;
	do {
		r = ptx_parse_declarator(p, &d);
		if (!r && d.space == PTX_SPACE_REG)
			r = define_registers(b, &d);
		else if (!r &&
			 (d.space == PTX_SPACE_GLOBAL || d.space == PTX_SPACE_CONST))
			r = define_inside(b, &d);
		else if (!r)
			r = d.is_range ? define_variables(b, &d) : define_variable(b, &d);
		if (r)
			return r;
	} while (ptx_take(p, ','));
	return ptx_expect(p, ';');
}

/* They precede the outermost scope, which may declare the same names again. */
static int define_module_registers(struct ptx_body_parser *b)
{
	const struct ptx_module *module = b->p.module;
	int r = 0;

	for (uint32_t i = 0; !r && i < module->n_registers; i++)
		r = define_registers(b, &module->registers[i]);
	b->names_mark[0] = ptx_names_count(b->names);
	return r;
}

/* Puts the registers declared last into use, so that their numbers follow each other. */
static int use_registers(
	struct ptx_body_parser *b, uint32_t n, uint8_t type, uint32_t *firstp)
{
	uint32_t first = b->reg_map.n - n, unused;
	int r = ptx_use_register(b, first, type, firstp);

	for (uint32_t i = 1; i < n && !r; i++)
		r = ptx_use_register(b, first + i, type, &unused);
	return r;
}

/* Parameters are names of the outermost scope; those in registers become ones. */
static int define_params(
	struct ptx_body_parser *b, struct ptx_param *params, uint32_t n, uint32_t kind)
{
	struct ptx_name entry = { .kind = kind };
	struct ptx_declaration d = { .vector = 1, .count = 1 };
	struct ptx_token token = { .line = b->function->line };
	int r;

	for (uint32_t i = 0; i < n; i++) {
		token.text = params[i].name;
		token.size = strlen(params[i].name);
		entry.index = i;
		if (params[i].is_register) {
			d.name = token;
			d.type = params[i].type;
			d.vector = params[i].vector;
			r = define_registers(b, &d);
			if (!r)
				r = use_registers(b, d.vector, d.type, &params[i].reg);
		} else {
			r = define(b, &token, &entry);
		}
		if (r)
			return r;
	}
	return 0;
}

/*
 * Statements
 */

static int parse_guard(struct ptx_body_parser *b, uint32_t *guardp, bool *negatedp)
{
	uint8_t type;
	int r;

	ptx_next(&b->p);
	*negatedp = ptx_take(&b->p, '!');
	r = ptx_parse_register(b, guardp, &type);
	if (r)
		return r;
	if (type != PTX_TYPE_PRED)
		return ptx_fail(&b->p, "the guard of an instruction is no predicate");
	return 0;
}

static int parse_statement(struct ptx_body_parser *b)
{
	uint32_t guard = PTX_INDEX_NONE;
	struct ptx_parser *p = &b->p;
	bool taken, negated = false;
	struct ptx_token name;
	int r;

	r = ptx_skip_directive(p, &taken);
	if (r || taken || ptx_take(p, ';'))
		return r;
	if (p->token.kind == '{')
		return open_scope(b);
	if (p->token.kind == '}') {
		close_scope(b);
		return 0;
	}
	if (p->token.kind == PTX_TOKEN_DOT)
		return parse_declarations(b);
	if (p->token.kind == '@') {
		r = parse_guard(b, &guard, &negated);
		if (r)
			return r;
	}
	if (p->token.kind == PTX_TOKEN_END)
		return ptx_fail(p, "'}' is missing at the end of the text");
	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "an instruction is missing before \"%.*s\"",
			PTX_SHOWN(&p->token));
	name = p->token;
	ptx_next(p);
	if (p->token.kind == ':' && guard == PTX_INDEX_NONE)
		return parse_labelled(b, &name);
	return ptx_parse_instr(b, &name, guard, negated);
}

static int parse_body(struct ptx_body_parser *b)
{
	struct ptx_function *function = b->function;
	int r;

	ptx_next(&b->p);
	r = open_scope(b);
	if (!r)
		r = define_module_registers(b);
	if (!r)
		r = define_params(
			b, function->returns, function->n_returns, PTX_NAME_RETURN);
	if (!r)
		r = define_params(
			b, function->params, function->n_params, PTX_NAME_PARAM);
	while (!r && b->depth)
		r = parse_statement(b);
	return r ? r : resolve_labels(b);
}

/*
 * The whole
 */

#define KEEP(_array, _type, _items, _n)                                                  \
	do {                                                                             \
		int r_ = ptx_array_keep(&b->_array, sizeof(_type), b->p.arena,           \
			(void **)&b->body->_items, &b->body->_n);                        \
		if (r_)                                                                  \
			return vgpu_error_trace(r_);                                     \
	} while (0)

static int keep_arrays(struct ptx_body_parser *b)
{
	KEEP(instrs, struct ptx_instr, instrs, n_instrs);
	KEEP(operands, struct ptx_operand, operands, n_operands);
	KEEP(registers, uint8_t, registers, n_registers);
	KEEP(label_at, uint32_t, labels, n_labels);
	KEEP(branch_tables, struct ptx_branch_table, branch_tables, n_branch_tables);
	KEEP(branch_targets, uint32_t, branch_targets, n_branch_targets);
	KEEP(variables, struct ptx_variable, variables, n_variables);
	KEEP(prototypes, struct ptx_prototype, prototypes, n_prototypes);
	KEEP(op_text, char, names, names_size);
	return 0;
}

static void body_parser_deinit(struct ptx_body_parser *b)
{
	ptx_names_free(b->names);
	ptx_names_free(b->labels);
	ptx_names_free(b->op_names);
	ptx_array_deinit(&b->scopes);
	ptx_array_deinit(&b->instrs);
	ptx_array_deinit(&b->operands);
	ptx_array_deinit(&b->registers);
	ptx_array_deinit(&b->label_at);
	ptx_array_deinit(&b->branch_tables);
	ptx_array_deinit(&b->branch_targets);
	ptx_array_deinit(&b->variables);
	ptx_array_deinit(&b->prototypes);
	ptx_array_deinit(&b->op_text);
	ptx_array_deinit(&b->reg_map);
	ptx_array_deinit(&b->label_refs);
}

static int body_new(struct ptx_body **bodyp)
{
	_vgpu_cleanup_(ptx_arena_freep) struct ptx_arena *arena = ptx_arena_new();
	struct ptx_body *body;

	if (!arena)
		return vgpu_error_origin(-ENOMEM);
	body = ptx_arena_alloc(arena, sizeof(*body));
	if (!body)
		return vgpu_error_origin(-ENOMEM);
	body->first_unsupported = PTX_INDEX_NONE;
	body->local_align = body->shared_align = body->param_align = 1;
	body->arena = arena;
	arena = NULL;
	*bodyp = body;
	return 0;
}

static int read_body(struct ptx_module *module, struct ptx_function *function,
	struct ptx_body *body, struct ptx_error *error)
{
	struct ptx_body_parser b = {
		.p = { .module = module,
			.lexer = { .pos = module->text + function->body_off,
				.line = function->body_line },
			.error = error,
			.arena = body->arena },
		.function = function,
		.body = body,
		.names = ptx_names_new(),
		.labels = ptx_names_new(),
		.op_names = ptx_names_new(),
	};
	int r = -ENOMEM;

	if (b.names && b.labels && b.op_names)
		r = parse_body(&b);
	if (!r)
		r = keep_arrays(&b);
	body_parser_deinit(&b);
	return r;
}

int ptx_function_parse(struct ptx_module *module, uint32_t index, struct ptx_error *error)
{
	struct ptx_function *function = &module->functions[index];
	struct ptx_body *body = NULL;
	int r;

	*error = (struct ptx_error){};
	if (function->body)
		return 0;
	if (!function->is_defined)
		return vgpu_error_origin(-EINVAL);
	r = body_new(&body);
	if (r)
		return vgpu_error_trace(r);
	r = read_body(module, function, body, error);
	if (r) {
		ptx_arena_free(body->arena);
		return r;
	}
	function->body = body;
	return 0;
}

void ptx_function_drop(struct ptx_module *module, uint32_t index)
{
	struct ptx_function *function = &module->functions[index];

	if (function->body)
		ptx_arena_free(function->body->arena);
	function->body = NULL;
}
