/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: constant expressions
 *
 * Integers in 64 bits with the operators of C up to |, evaluated by two stacks of
 * fixed depth. Operands are signed unless they carry a U or do not fit; overflow
 * wraps. There is no boolean or conditional operator: no compiler writes them.
 */

#include <string.h>

#include "ptx/parser.h"

#define DEPTH_MAX 64

enum {
	OP_OPEN = '(',
	OP_NEGATE = 1, /* unary operators get numbers no character has */
	OP_PLUS,
	OP_NOT,
	OP_INVERT,
};

struct evaluator {
	uint64_t values[DEPTH_MAX];
	int operators[DEPTH_MAX];
	unsigned int n_values;
	unsigned int n_operators;
	bool is_unsigned;
};

/* Returns: how tightly an operator binds, 0 for none. */
static int precedence(int operator)
{
	switch (operator) {
	case OP_NEGATE:
	case OP_PLUS:
	case OP_NOT:
	case OP_INVERT:
		return 10;
	case '*':
	case '/':
	case '%':
		return 9;
	case '+':
	case '-':
		return 8;
	case PTX_TOKEN_SHIFT_LEFT:
	case PTX_TOKEN_SHIFT_RIGHT:
		return 7;
	case '&':
		return 6;
	case '^':
		return 5;
	case '|':
		return 4;
	default:
		return 0;
	}
}

static int divide(struct ptx_parser *p, const struct evaluator *e, uint64_t a, uint64_t b,
	bool remainder, uint64_t *resultp)
{
	if (!b)
		return ptx_fail(p, "division by zero in a constant");
	if (e->is_unsigned)
		*resultp = remainder ? a % b : a / b;
	else if (b == UINT64_MAX)
		*resultp = remainder ? 0 : -a;
	else
		*resultp = (uint64_t)(remainder ? (int64_t)a % (int64_t)b
						: (int64_t)a / (int64_t)b);
	return 0;
}

static uint64_t shift_right(const struct evaluator *e, uint64_t a, uint64_t n)
{
	if (e->is_unsigned)
		return n < 64 ? a >> n : 0;
	return (uint64_t)((int64_t)a >> (n < 64 ? n : 63));
}

/* Applies the operator on top of its stack. */
static int apply(struct ptx_parser *p, struct evaluator *e)
{
	int operator= e->operators[--e->n_operators];
	uint64_t a, b, result = 0;
	int r = 0;

	if (precedence(operator) == 10) {
		if (e->n_values < 1)
			return ptx_fail(p, "a malformed constant");
		a = e->values[e->n_values - 1];
		e->values[e->n_values - 1] = operator== OP_NEGATE ? -a :
					     operator== OP_NOT	  ? !a
					     :
					     operator== OP_INVERT ? ~a
								  : a;
		return 0;
	}
	if (e->n_values < 2)
		return ptx_fail(p, "a malformed constant");
	b = e->values[--e->n_values];
	a = e->values[e->n_values - 1];
	switch (operator) {
	case '*':
		result = a * b;
		break;
	case '/':
	case '%':
		r = divide(p, e, a, b, operator== '%', &result);
		break;
	case '+':
		result = a + b;
		break;
	case '-':
		result = a - b;
		break;
	case PTX_TOKEN_SHIFT_LEFT:
		result = b < 64 ? a << b : 0;
		break;
	case PTX_TOKEN_SHIFT_RIGHT:
		result = shift_right(e, a, b);
		break;
	case '&':
		result = a & b;
		break;
	case '^':
		result = a ^ b;
		break;
	case '|':
		result = a | b;
		break;
	}
	e->values[e->n_values - 1] = result;
	return r;
}

static int push_operator(struct ptx_parser *p, struct evaluator *e, int operator)
{
	if (e->n_operators == DEPTH_MAX)
		return ptx_fail(p, "a constant is nested too deeply");
	e->operators[e->n_operators++] = operator;
	return 0;
}

/* Where an operand is expected. *donep: one was taken. */
static int take_operand(struct ptx_parser *p, struct evaluator *e, bool *donep)
{
	int kind = p->token.kind, r = 0;

	*donep = false;
	switch (kind) {
	case PTX_TOKEN_INT:
		if (e->n_values == DEPTH_MAX)
			return ptx_fail(p, "a constant is nested too deeply");
		e->values[e->n_values++] = p->token.value;
		e->is_unsigned |= p->token.value > INT64_MAX ||
				  p->token.text[p->token.size - 1] == 'U';
		*donep = true;
		break;
	case '(':
		r = push_operator(p, e, OP_OPEN);
		break;
	case '-':
		r = push_operator(p, e, OP_NEGATE);
		break;
	case '+':
		r = push_operator(p, e, OP_PLUS);
		break;
	case '!':
		r = push_operator(p, e, OP_NOT);
		break;
	case '~':
		r = push_operator(p, e, OP_INVERT);
		break;
	default:
		return ptx_fail(p, "a number is missing");
	}
	if (r)
		return r;
	ptx_next(p);
	return 0;
}

/* Where an operator is expected. *endp: the expression ended before the token. */
static int take_operator(
	struct ptx_parser *p, struct evaluator *e, bool *endp, bool *want_operandp)
{
	int operator= p->token.kind, r;

	if (operator== ')') {
		while (e->n_operators && e->operators[e->n_operators - 1] != OP_OPEN) {
			r = apply(p, e);
			if (r)
				return r;
		}
		*endp = !e->n_operators; /* a parenthesis of whoever asked */
		if (!*endp) {
			e->n_operators--;
			ptx_next(p);
		}
		return 0;
	}
	*endp = !precedence(operator);
	if (*endp)
		return 0;
	while (e->n_operators &&
		precedence(e->operators[e->n_operators - 1]) >= precedence(operator)) {
		r = apply(p, e);
		if (r)
			return r;
	}
	ptx_next(p);
	*want_operandp = true;
	return push_operator(p, e, operator);
}

int ptx_parse_int(struct ptx_parser *p, uint64_t *valuep)
{
	bool want_operand = true, done = false, end = false;
	struct evaluator e;
	int r;

	e.n_values = e.n_operators = 0;
	e.is_unsigned = false;
	while (!end) {
		if (want_operand) {
			r = take_operand(p, &e, &done);
			want_operand = !done;
		} else {
			r = take_operator(p, &e, &end, &want_operand);
		}
		if (r)
			return r;
	}
	while (e.n_operators) {
		if (e.operators[e.n_operators - 1] == OP_OPEN)
			return ptx_expect(p, ')');
		r = apply(p, &e);
		if (r)
			return r;
	}
	*valuep = e.values[0];
	return 0;
}

int ptx_parse_count(
	struct ptx_parser *p, uint64_t max, const char *what, uint64_t *valuep)
{
	int r = ptx_parse_int(p, valuep);

	if (r)
		return r;
	if (*valuep > max)
		return ptx_fail(p, "%s is %llu, the limit is %llu", what,
			(unsigned long long)*valuep, (unsigned long long)max);
	return 0;
}

static int parse_float(struct ptx_parser *p, struct ptx_constant *constant, bool negate)
{
	bool is_single = p->token.kind == PTX_TOKEN_F32;

	constant->kind = is_single ? PTX_OPERAND_F32 : PTX_OPERAND_F64;
	constant->value = p->token.value;
	if (negate)
		constant->value ^= is_single ? 1ull << 31 : 1ull << 63;
	ptx_next(p);
	return 0;
}

static int parse_symbol_name(struct ptx_parser *p, struct ptx_constant *constant)
{
	const struct ptx_name *name;
	struct ptx_token token;
	uint32_t at;
	int r;

	r = ptx_expect_name(p, &token);
	if (r)
		return r;
	at = ptx_names_find(p->module->names, token.text, token.size, 0);
	if (!at)
		return ptx_fail_at(p, PTX_E_INVALID, token.line,
			"\"%.*s\" is not declared", PTX_SHOWN(&token));
	name = ptx_names_at(p->module->names, at - 1);
	constant->kind = PTX_OPERAND_SYMBOL;
	constant->symbol = name->kind;
	constant->index = name->index;
	return 0;
}

/* `name`, `generic(name)`, either with `+ number`. */
static int parse_symbol(struct ptx_parser *p, struct ptx_constant *constant)
{
	struct ptx_parser ahead = *p;
	int r;

	ptx_next(&ahead);
	if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "generic") &&
		ahead.token.kind == '(') {
		ptx_next(p);
		ptx_next(p);
		constant->generic = true;
	}
	r = parse_symbol_name(p, constant);
	if (r)
		return r;
	if (constant->generic) {
		r = ptx_expect(p, ')');
		if (r)
			return r;
	}
	if (p->token.kind == '+' || p->token.kind == '-')
		return ptx_parse_int(p, &constant->value);
	return 0;
}

/* `0xFF00(symbol)` stores the bytes of the address under the mask. */
static int parse_masked(struct ptx_parser *p, struct ptx_constant *constant)
{
	uint64_t mask = constant->value;
	int bits, shift;

	shift = mask ? __builtin_ctzll(mask) : 0;
	bits = mask ? 64 - __builtin_clzll(mask) - shift : 0;
	if (shift % 8 || (bits != 8 && bits != 16 && bits != 32 && bits != 64) ||
		mask >> shift != UINT64_MAX >> (64 - bits))
		return ptx_fail(p, "a mask that does not select whole bytes");
	ptx_next(p);
	constant->shift = shift;
	constant->size = bits / 8;
	constant->value = 0;
	return 0;
}

int ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *constant)
{
	bool negate = false;
	int r;

	*constant = (struct ptx_constant){ .kind = PTX_OPERAND_INT };
	if (p->token.kind == '-') {
		struct ptx_parser ahead = *p;

		ptx_next(&ahead);
		negate = ahead.token.kind == PTX_TOKEN_F32 ||
			 ahead.token.kind == PTX_TOKEN_F64;
		if (negate)
			ptx_next(p);
	}
	if (p->token.kind == PTX_TOKEN_F32 || p->token.kind == PTX_TOKEN_F64)
		return parse_float(p, constant, negate);
	if (p->token.kind == PTX_TOKEN_NAME)
		return parse_symbol(p, constant);
	r = ptx_parse_int(p, &constant->value);
	if (r || p->token.kind != '(')
		return r;
	r = parse_masked(p, constant);
	if (r)
		return r;
	r = parse_symbol(p, constant);
	if (r)
		return r;
	return ptx_expect(p, ')');
}
