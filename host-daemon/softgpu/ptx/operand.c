/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: operands
 *
 * The operands of an instruction are one run of ptx_body.operands. The elements of
 * a vector are another run, which therefore must be complete before the vector's
 * own place is written: they are collected behind the instruction's run.
 */

#include <math.h>
#include <string.h>

#include "ptx/modifier.h"
#include "ptx/parser.h"

#define VECTOR_MAX 8
#define OPERANDS_MAX 8		     /* of one instruction */
#define BODY_OPERANDS_MAX (4u << 20) /* of one body: 64 MiB */

#define NAME_SHOWN(_token)                                                               \
	(int)((_token)->size < 160 ? (_token)->size : 160), (_token)->text

uint64_t ptx_operand_bits(const struct ptx_operand *operand, enum ptx_type type)
{
	uint64_t bits = (uint64_t)operand->imm;
	uint32_t bits32 = (uint32_t)bits;
	double d;
	float f;

	if (operand->kind == PTX_OPERAND_F64 && type == PTX_TYPE_F32) {
		memcpy(&d, &bits, sizeof(d));
		/* out of range is infinity by IEEE 754 but undefined in C */
		f = fabs(d) >= 0x1.ffffffp127 ? copysignf(INFINITY, d) : (float)d;
		memcpy(&bits32, &f, sizeof(f));
		return bits32;
	}
	if (operand->kind == PTX_OPERAND_F32 && type == PTX_TYPE_F64) {
		memcpy(&f, &bits32, sizeof(f));
		d = f;
		memcpy(&bits, &d, sizeof(d));
	}
	return bits;
}

/*
 * Registers
 */

int ptx_use_register(
	struct ptx_body_parser *b, uint32_t declared, uint8_t type, uint32_t *regp)
{
	uint32_t *slot = (uint32_t *)b->reg_map.items + declared;
	uint8_t *new_type;

	if (*slot == PTX_INDEX_NONE) {
		new_type = ptx_array_push(&b->registers, 1, 1);
		if (!new_type)
			return vgpu_error_origin(-ENOMEM);
		*new_type = type;
		*slot = b->registers.n - 1;
	}
	*regp = *slot;
	return 0;
}

/*
 * %r12 may be a name of its own, or the thirteenth of %r<13>, or the third of
 * %r1<3>. The newest declaration wins, which is the innermost.
 */
static uint32_t find_body_name(
	const struct ptx_names *names, const struct ptx_token *name, uint32_t *elementp)
{
	uint32_t best = ptx_names_find(names, name->text, name->size, PTX_NAMES_PLAIN);
	uint64_t number = 0, scale = 1;
	uint32_t at;

	*elementp = 0;
	for (uint32_t size = name->size; size-- > 1 && scale <= 10000000; scale *= 10) {
		char digit = name->text[size];

		if (digit < '0' || digit > '9')
			break;
		number += (digit - '0') * scale;
		/* %r01 is no element of %r<2> */
		if (digit == '0' && size + 1 < name->size)
			continue;
		at = ptx_names_find(names, name->text, size, PTX_NAMES_RANGE);
		while (at > best && number >= ptx_names_at(names, at - 1)->count)
			at = ptx_names_find_older(names, at - 1);
		if (at > best) {
			best = at;
			*elementp = number;
		}
	}
	return best;
}

int ptx_parse_register(struct ptx_body_parser *b, uint32_t *regp, uint8_t *typep)
{
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	uint32_t at, element;
	int r;

	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "a register is missing");
	at = find_body_name(b->names, &p->token, &element);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (!name || name->kind != PTX_NAME_REG || name->type >> 8 > 1)
		return ptx_fail(p, "\"%.*s\" is no register", NAME_SHOWN(&p->token));
	*typep = name->type;
	r = ptx_use_register(b, name->index + element, name->type, regp);
	if (!r)
		ptx_next(p);
	return r;
}

/*
 * Single operands
 */

static const struct {
	const char *text;
	uint8_t size;
} sregs[_PTX_SREG_N] = {
#define SREG(_name, _text, _type) [PTX_SREG_##_name] = { _text, sizeof(_text) - 1 },
	PTX_SREGS(SREG)
#undef SREG
};

/* How many special registers share a name that ends in a number; 0: not such a one. */
static unsigned int numbered_count(unsigned int sreg)
{
	switch (sreg) {
	case PTX_SREG_ENVREG:
		return 32;
	case PTX_SREG_PM:
		return 8;
	case PTX_SREG_RESERVED_SMEM_OFFSET:
		return 2;
	default:
		return 0;
	}
}

/* %tid.x is a name and a modifier to the lexer: here it is one word again. */
static bool find_sreg(struct ptx_parser *p, struct ptx_operand *operand)
{
	const char *text = p->token.text + 1;
	uint32_t size = p->token.size - 1, number = 0;
	bool dotted = *p->lexer.pos == '.' && p->lexer.pos[1] >= 'x' &&
		      p->lexer.pos[1] <= 'z' && p->lexer.pos == text + size;
	uint32_t digits = size;

	if (*p->token.text != '%')
		return false;
	size += dotted ? 2 : 0;
	while (!dotted && digits && text[digits - 1] >= '0' && text[digits - 1] <= '9')
		digits--;
	for (uint32_t i = digits; i < size && number < 100; i++)
		number = number * 10 + (text[i] - '0');
	for (unsigned int i = 0; i < _PTX_SREG_N; i++) {
		unsigned int n = numbered_count(i);
		uint32_t wanted = n ? digits : size;

		if (sregs[i].size != wanted || memcmp(sregs[i].text, text, wanted))
			continue;
		if (n && (digits == size || number >= n))
			return false;
		operand->kind = PTX_OPERAND_SREG;
		operand->index = i;
		operand->imm = n ? number : 0;
		ptx_next(p);
		if (dotted)
			ptx_next(p);
		return true;
	}
	return false;
}

/* A declared name that is no register, in the body or the module. */
static bool find_symbol(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	static const uint8_t symbols[] = {
		[PTX_NAME_LOCAL] = PTX_SYMBOL_LOCAL,
		[PTX_NAME_PARAM] = PTX_SYMBOL_PARAM,
		[PTX_NAME_RETURN] = PTX_SYMBOL_RETURN,
	};
	struct ptx_token *token = &b->p.token;
	const struct ptx_name *name;
	uint32_t at;

	at = ptx_names_find(b->names, token->text, token->size, PTX_NAMES_PLAIN);
	if (at) {
		name = ptx_names_at(b->names, at - 1);
		if (name->kind < PTX_NAME_LOCAL || name->kind > PTX_NAME_RETURN)
			return false;
		operand->symbol = symbols[name->kind];
	} else {
		at = ptx_names_find(b->p.module->names, token->text, token->size, 0);
		if (!at)
			return false;
		name = ptx_names_at(b->p.module->names, at - 1);
		operand->symbol = name->kind;
	}
	operand->kind = PTX_OPERAND_SYMBOL;
	operand->index = name->index;
	ptx_next(&b->p);
	return true;
}

/* `+ number` and `- number` behind a register or a symbol. */
static int parse_offset(struct ptx_parser *p, struct ptx_operand *operand)
{
	uint64_t value;
	int r;

	if (p->token.kind != '+' && p->token.kind != '-')
		return 0;
	r = ptx_parse_int(p, &value);
	if (!r)
		operand->imm = (int64_t)value;
	return r;
}

static int parse_number(struct ptx_parser *p, struct ptx_operand *operand)
{
	struct ptx_constant constant;
	int r;

	r = ptx_parse_constant(p, &constant);
	if (r)
		return r;
	if (constant.kind == PTX_OPERAND_SYMBOL)
		return ptx_fail(p, "a part of an address is for initialisers only");
	operand->kind = constant.kind;
	operand->imm = (int64_t)constant.value;
	return 0;
}

/*
 * Vector registers (.reg .v2 ...) take consecutive declared registers; .x, .y, .z
 * and .w (or .r, .g, .b, .a) name one of them.
 */
static int parse_vector_register(struct ptx_body_parser *b, const struct ptx_name *name,
	struct ptx_operand *operand)
{
	static const char components[] = "xyzwrgba";
	struct ptx_parser *p = &b->p;
	const char *component;

	ptx_next(p);
	if (p->token.kind != PTX_TOKEN_DOT || p->token.size != 1)
		return ptx_fail(p, "a vector register needs a component here");
	component = strchr(components, *p->token.text);
	if (!component || (component - components) % 4 >= (int)(name->type >> 8))
		return ptx_fail(
			p, "a vector register has no component .%c", *p->token.text);
	ptx_next(p);
	operand->kind = PTX_OPERAND_REG;
	return ptx_use_register(b, name->index + (component - components) % 4,
		name->type & 0xff, &operand->index);
}

static int parse_name(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	uint32_t at, element;
	uint8_t type;

	at = find_body_name(b->names, &p->token, &element);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (name && name->kind == PTX_NAME_REG) {
		if (name->type >> 8 > 1)
			return parse_vector_register(b, name, operand);
		operand->kind = PTX_OPERAND_REG;
		return ptx_parse_register(b, &operand->index, &type);
	}
	if (find_symbol(b, operand))
		return parse_offset(p, operand);
	if (find_sreg(p, operand))
		return 0;
	if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "WARP_SZ")) {
		ptx_next(p);
		operand->kind = PTX_OPERAND_INT;
		operand->imm = 32;
		return 0;
	}
	return ptx_fail(p, "\"%.*s\" is not declared", NAME_SHOWN(&p->token));
}

static int parse_source(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;

	if (p->token.kind == PTX_TOKEN_NAME)
		return parse_name(b, operand);
	return parse_number(p, operand);
}

static int parse_destination(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	int r;

	if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "_")) {
		ptx_next(p);
		return 0;
	}
	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "a destination register is missing");
	r = parse_name(b, operand);
	if (r)
		return r;
	if (operand->kind != PTX_OPERAND_REG)
		return ptx_fail(p, "the destination is no register");
	return 0;
}

/* A register, immediate or the like that may be negated by `!`. */
static int parse_predicate(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	bool negated = ptx_take(&b->p, '!');
	int r = parse_source(b, operand);

	operand->negated = negated;
	if (!r && operand->kind != PTX_OPERAND_REG && operand->kind != PTX_OPERAND_INT)
		return ptx_fail(&b->p, "a predicate is missing");
	return r;
}

static int parse_address(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	int r;

	r = ptx_expect(p, '[');
	if (r)
		return r;
	r = parse_source(b, operand);
	if (r)
		return r;
	switch (operand->kind) {
	case PTX_OPERAND_REG:
		operand->kind = PTX_OPERAND_ADDRESS_REG;
		r = parse_offset(p, operand);
		if (r)
			return r;
		break;
	case PTX_OPERAND_SYMBOL:
		operand->kind = PTX_OPERAND_ADDRESS_SYMBOL;
		break;
	case PTX_OPERAND_INT:
		operand->kind = PTX_OPERAND_ADDRESS_INT;
		break;
	default:
		return ptx_fail(p, "this cannot be an address");
	}
	return ptx_expect(p, ']');
}

/*
 * Vectors
 */

static int push_operands(struct ptx_body_parser *b, const struct ptx_operand *operands,
	uint32_t n, uint32_t *firstp)
{
	struct ptx_operand *slots;

	if (n > BODY_OPERANDS_MAX - b->operands.n)
		return ptx_fail(&b->p, "more than %u operands", BODY_OPERANDS_MAX);
	*firstp = b->operands.n;
	if (!n)
		return 0;
	slots = ptx_array_push(&b->operands, n, sizeof(*slots));
	if (!slots)
		return vgpu_error_origin(-ENOMEM);
	memcpy(slots, operands, n * sizeof(*slots));
	return 0;
}

static int finish_vector(struct ptx_body_parser *b, const struct ptx_operand *elements,
	uint32_t n, struct ptx_operand *operand)
{
	operand->kind = PTX_OPERAND_VECTOR;
	operand->count = n;
	return push_operands(b, elements, n, &operand->index);
}

static int parse_vector(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool is_destination)
{
	struct ptx_operand elements[VECTOR_MAX] = {};
	struct ptx_parser *p = &b->p;
	uint32_t n = 0;
	int r;

	ptx_next(p);
	do {
		if (n == VECTOR_MAX)
			return ptx_fail(p, "a vector of more than %u", VECTOR_MAX);
		if (is_destination)
			r = parse_destination(b, &elements[n++]);
		else
			r = parse_source(b, &elements[n++]);
		if (r)
			return r;
	} while (ptx_take(p, ','));
	r = ptx_expect(p, '}');
	return r ? r : finish_vector(b, elements, n, operand);
}

/* A vector register without a component stands for all of it. */
static int parse_whole_vector(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool *takenp)
{
	struct ptx_operand elements[VECTOR_MAX] = {};
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	uint32_t at, element, n;
	int r;

	*takenp = false;
	if (p->token.kind != PTX_TOKEN_NAME || *p->lexer.pos == '.')
		return 0;
	at = ptx_names_find(b->names, p->token.text, p->token.size, PTX_NAMES_PLAIN);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (!name || name->kind != PTX_NAME_REG || name->type >> 8 <= 1)
		return 0;
	*takenp = true;
	n = name->type >> 8;
	for (element = 0; element < n; element++) {
		elements[element].kind = PTX_OPERAND_REG;
		r = ptx_use_register(b, name->index + element, name->type & 0xff,
			&elements[element].index);
		if (r)
			return r;
	}
	ptx_next(p);
	return finish_vector(b, elements, n, operand);
}

static int parse_vector_or_single(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool is_destination)
{
	bool taken;
	int r;

	if (b->p.token.kind == '{')
		return parse_vector(b, operand, is_destination);
	r = parse_whole_vector(b, operand, &taken);
	if (r || taken)
		return r;
	return is_destination ? parse_destination(b, operand) : parse_source(b, operand);
}

/*
 * Patterns
 */

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

static int parse_branch_table(struct ptx_body_parser *b, struct ptx_operand *operand)
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
	if (!name || name->kind != PTX_NAME_BRANCH_TABLE)
		return ptx_fail(p, "\"%.*s\" is no branch table", NAME_SHOWN(&token));
	operand->kind = PTX_OPERAND_BRANCH_TABLE;
	operand->index = name->index;
	return 0;
}

static int parse_by_pattern(
	struct ptx_body_parser *b, char pattern, struct ptx_operand *operand)
{
	switch (pattern) {
	case 'd':
	case 'q':
		return parse_destination(b, operand);
	case 'D':
		return parse_vector_or_single(b, operand, true);
	case 'S':
		return parse_vector_or_single(b, operand, false);
	case 'p':
		return parse_predicate(b, operand);
	case 'a':
		return parse_address(b, operand);
	case 'b':
		return parse_branch_table(b, operand);
	default:
		return parse_source(b, operand);
	}
}

/*
 * A label's operand is patched when the body ends and must know its place then:
 * no vector can be behind it, so its place is certain now.
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
		else
			r = parse_by_pattern(b, *pattern, &operands[n]);
		if (r)
			return r;
		n++;
	}
	*np = n;
	return 0;
}

/*
 * The forms of bar differ in what they have, not in where it stands:
 * sync a{, b} / arrive a, b / red d, a{, b}, {!}p / warp.sync mask.
 */
static int parse_barrier(struct ptx_body_parser *b, const struct ptx_instr *instr,
	struct ptx_operand *operands)
{
	bool is_red = instr->mode == PTX_MODE_BAR_RED;
	struct ptx_parser *p = &b->p;
	int r;

	if (is_red) {
		r = parse_destination(b, &operands[0]);
		if (!r)
			r = ptx_expect(p, ',');
		if (r)
			return r;
	}
	r = parse_source(b, &operands[1]);
	if (r)
		return r;
	if (!is_red) {
		if (!ptx_take(p, ','))
			return 0;
		return parse_source(b, &operands[2]);
	}
	r = ptx_expect(p, ',');
	if (r)
		return r;
	r = parse_predicate(b, &operands[3]);
	if (r || !ptx_take(p, ','))
		return r;
	operands[2] = operands[3];
	operands[3] = (struct ptx_operand){};
	if (operands[2].negated)
		return ptx_fail(p, "a negated thread count");
	return parse_predicate(b, &operands[3]);
}

/* `(a, b)` of a call: variables of .param, registers or immediates. */
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
			r = parse_source(b, element);
		if (r)
			break;
	}
	if (!r) {
		ptx_next(p);
		r = finish_vector(b, elements.items, elements.n, operand);
	}
	ptx_array_deinit(&elements);
	return r;
}

static int parse_prototype_name(struct ptx_body_parser *b, struct ptx_operand *operand)
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
	if (!name || name->kind != PTX_NAME_PROTOTYPE)
		return ptx_fail(p, "\"%.*s\" is no prototype", NAME_SHOWN(&token));
	/* a list of call targets promises only where the call will go */
	if (name->index == PTX_INDEX_NONE)
		return 0;
	operand->kind = PTX_OPERAND_PROTOTYPE;
	operand->index = name->index;
	return 0;
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
	r = parse_name(b, &operands[1]);
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
	return parse_prototype_name(b, &operands[3]);
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
	return push_operands(b, operands, n, &instr->first_operand);
}
