/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: the operands of an instruction
 *
 * The pattern in PTX_OPS covers most opcodes; barriers and calls have separate grammars,
 * which are normalised here.
 */

#include <string.h>

#include "ptx/modifier.h"
#include "ptx/parser.h"

#define OPERANDS_MAX 9 /* of one instruction */

static int parse_label(
	struct ptx_body_parser *b, struct ptx_operand *operand, uint32_t place)
{
	struct ptx_token name;
	int r = ptx_expect_name(&b->p, &name);

	if (r)
		return r;
	operand->kind = PTX_OPERAND_LABEL;
	return ptx_note_label(b, &name, place, false);
}

/* The name of a branch table or of a prototype, both of which are declared before. */
static int parse_declared(struct ptx_body_parser *b, enum ptx_body_name name_kind,
	enum ptx_operand_kind kind, const char *noun, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	struct ptx_token token;
	uint32_t at;
	int r;

	r = ptx_expect_name(p, &token);
	if (r)
		return r;
	at = ptx_names_find(b->names, token.text, token.size, PTX_NAMES_PLAIN);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (!name || name->kind != name_kind)
		return ptx_fail(p, "\"%.*s\" is no %s", PTX_SHOWN(&token), noun);
	operand->kind = kind;
	operand->index = name->index;
	return 0;
}

/* .b0, .h1, .h10, .b3210 and the like after a register */
static int parse_parts(struct ptx_parser *p, struct ptx_operand *operand)
{
	const struct ptx_token *token = &p->token;
	unsigned int n = token->size - 1;
	uint32_t numbers = 0;
	bool bytes;

	if (token->kind != PTX_TOKEN_DOT)
		return 0;
	bytes = *token->text == 'b';
	if ((!bytes && *token->text != 'h') || n < 1 || n > (bytes ? 4u : 2u))
		return ptx_fail(
			p, "\".%.*s\" is no part of a register", PTX_SHOWN(token));
	for (unsigned int i = 1; i <= n; i++) {
		char c = token->text[i];

		if (c < '0' || c > (bytes ? '7' : '3'))
			return ptx_fail(p, "\".%.*s\" is no part of a register",
				PTX_SHOWN(token));
		numbers = numbers << 4 | (uint32_t)(c - '0');
	}
	operand->imm = (bytes ? PTX_PARTS_BYTES : PTX_PARTS_HALVES) |
		       n << PTX_PARTS_COUNT_SHIFT | numbers;
	ptx_next(p);
	return 0;
}

static int parse_video_source(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p, ahead = *p;
	bool negated;
	int r;

	ptx_next(&ahead);
	negated = p->token.kind == '-' && ahead.token.kind == PTX_TOKEN_NAME;
	if (negated)
		ptx_next(p);
	r = ptx_parse_source(b, operand);
	operand->negated = negated;
	if (r || operand->kind != PTX_OPERAND_REG)
		return r;
	return parse_parts(p, operand);
}

/* `!` before a name negates a predicate, before a number it belongs to the number. */
static int parse_negatable(
	struct ptx_body_parser *b, bool takes_vector, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p, ahead = *p;

	ptx_next(&ahead);
	if (p->token.kind == '!' && ahead.token.kind == PTX_TOKEN_NAME)
		return ptx_parse_predicate(b, operand);
	return takes_vector ? ptx_parse_vector(b, operand, false)
			    : ptx_parse_source(b, operand);
}

static int parse_by_pattern(
	struct ptx_body_parser *b, char pattern, struct ptx_operand *operand)
{
	int r;

	switch (pattern) {
	case 'd':
	case 'q':
		return ptx_parse_destination(b, operand);
	case 'D':
		return ptx_parse_vector(b, operand, true);
	case 'S':
		return ptx_parse_vector(b, operand, false);
	case 'n':
	case 'N':
		return parse_negatable(b, pattern == 'N', operand);
	case 'p':
		return ptx_parse_predicate(b, operand);
	case 'a':
		return ptx_parse_address(b, operand);
	case 'A':
		return b->p.token.kind == '[' ? ptx_parse_address(b, operand)
					      : ptx_parse_source(b, operand);
	case 'b':
		return parse_declared(b, PTX_NAME_BRANCH_TABLE, PTX_OPERAND_BRANCH_TABLE,
			"branch table", operand);
	case 'x':
		r = ptx_parse_destination(b, operand);
		return r ? r : parse_parts(&b->p, operand);
	case 'y':
		return parse_video_source(b, operand);
	default:
		return ptx_parse_source(b, operand);
	}
}

/* [texture{, sampler}, coordinates]; the operand after it shows whether it is a
 * sampler. */
static int parse_texture(struct ptx_body_parser *b, struct ptx_operand *operands)
{
	struct ptx_parser *p = &b->p;
	int r;

	r = ptx_expect(p, '[');
	if (!r)
		r = ptx_parse_source(b, &operands[0]);
	if (!r)
		r = ptx_expect(p, ',');
	if (!r)
		r = ptx_parse_vector(b, &operands[2], false);
	if (!r && ptx_take(p, ',')) {
		operands[1] = operands[2];
		operands[2] = (struct ptx_operand){};
		r = ptx_parse_vector(b, &operands[2], false);
	}
	return r ? r : ptx_expect(p, ']');
}

/* [map, {coordinates}], or an address: then there are no coordinates. */
static int parse_tensor(struct ptx_body_parser *b, struct ptx_operand *operands)
{
	struct ptx_parser *p = &b->p;
	int r;

	if (p->token.kind != '[')
		return ptx_parse_address(b, &operands[0]);
	r = ptx_parse_open_address(b, &operands[0]);
	if (!r && ptx_take(p, ','))
		r = ptx_parse_vector(b, &operands[1], false);
	return r ? r : ptx_expect(p, ']');
}

/*
 * A label's operand is patched when the body ends and needs a fixed place then: no vector
 * can follow it, so its place is final now.
 */
static int parse_pattern(struct ptx_body_parser *b, const char *pattern,
	struct ptx_operand *operands, uint32_t *np)
{
	struct ptx_parser *p = &b->p;
	bool optional = false;
	uint32_t n = 0;
	int r;

	for (; *pattern; pattern++) {
		if (*pattern == '?') {
			optional = true;
			continue;
		}
		if (*pattern == 'q') {
			if (ptx_take(p, '|')) {
				r = parse_by_pattern(b, 'q', &operands[n]);
				if (r)
					return r;
			}
			n++;
			continue;
		}
		if (optional && p->token.kind == ';') {
			n++;
			continue;
		}
		if (n) {
			r = ptx_expect(p, ',');
			if (r)
				return r;
		}
		if (*pattern == 'l')
			r = parse_label(b, &operands[n], b->operands.n + n);
		else if (*pattern == 't')
			r = parse_texture(b, &operands[n]);
		else if (*pattern == 'M')
			r = parse_tensor(b, &operands[n]);
		else
			r = parse_by_pattern(b, *pattern, &operands[n]);
		if (r)
			return r;
		n += *pattern == 't' ? 3 : *pattern == 'M' ? 2 : 1;
	}
	*np = n;
	return 0;
}

/*
 * The forms of bar differ in which operands they have, not in their order: sync a{, b} /
 * arrive a, b / red d, a{, b}, {!}p / warp.sync mask.
 */
static int parse_barrier(struct ptx_body_parser *b, const struct ptx_instr *instr,
	struct ptx_operand *operands)
{
	bool is_red = instr->mode == PTX_MODE_BAR_RED;
	struct ptx_parser *p = &b->p;
	int r;

	if (is_red) {
		r = ptx_parse_destination(b, &operands[0]);
		if (!r)
			r = ptx_expect(p, ',');
		if (r)
			return r;
	}
	r = ptx_parse_source(b, &operands[1]);
	if (r)
		return r;
	if (!is_red) {
		if (!ptx_take(p, ','))
			return 0;
		return ptx_parse_source(b, &operands[2]);
	}
	r = ptx_expect(p, ',');
	if (r)
		return r;
	r = ptx_parse_predicate(b, &operands[3]);
	if (r || !ptx_take(p, ','))
		return r;
	operands[2] = operands[3];
	operands[3] = (struct ptx_operand){};
	if (operands[2].negated)
		return ptx_fail(p, "a negated thread count");
	return ptx_parse_predicate(b, &operands[3]);
}

/* `(a, b)` of a call: variables of .param, registers, vectors or immediates. */
static int parse_call_list(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_array elements = {};
	struct ptx_parser *p = &b->p;
	struct ptx_operand *element;
	int r = 0;

	ptx_next(p);
	while (p->token.kind != ')') {
		if (elements.n)
			r = ptx_expect(p, ',');
		if (!r && elements.n == PTX_PARAMS_MAX)
			r = ptx_fail(p, "more than %u arguments", PTX_PARAMS_MAX);
		if (r)
			break;
		element = ptx_array_push(&elements, 1, sizeof(*element));
		if (!element) {
			r = vgpu_error_origin(-ENOMEM);
			break;
		}
		if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "_"))
			ptx_next(p);
		else
			r = ptx_parse_vector(b, element, false);
		if (r)
			break;
	}
	if (!r) {
		ptx_next(p);
		r = ptx_finish_vector(b, elements.items, elements.n, operand);
	}
	ptx_array_deinit(&elements);
	return r;
}

/* {(results),} callee {, (arguments)} {, prototype} */
static int parse_call(struct ptx_body_parser *b, struct ptx_operand *operands)
{
	struct ptx_parser *p = &b->p;
	int r;

	if (p->token.kind == '(') {
		r = parse_call_list(b, &operands[0]);
		if (!r)
			r = ptx_expect(p, ',');
		if (r)
			return r;
	}
	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "a function is missing");
	r = ptx_parse_operand_name(b, &operands[1]);
	if (r)
		return r;
	if (operands[1].kind != PTX_OPERAND_REG &&
		operands[1].symbol != PTX_SYMBOL_FUNCTION)
		return ptx_fail(p, "what is called is no function");
	if (!ptx_take(p, ','))
		return 0;
	if (p->token.kind == '(') {
		r = parse_call_list(b, &operands[2]);
		if (r || !ptx_take(p, ','))
			return r;
	}
	return parse_declared(
		b, PTX_NAME_PROTOTYPE, PTX_OPERAND_PROTOTYPE, "prototype", &operands[3]);
}

int ptx_parse_operands(struct ptx_body_parser *b, struct ptx_instr *instr)
{
	struct ptx_operand operands[OPERANDS_MAX] = {};
	uint32_t n = 4;
	int r;

	if (instr->op == PTX_OP_CALL)
		r = parse_call(b, operands);
	else if (instr->op == PTX_OP_BAR || instr->op == PTX_OP_BARRIER)
		r = parse_barrier(b, instr, operands);
	else
		r = parse_pattern(b, ptx_opcode_operands(instr->op), operands, &n);
	if (r)
		return r;
	instr->n_operands = n;
	return ptx_push_operands(b, operands, n, &instr->first_operand);
}
