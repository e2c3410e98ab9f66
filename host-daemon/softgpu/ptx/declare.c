/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: declarations of variables and parameters
 */

#include <string.h>

#include "vgpu/checked.h"

#include "ptx/parser.h"

static const struct {
	const char *text;
	uint8_t space;
} spaces[] = {
	{ "reg", PTX_SPACE_REG },
	{ "const", PTX_SPACE_CONST },
	{ "global", PTX_SPACE_GLOBAL },
	{ "local", PTX_SPACE_LOCAL },
	{ "param", PTX_SPACE_PARAM },
	{ "shared", PTX_SPACE_SHARED },
	{ "tex", PTX_SPACE_TEX },
};

static uint8_t find_space(const struct ptx_token *token)
{
	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
		if (ptx_token_is(token, PTX_TOKEN_DOT, spaces[i].text))
			return spaces[i].space;
	return PTX_SPACE_NONE;
}

static uint8_t find_type(const struct ptx_token *token)
{
	if (token->kind != PTX_TOKEN_DOT)
		return PTX_TYPE_NONE;
	for (unsigned int i = PTX_TYPE_NONE + 1; i < PTX_TYPE_U2; i++)
		if (ptx_token_is(token, PTX_TOKEN_DOT, ptx_type_name(i)))
			return i;
	return PTX_TYPE_NONE;
}

static int parse_align(struct ptx_parser *p, struct ptx_declaration *d)
{
	uint64_t align;
	int r;

	ptx_next(p);
	r = ptx_parse_count(p, 65536, "an alignment", &align);
	if (r)
		return r;
	if (!align || align & (align - 1))
		return ptx_fail(p, "an alignment that is no power of two");
	d->align = align;
	return 0;
}

/* .attribute(.managed, .unified(1, 2)) */
static int parse_attributes(struct ptx_parser *p, struct ptx_declaration *d)
{
	unsigned int depth = 0;

	ptx_next(p);
	if (p->token.kind != '(')
		return ptx_expect(p, '(');
	do {
		if (p->token.kind == PTX_TOKEN_END || p->token.kind == PTX_TOKEN_BAD)
			return ptx_fail(p, "')' is missing at the end of the text");
		depth += p->token.kind == '(';
		depth -= p->token.kind == ')';
		d->managed |= ptx_token_is(&p->token, PTX_TOKEN_DOT, "managed");
		ptx_next(p);
	} while (depth);
	return 0;
}

/* One word before the name. *takenp: whether there was one. */
static int parse_head_word(struct ptx_parser *p, struct ptx_declaration *d, bool *takenp)
{
	const struct ptx_token *token = &p->token;
	uint8_t space = find_space(token), type = find_type(token);

	*takenp = true;
	if (space && !d->space) {
		d->space = space;
	} else if (space && d->is_pointer) {
		/* the space a pointer parameter points to: a hint */
	} else if (type) {
		if (d->type)
			return ptx_fail(p, "a second type in a declaration");
		d->type = type;
	} else if (ptx_token_is(token, PTX_TOKEN_DOT, "align")) {
		return parse_align(p, d);
	} else if (ptx_token_is(token, PTX_TOKEN_DOT, "attribute")) {
		return parse_attributes(p, d);
	} else if (ptx_token_is(token, PTX_TOKEN_DOT, "ptr")) {
		d->is_pointer = true;
	} else if (ptx_token_is(token, PTX_TOKEN_DOT, "v2")) {
		d->vector = 2;
	} else if (ptx_token_is(token, PTX_TOKEN_DOT, "v4")) {
		d->vector = 4;
	} else if (ptx_token_is(token, PTX_TOKEN_DOT, "v8")) {
		d->vector = 8;
	} else {
		*takenp = false;
		return 0;
	}
	ptx_next(p);
	return 0;
}

int ptx_parse_declaration_head(struct ptx_parser *p, struct ptx_declaration *d)
{
	uint32_t align = 0;
	bool taken;
	int r;

	d->line = p->token.line;
	d->vector = 1;
	do {
		r = parse_head_word(p, d, &taken);
		if (r)
			return r;
		/* after .ptr it is the alignment of the pointer's target */
		if (!d->is_pointer)
			align = d->align;
	} while (taken);
	d->align = align;
	if (p->token.kind == PTX_TOKEN_DOT)
		return ptx_fail(p, ".%.*s does not belong in a declaration",
			PTX_SHOWN(&p->token));
	if (!d->space)
		return ptx_fail(p, "a declaration without a state space");
	/* The older form gives the type of an address. */
	if (d->space == PTX_SPACE_TEX)
		d->type = PTX_TYPE_TEXREF;
	if (!d->type)
		return ptx_fail(p, "a declaration without a type");
	return 0;
}

static int parse_dimension(struct ptx_parser *p, struct ptx_declaration *d)
{
	const unsigned int max = sizeof(d->dimensions) / sizeof(*d->dimensions);
	uint64_t n = 0;
	int r;

	ptx_next(p);
	if (d->n_dimensions == max)
		return ptx_fail(p, "an array of more than %u dimensions", max);
	if (p->token.kind == ']') {
		if (d->n_dimensions)
			return ptx_fail(p, "only the first dimension may be left out");
		d->is_unsized = true;
	} else {
		r = ptx_parse_count(p, PTX_VARIABLE_SIZE_MAX, "an array dimension", &n);
		if (r)
			return r;
	}
	d->dimensions[d->n_dimensions++] = n;
	return ptx_expect(p, ']');
}

int ptx_parse_declarator(struct ptx_parser *p, struct ptx_declaration *d)
{
	int r;

	d->is_range = d->is_array = d->is_unsized = false;
	d->n_dimensions = 0;
	d->count = 1;
	r = ptx_expect_name(p, &d->name);
	if (r)
		return r;
	if (ptx_take(p, '<')) {
		d->is_range = p->is_range = true;
		r = ptx_parse_count(p, PTX_REGISTERS_MAX, "a register count", &d->count);
		p->is_range = false;
		return r ? r : ptx_expect(p, '>');
	}
	while (p->token.kind == '[') {
		d->is_array = true;
		r = parse_dimension(p, d);
		if (r)
			return r;
	}
	for (uint32_t i = d->is_unsized; i < d->n_dimensions; i++)
		if (!vgpu_mul_u64(d->count, d->dimensions[i], &d->count) ||
			d->count > PTX_VARIABLE_SIZE_MAX)
			return ptx_fail(p, "an array of more than %u bytes",
				PTX_VARIABLE_SIZE_MAX);
	return 0;
}

int ptx_make_variable(struct ptx_parser *p, const struct ptx_declaration *d,
	struct ptx_variable *variable)
{
	uint32_t element = ptx_type_size(d->type) * d->vector;

	*variable = (struct ptx_variable){
		.line = d->name.line,
		.space = d->space,
		.type = d->type,
		.vector = d->vector,
		.linkage = d->linkage,
		.managed = d->managed,
		.unsized = d->is_unsized,
		.align = d->align ? d->align : element,
		.size = d->is_unsized ? 0 : d->count * element,
	};
	if (d->is_range)
		return ptx_fail(p, "a count in <> is for registers");
	if (d->type == PTX_TYPE_PRED)
		return ptx_fail(p, "a predicate in memory");
	if (variable->size > PTX_VARIABLE_SIZE_MAX)
		return ptx_fail(p, "a variable of %llu bytes, the limit is %u",
			(unsigned long long)variable->size, PTX_VARIABLE_SIZE_MAX);
	variable->name = ptx_arena_string(p->arena, d->name.text, d->name.size);
	if (!variable->name)
		return vgpu_error_origin(-ENOMEM);
	return 0;
}

/* Places a parameter after the previous ones. */
static int place_param(struct ptx_parser *p, const struct ptx_declaration *d,
	struct ptx_param *param, uint64_t *sizep)
{
	uint32_t element = ptx_type_size(d->type) * d->vector;
	uint64_t size = d->is_unsized ? 0 : d->count * element, end;

	if (d->is_range)
		return ptx_fail(p, "a count in <> is for registers");
	param->type = d->type;
	param->is_register = d->space == PTX_SPACE_REG;
	param->vector = d->vector;
	param->align = d->align ? d->align : element;
	param->count = d->is_unsized ? 0 : d->count;
	param->size = size;
	param->reg = PTX_INDEX_NONE;
	if (param->is_register)
		return 0;
	if (d->space != PTX_SPACE_PARAM || d->type == PTX_TYPE_PRED)
		return ptx_fail(p, "a parameter is neither .param nor .reg");
	vgpu_align_u64(*sizep, param->align, &end);
	param->offset = end;
	end += size;
	if (end > PTX_PARAM_SIZE_MAX)
		return ptx_fail(
			p, "parameters of more than %u bytes", PTX_PARAM_SIZE_MAX);
	*sizep = end;
	return 0;
}

static int parse_param(struct ptx_parser *p, struct ptx_array *params, uint64_t *sizep)
{
	struct ptx_declaration d = {};
	struct ptx_param *param;
	int r;

	if (params->n == PTX_PARAMS_MAX)
		return ptx_fail(p, "more than %u parameters", PTX_PARAMS_MAX);
	if (p->n_params++ == PTX_ALL_PARAMS_MAX)
		return ptx_fail(p, "more than %u parameters in all", PTX_ALL_PARAMS_MAX);
	r = ptx_parse_declaration_head(p, &d);
	if (r)
		return r;
	r = ptx_parse_declarator(p, &d);
	if (r)
		return r;
	param = ptx_array_push(params, 1, sizeof(*param));
	if (!param)
		return vgpu_error_origin(-ENOMEM);
	param->name = ptx_arena_string(p->arena, d.name.text, d.name.size);
	if (!param->name)
		return vgpu_error_origin(-ENOMEM);
	return place_param(p, &d, param, sizep);
}

static int parse_param_list(
	struct ptx_parser *p, struct ptx_array *params, uint64_t *sizep)
{
	int r;

	r = ptx_expect(p, '(');
	if (r)
		return r;
	if (ptx_take(p, ')'))
		return 0;
	do {
		r = parse_param(p, params, sizep);
		if (r)
			return r;
	} while (ptx_take(p, ','));
	return ptx_expect(p, ')');
}

int ptx_parse_params(
	struct ptx_parser *p, struct ptx_param **paramsp, uint32_t *np, uint32_t *sizep)
{
	struct ptx_array params = {};
	uint64_t size = 0;
	int r;

	r = parse_param_list(p, &params, &size);
	if (!r)
		r = ptx_array_keep(&params, sizeof(struct ptx_param), p->arena,
			(void **)paramsp, np);
	ptx_array_deinit(&params);
	*sizep = size;
	return r;
}
