/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: constant expressions
 *
 * The operators of C over 64-bit integers, signed or not, and over doubles, by the rules
 * of the ISA: the type of a value depends on its operator. Literals of 32-bit floats
 * allow only a sign. The depth of the recursion is bounded.
 */

#include <string.h>

#include "ptx/parser.h"

#define DEPTH_MAX 64

/* Operators of two characters; an operator of one character is that character. */
enum {
	OP_EQ = 1,
	OP_NE,
	OP_LE,
	OP_GE,
	OP_AND,
	OP_OR,
};

struct value {
	uint8_t kind; /* PTX_OPERAND_INT, F32 or F64 */
	bool is_unsigned;
	uint64_t bits;
};

struct evaluator {
	struct ptx_parser *p;
	unsigned int depth;
	bool is_count; /* in <>: the next > ends it */
};

static int parse_ternary(struct evaluator *e, struct value *v);

/* The operator at the token, 0 for none. *np: its tokens. */
static int find_operator(const struct evaluator *e, unsigned int *np)
{
	int kind = e->p->token.kind, second = *e->p->lexer.pos;

	*np = 2;
	if (kind == '=' && second == '=')
		return OP_EQ;
	if (kind == '!' && second == '=')
		return OP_NE;
	if (kind == '<' && second == '=')
		return OP_LE;
	if (kind == '>' && second == '=' && !e->is_count)
		return OP_GE;
	if (kind == '&' && second == '&')
		return OP_AND;
	if (kind == '|' && second == '|')
		return OP_OR;
	*np = 1;
	return kind == '>' && e->is_count ? 0 : kind;
}

/* Returns: how tightly a binary operator binds, 0 for what is none. */
static int precedence(int operator)
{
	switch (operator) {
	case '*':
	case '/':
	case '%':
		return 10;
	case '+':
	case '-':
		return 9;
	case PTX_TOKEN_SHIFT_LEFT:
	case PTX_TOKEN_SHIFT_RIGHT:
		return 8;
	case '<':
	case '>':
	case OP_LE:
	case OP_GE:
		return 7;
	case OP_EQ:
	case OP_NE:
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case OP_AND:
		return 2;
	case OP_OR:
		return 1;
	default:
		return 0;
	}
}

static double real_of(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

static void set_int(struct value *v, uint64_t bits, bool is_unsigned)
{
	*v = (struct value){ PTX_OPERAND_INT, is_unsigned, bits };
}

static void set_real(struct value *v, double d)
{
	*v = (struct value){ .kind = PTX_OPERAND_F64 };
	memcpy(&v->bits, &d, sizeof(d));
}

static int fail_kind(struct evaluator *e)
{
	return ptx_fail(e->p, "a constant mixes numbers that do not go together");
}

static int apply_real(struct evaluator *e, int operator, struct value * a, double y)
{
	double x = real_of(a->bits);

	switch (operator) {
	case '+':
		set_real(a, x + y);
		break;
	case '-':
		set_real(a, x - y);
		break;
	case '*':
		set_real(a, x * y);
		break;
	case '/':
		/* by zero infinite or NaN, as IEEE 754 says and C does not */
		set_real(a, y != 0	       ? x / y
			    : x == 0 || x != x ? __builtin_nan("")
					       : __builtin_copysign(__builtin_inf(), x) *
							 __builtin_copysign(1, y));
		break;
	case '<':
		set_int(a, x < y, false);
		break;
	case '>':
		set_int(a, x > y, false);
		break;
	case OP_LE:
		set_int(a, x <= y, false);
		break;
	case OP_GE:
		set_int(a, x >= y, false);
		break;
	case OP_EQ:
		set_int(a, x == y, false);
		break;
	case OP_NE:
		set_int(a, x != y, false);
		break;
	default:
		return fail_kind(e);
	}
	return 0;
}

/* Integers of a common type; overflow wraps. */
static int divide(struct evaluator *e, struct value *a, uint64_t y, bool is_unsigned)
{
	if (!y)
		return ptx_fail(e->p, "division by zero in a constant");
	if (is_unsigned)
		set_int(a, a->bits / y, true);
	else
		set_int(a,
			y == UINT64_MAX ? 0 - a->bits
					: (uint64_t)((int64_t)a->bits / (int64_t)y),
			false);
	return 0;
}

static uint64_t shift_right(const struct value *a, uint64_t n)
{
	if (a->is_unsigned)
		return n < 64 ? a->bits >> n : 0;
	return (uint64_t)((int64_t)a->bits >> (n < 64 ? n : 63));
}

static bool is_below(uint64_t x, uint64_t y, bool is_unsigned)
{
	return is_unsigned ? x < y : (int64_t)x < (int64_t)y;
}

static int apply_int(struct evaluator *e, int operator, struct value * a, struct value *b)
{
	bool is_unsigned = a->is_unsigned || b->is_unsigned;
	uint64_t x = a->bits, y = b->bits;

	switch (operator) {
	case '+':
		set_int(a, x + y, is_unsigned);
		break;
	case '-':
		set_int(a, x - y, is_unsigned);
		break;
	case '*':
		set_int(a, x * y, is_unsigned);
		break;
	case '/':
		return divide(e, a, y, is_unsigned);
	case '%':
		if (!y)
			return ptx_fail(e->p, "division by zero in a constant");
		set_int(a, x % y, false);
		break;
	case PTX_TOKEN_SHIFT_LEFT:
		a->bits = y < 64 ? x << y : 0;
		break;
	case PTX_TOKEN_SHIFT_RIGHT:
		a->bits = shift_right(a, y);
		break;
	case '<':
		set_int(a, is_below(x, y, is_unsigned), false);
		break;
	case '>':
		set_int(a, is_below(y, x, is_unsigned), false);
		break;
	case OP_LE:
		set_int(a, !is_below(y, x, is_unsigned), false);
		break;
	case OP_GE:
		set_int(a, !is_below(x, y, is_unsigned), false);
		break;
	case OP_EQ:
		set_int(a, x == y, false);
		break;
	case OP_NE:
		set_int(a, x != y, false);
		break;
	case '&':
		set_int(a, x & y, true);
		break;
	case '^':
		set_int(a, x ^ y, true);
		break;
	case '|':
		set_int(a, x | y, true);
		break;
	case OP_AND:
		set_int(a, x && y, false);
		break;
	default:
		set_int(a, x || y, false);
		break;
	}
	return 0;
}

static int apply(struct evaluator *e, int operator, struct value * a, struct value *b)
{
	if (a->kind != b->kind || a->kind == PTX_OPERAND_F32)
		return fail_kind(e);
	if (a->kind == PTX_OPERAND_F64)
		return apply_real(e, operator, a, real_of(b->bits));
	return apply_int(e, operator, a, b);
}

/* (.u64) or (.s64), after the parenthesis. *takenp: whether there was one. */
static int take_cast(struct evaluator *e, bool *is_unsignedp, bool *takenp)
{
	struct ptx_parser *p = e->p;

	*is_unsignedp = ptx_token_is(&p->token, PTX_TOKEN_DOT, "u64");
	*takenp = *is_unsignedp || ptx_token_is(&p->token, PTX_TOKEN_DOT, "s64");
	if (!*takenp)
		return 0;
	ptx_next(p);
	return ptx_expect(p, ')');
}

static int parse_literal(struct evaluator *e, struct value *v)
{
	struct ptx_parser *p = e->p;
	const struct ptx_token *token = &p->token;

	switch (token->kind) {
	case PTX_TOKEN_INT:
		set_int(v, token->value,
			token->value > INT64_MAX || token->text[token->size - 1] == 'U');
		break;
	case PTX_TOKEN_F32:
		*v = (struct value){ .kind = PTX_OPERAND_F32, .bits = token->value };
		break;
	case PTX_TOKEN_F64:
		*v = (struct value){ .kind = PTX_OPERAND_F64, .bits = token->value };
		break;
	default:
		if (!ptx_token_is(token, PTX_TOKEN_NAME, "WARP_SZ"))
			return ptx_fail(p, "a number is missing");
		set_int(v, 32, false);
		break;
	}
	ptx_next(p);
	return 0;
}

static int apply_unary(struct evaluator *e, int operator, struct value * v)
{
	bool is_int = v->kind == PTX_OPERAND_INT;

	switch (operator) {
	case '-':
		if (is_int)
			v->bits = 0 - v->bits;
		else
			v->bits ^= v->kind == PTX_OPERAND_F32 ? 1ull << 31 : 1ull << 63;
		return 0;
	case '!':
		if (!is_int)
			return fail_kind(e);
		set_int(v, !v->bits, false);
		return 0;
	case '~':
		if (!is_int)
			return fail_kind(e);
		set_int(v, ~v->bits, true);
		return 0;
	default:
		return 0;
	}
}

static int parse_unary(struct evaluator *e, struct value *v)
{
	struct ptx_parser *p = e->p;
	int operator= p->token.kind, r;
	bool is_unsigned, is_cast = false;

	if (operator!= '(' && operator!= '-' && operator!= '+' && operator!= '!' &&
		operator!= '~')
		return parse_literal(e, v);
	if (e->depth == DEPTH_MAX)
		return ptx_fail(p, "a constant is nested too deeply");
	e->depth++;
	ptx_next(p);
	if (operator!= '(') {
		r = parse_unary(e, v);
		if (!r)
			r = apply_unary(e, operator, v);
		e->depth--;
		return r;
	}
	r = take_cast(e, &is_unsigned, &is_cast);
	if (!r && is_cast) {
		r = parse_unary(e, v);
		if (!r && v->kind != PTX_OPERAND_INT)
			r = fail_kind(e);
		v->is_unsigned = is_unsigned;
	} else if (!r) {
		bool outside = e->is_count;

		e->is_count = false;
		r = parse_ternary(e, v);
		e->is_count = outside;
		if (!r)
			r = ptx_expect(p, ')');
	}
	e->depth--;
	return r;
}

static int parse_binary(struct evaluator *e, int least, struct value *a)
{
	struct value b;
	unsigned int n;
	int operator, binds, r;

	r = parse_unary(e, a);
	while (!r) {
		operator= find_operator(e, &n);
		binds = precedence(operator);
		if (!binds || binds < least)
			break;
		for (unsigned int i = 0; i < n; i++)
			ptx_next(e->p);
		r = parse_binary(e, binds + 1, &b);
		if (!r)
			r = apply(e, operator, a, &b);
	}
	return r;
}

static int parse_ternary(struct evaluator *e, struct value *v)
{
	struct value a, b;
	int r;

	r = parse_binary(e, 1, v);
	if (r || !ptx_take(e->p, '?'))
		return r;
	if (v->kind != PTX_OPERAND_INT)
		return fail_kind(e);
	if (e->depth == DEPTH_MAX)
		return ptx_fail(e->p, "a constant is nested too deeply");
	e->depth++;
	r = parse_ternary(e, &a);
	if (!r)
		r = ptx_expect(e->p, ':');
	if (!r)
		r = parse_ternary(e, &b);
	e->depth--;
	if (r)
		return r;
	if (a.kind != b.kind)
		return fail_kind(e);
	a.is_unsigned = b.is_unsigned = a.is_unsigned || b.is_unsigned;
	*v = v->bits ? a : b;
	return 0;
}

static int evaluate(struct ptx_parser *p, struct value *v)
{
	struct evaluator e = { .p = p, .is_count = p->is_range };

	return parse_ternary(&e, v);
}

int ptx_parse_int(struct ptx_parser *p, uint64_t *valuep)
{
	struct value v;
	int r = evaluate(p, &v);

	if (r)
		return r;
	if (v.kind != PTX_OPERAND_INT)
		return ptx_fail(p, "an integer is missing");
	*valuep = v.bits;
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

static int parse_symbol_name(struct ptx_parser *p, struct ptx_constant *constant)
{
	const struct ptx_name *name;
	struct ptx_token token;
	uint32_t at;
	int r;

	r = ptx_expect_name(p, &token);
	if (r)
		return r;
	at = p->inside_names ? ptx_names_find(p->inside_names, token.text, token.size, 0)
			     : 0;
	if (at) {
		constant->kind = PTX_OPERAND_SYMBOL;
		constant->symbol = PTX_SYMBOL_VARIABLE;
		constant->index = ptx_names_at(p->inside_names, at - 1)->index;
		return 0;
	}
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
	struct value v;
	int r;

	*constant = (struct ptx_constant){ .kind = PTX_OPERAND_INT };
	if (p->token.kind == PTX_TOKEN_NAME &&
		!ptx_token_is(&p->token, PTX_TOKEN_NAME, "WARP_SZ"))
		return parse_symbol(p, constant);
	r = evaluate(p, &v);
	if (r)
		return r;
	constant->kind = v.kind;
	constant->value = v.bits;
	if (p->token.kind != '(' || v.kind != PTX_OPERAND_INT)
		return 0;
	r = parse_masked(p, constant);
	if (r)
		return r;
	r = parse_symbol(p, constant);
	if (r)
		return r;
	return ptx_expect(p, ')');
}
