/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: variables of a module that are declared inside of functions
 *
 * A .global or .const variable in a body has a scope like a register and a place like a
 * variable of the module. It is created when the body is skipped, because all variables
 * have their places before the first body is read; the body finds it again by the
 * position of its name in the text.
 */

#include <stdio.h>
#include <string.h>

#include "ptx/parser.h"

/* Of the function that is read: kind is the depth of the braces around the name. */
static void close_scopes(struct ptx_parser *p, unsigned int depth)
{
	uint32_t n = ptx_names_count(p->inside_names);

	while (n && ptx_names_at(p->inside_names, n - 1)->kind > depth)
		n--;
	ptx_names_cut(p->inside_names, n);
}

/* No identifier contains a point: the name of the module's variable is unique. */
static int set_name(struct ptx_parser *p, const struct ptx_token *function,
	const struct ptx_token *name, struct ptx_variable *variable)
{
	char text[512];
	int n = snprintf(
		text, sizeof(text), "%.*s.%.*s", PTX_SHOWN(function), PTX_SHOWN(name));

	variable->name = ptx_arena_string(p->arena, text, (size_t)n);
	return variable->name ? 0 : vgpu_error_origin(-ENOMEM);
}

static int add(struct ptx_parser *p, const struct ptx_declaration *d,
	const struct ptx_variable *variable, unsigned int depth)
{
	struct ptx_name name = {
		.text = d->name.text,
		.size = d->name.size,
		.kind = depth,
		.index = p->variables.n,
	};
	struct ptx_variable *slot;
	struct ptx_inside *inside;

	if (p->variables.n == PTX_VARIABLES_MAX)
		return ptx_fail(p, "more than %u variables", PTX_VARIABLES_MAX);
	slot = ptx_array_push(&p->variables, 1, sizeof(*slot));
	inside = ptx_array_push(&p->inside, 1, sizeof(*inside));
	if (!slot || !inside)
		return vgpu_error_origin(-ENOMEM);
	*slot = *variable;
	inside->off = (size_t)(d->name.text - p->module->text);
	inside->index = p->variables.n - 1;
	return ptx_names_add(p->inside_names, &name);
}

static int parse_variable(struct ptx_parser *p, const struct ptx_token *function,
	struct ptx_declaration *d, unsigned int depth)
{
	struct ptx_variable variable;
	int r;

	r = ptx_parse_declarator(p, d);
	if (!r)
		r = ptx_make_variable(p, d, &variable);
	if (!r && variable.unsized)
		r = ptx_fail(p, "an array without a size");
	if (!r)
		r = set_name(p, function, &d->name, &variable);
	if (!r && ptx_take(p, '='))
		r = ptx_parse_initialiser(p, d, &variable);
	return r ? r : add(p, d, &variable, depth);
}

/* From the point of .global or .const to its semicolon, which is left. */
static int parse_declaration(
	struct ptx_parser *p, const struct ptx_token *function, unsigned int depth)
{
	struct ptx_declaration d = {};
	int r;

	ptx_next(p);
	r = ptx_parse_declaration_head(p, &d);
	if (r)
		return r;
	do {
		r = parse_variable(p, function, &d, depth);
		if (r)
			return r;
	} while (ptx_take(p, ','));
	if (p->token.kind != ';')
		return ptx_expect(p, ';');
	/* It is read again: another declaration may follow. */
	p->lexer.pos = p->token.text;
	p->lexer.line = p->token.line;
	return 0;
}

int ptx_skip_body(struct ptx_parser *p, const struct ptx_token *function)
{
	struct ptx_block block = { .lowest = 1 };
	enum ptx_block_end end;
	int r;

	/* Starting at the brace itself: a declaration may follow directly. */
	p->lexer.pos = p->token.text;
	p->lexer.line = p->token.line;
	while ((end = ptx_lexer_skip_block(&p->lexer, &block)) == PTX_BLOCK_VARIABLE) {
		if (!p->inside_names)
			p->inside_names = ptx_names_new();
		if (!p->inside_names)
			return vgpu_error_origin(-ENOMEM);
		close_scopes(p, block.lowest);
		r = parse_declaration(p, function, block.depth);
		if (r)
			return r;
		block.lowest = block.depth;
	}
	if (end == PTX_BLOCK_UNENDED)
		return ptx_fail(p, "'}' is missing at the end of the text");
	if (p->inside_names)
		ptx_names_cut(p->inside_names, 0);
	ptx_next(p);
	return ptx_expect(p, '}');
}

uint32_t ptx_inside_find(const struct ptx_module *module, const char *text)
{
	size_t off = (size_t)(text - module->text);
	uint32_t low = 0, high = module->n_inside, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (module->inside[middle].off < off)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == module->n_inside || module->inside[low].off != off)
		return PTX_INDEX_NONE;
	return module->inside[low].index;
}
