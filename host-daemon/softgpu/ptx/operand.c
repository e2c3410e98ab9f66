/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: operands
 *
 * The operands of an instruction are one run of ptx_body.operands and the elements
 * of a vector are another. A vector's elements are put there as soon as it is read,
 * the instruction's own run follows when all of it has been read.
 */

#include <math.h>
#include <string.h>

#include "ptx/parser.h"

#define VECTOR_MAX 8
#define BODY_OPERANDS_MAX (4u << 20) /* of one body: 64 MiB */

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
 * %r12 may be a declared name, or the thirteenth of %r<13>, or the third of %r1<3>. The
 * newest declaration wins, which is the innermost.
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

/* The token is an element of a range of registers. */
static int take_register(struct ptx_body_parser *b, const struct ptx_name *name,
	uint32_t element, uint32_t *regp)
{
	int r = ptx_use_register(b, name->index + element, name->type, regp);

	if (!r)
		ptx_next(&b->p);
	return r;
}

int ptx_parse_register(struct ptx_body_parser *b, uint32_t *regp, uint8_t *typep)
{
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	uint32_t at, element;

	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "a register is missing");
	at = find_body_name(b->names, &p->token, &element);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (!name || name->kind != PTX_NAME_REG || name->type >> 8 > 1)
		return ptx_fail(p, "\"%.*s\" is no register", PTX_SHOWN(&p->token));
	*typep = name->type;
	return take_register(b, name, element, regp);
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

/* Return: whether @sreg is spelled like that; the fourth component like the first. */
static bool is_spelled(unsigned int sreg, const char *text, uint32_t size, bool is_fourth)
{
	const char *name = sregs[sreg].text;

	if (sregs[sreg].size != size || memcmp(name, text, size - is_fourth))
		return false;
	return !is_fourth || (name[size - 2] == '.' && name[size - 1] == 'x');
}

/*
 * To the lexer %tid.x is a name and a modifier: here it is one word again. A fourth
 * component is 0.
 */
static bool find_sreg(struct ptx_parser *p, struct ptx_operand *operand)
{
	const char *text = p->token.text + 1;
	uint32_t size = p->token.size - 1, number = 0;
	bool dotted = *p->lexer.pos == '.' && p->lexer.pos[1] >= 'w' &&
		      p->lexer.pos[1] <= 'z' && p->lexer.pos == text + size;
	bool is_fourth = dotted && p->lexer.pos[1] == 'w';
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

		if (!is_spelled(i, text, wanted, is_fourth))
			continue;
		if (n && (digits == size || number >= n))
			return false;
		operand->kind = is_fourth ? PTX_OPERAND_INT : PTX_OPERAND_SREG;
		operand->index = is_fourth ? 0 : i;
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
		[PTX_NAME_INSIDE] = PTX_SYMBOL_VARIABLE,
	};
	struct ptx_token *token = &b->p.token;
	const struct ptx_name *name;
	uint32_t at;

	at = ptx_names_find(b->names, token->text, token->size, PTX_NAMES_PLAIN);
	if (at) {
		name = ptx_names_at(b->names, at - 1);
		if (name->kind >= sizeof(symbols) || !symbols[name->kind])
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

/* `+ number` and `- number` after a register or a symbol. */
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

/* Returns: bytes of an element of the variable, 0 for what is none. */
static uint32_t element_size(
	const struct ptx_body_parser *b, const struct ptx_operand *operand)
{
	const struct ptx_variable *v;

	if (operand->symbol == PTX_SYMBOL_VARIABLE) {
		v = operand->index < b->p.module->n_variables
			    ? &b->p.module->variables[operand->index]
			    : NULL;
	} else if (operand->symbol == PTX_SYMBOL_LOCAL) {
		v = (const struct ptx_variable *)b->variables.items + operand->index;
	} else {
		return 0;
	}
	return v ? ptx_type_size(v->type) * v->vector : 0;
}

/* `[register]`, `[register + number]` after a symbol: it becomes an ELEMENT. */
static int parse_register_index(
	struct ptx_body_parser *b, struct ptx_operand *operand, uint32_t size)
{
	struct ptx_operand parts[2] = { *operand };
	int r;

	parts[1].kind = PTX_OPERAND_REG;
	r = ptx_parse_operand_name(b, &parts[1]);
	if (r)
		return r;
	if (parts[1].kind != PTX_OPERAND_REG)
		return ptx_fail(&b->p, "an index is no register");
	r = parse_offset(&b->p, &parts[1]);
	if (r)
		return r;
	*operand = (struct ptx_operand){ .kind = PTX_OPERAND_ELEMENT, .count = size };
	return ptx_push_operands(b, parts, 2, &operand->index);
}

/* `variable[index]`: elements of the variable's type, whatever the dimensions are. */
static int parse_index(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	uint32_t size = element_size(b, operand);
	struct ptx_parser *p = &b->p;
	uint64_t index;
	int r;

	if (!size)
		return ptx_fail(p, "an index behind what is no array");
	ptx_next(p);
	if (p->token.kind == PTX_TOKEN_NAME &&
		!ptx_token_is(&p->token, PTX_TOKEN_NAME, "WARP_SZ")) {
		r = parse_register_index(b, operand, size);
	} else {
		r = ptx_parse_int(p, &index);
		operand->imm = (int64_t)(index * size);
	}
	return r ? r : ptx_expect(p, ']');
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
	uint32_t element, struct ptx_operand *operand)
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
	return ptx_use_register(b,
		name->index + element * (name->type >> 8) + (component - components) % 4,
		name->type & 0xff, &operand->index);
}

int ptx_parse_operand_name(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	uint32_t at, element;

	at = find_body_name(b->names, &p->token, &element);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (name && name->kind == PTX_NAME_REG) {
		if (name->type >> 8 > 1)
			return parse_vector_register(b, name, element, operand);
		operand->kind = PTX_OPERAND_REG;
		return take_register(b, name, element, &operand->index);
	}
	if (find_symbol(b, operand))
		return p->token.kind == '[' ? parse_index(b, operand)
					    : parse_offset(p, operand);
	if (find_sreg(p, operand))
		return 0;
	if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "WARP_SZ"))
		return parse_number(p, operand);
	return ptx_fail(p, "\"%.*s\" is not declared", PTX_SHOWN(&p->token));
}

int ptx_parse_source(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;

	if (p->token.kind == PTX_TOKEN_NAME)
		return ptx_parse_operand_name(b, operand);
	return parse_number(p, operand);
}

int ptx_parse_destination(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	int r;

	if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "_")) {
		ptx_next(p);
		return 0;
	}
	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "a destination register is missing");
	r = ptx_parse_operand_name(b, operand);
	if (r)
		return r;
	if (operand->kind != PTX_OPERAND_REG)
		return ptx_fail(p, "the destination is no register");
	return 0;
}

/* A register, immediate or the like that may be negated by `!`. */
int ptx_parse_predicate(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	bool negated = ptx_take(&b->p, '!');
	int r = ptx_parse_source(b, operand);

	operand->negated = negated;
	if (!r && operand->kind != PTX_OPERAND_REG && operand->kind != PTX_OPERAND_INT)
		return ptx_fail(&b->p, "a predicate is missing");
	return r;
}

/* `variable[index]` without brackets around it, which is an address too. */
static int parse_element_address(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	int r;

	if (p->token.kind != PTX_TOKEN_NAME || *p->lexer.pos != '[')
		return ptx_expect(p, '[');
	r = ptx_parse_operand_name(b, operand);
	if (r)
		return r;
	if (operand->kind == PTX_OPERAND_SYMBOL)
		operand->kind = PTX_OPERAND_ADDRESS_SYMBOL;
	else if (operand->kind == PTX_OPERAND_ELEMENT)
		operand->kind = PTX_OPERAND_ADDRESS_ELEMENT;
	else
		return ptx_fail(p, "this cannot be an address");
	return 0;
}

/* `].unified`: the address is the same on the host, which has no effect here. */
static int end_address(struct ptx_parser *p)
{
	int r = ptx_expect(p, ']');

	if (!r && ptx_token_is(&p->token, PTX_TOKEN_DOT, "unified"))
		ptx_next(p);
	return r;
}

int ptx_parse_open_address(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	struct ptx_parser *p = &b->p;
	int r;

	r = ptx_expect(p, '[');
	if (r)
		return r;
	r = ptx_parse_source(b, operand);
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
	case PTX_OPERAND_ELEMENT:
		operand->kind = PTX_OPERAND_ADDRESS_ELEMENT;
		break;
	case PTX_OPERAND_INT:
		operand->kind = PTX_OPERAND_ADDRESS_INT;
		break;
	default:
		return ptx_fail(p, "this cannot be an address");
	}
	return 0;
}

int ptx_parse_address(struct ptx_body_parser *b, struct ptx_operand *operand)
{
	int r;

	if (b->p.token.kind != '[')
		return parse_element_address(b, operand);
	r = ptx_parse_open_address(b, operand);
	return r ? r : end_address(&b->p);
}

/*
 * Vectors
 */

int ptx_push_operands(struct ptx_body_parser *b, const struct ptx_operand *operands,
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

int ptx_finish_vector(struct ptx_body_parser *b, const struct ptx_operand *elements,
	uint32_t n, struct ptx_operand *operand)
{
	operand->kind = PTX_OPERAND_VECTOR;
	operand->count = n;
	return ptx_push_operands(b, elements, n, &operand->index);
}

static int parse_braces(
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
		r = 0;
		if (is_destination)
			r = ptx_parse_destination(b, &elements[n]);
		else if (ptx_token_is(&p->token, PTX_TOKEN_NAME, "_"))
			ptx_next(p); /* an element that is not stored */
		else
			r = ptx_parse_source(b, &elements[n]);
		n++;
		if (r)
			return r;
	} while (ptx_take(p, ','));
	r = ptx_expect(p, '}');
	return r ? r : ptx_finish_vector(b, elements, n, operand);
}

/* A vector register without a component means all of it. */
static int parse_whole_vector(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool *takenp)
{
	struct ptx_operand elements[VECTOR_MAX] = {};
	struct ptx_parser *p = &b->p;
	const struct ptx_name *name;
	uint32_t at, number, element, n;
	int r;

	*takenp = false;
	if (p->token.kind != PTX_TOKEN_NAME || *p->lexer.pos == '.')
		return 0;
	at = find_body_name(b->names, &p->token, &number);
	name = at ? ptx_names_at(b->names, at - 1) : NULL;
	if (!name || name->kind != PTX_NAME_REG || name->type >> 8 <= 1)
		return 0;
	*takenp = true;
	n = name->type >> 8;
	for (element = 0; element < n; element++) {
		elements[element].kind = PTX_OPERAND_REG;
		r = ptx_use_register(b, name->index + number * n + element,
			name->type & 0xff, &elements[element].index);
		if (r)
			return r;
	}
	ptx_next(p);
	return ptx_finish_vector(b, elements, n, operand);
}

/* %tid and its kind without a component: x, y, z, and 0. */
static int parse_sreg_vector(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool *takenp)
{
	static const struct {
		const char *text;
		uint32_t x;
	} vectors[] = {
		{ "%tid", PTX_SREG_TID_X },
		{ "%ntid", PTX_SREG_NTID_X },
		{ "%ctaid", PTX_SREG_CTAID_X },
		{ "%nctaid", PTX_SREG_NCTAID_X },
		{ "%clusterid", PTX_SREG_CLUSTERID_X },
		{ "%nclusterid", PTX_SREG_NCLUSTERID_X },
		{ "%cluster_ctaid", PTX_SREG_CLUSTER_CTAID_X },
		{ "%cluster_nctaid", PTX_SREG_CLUSTER_NCTAID_X },
	};
	struct ptx_operand elements[4] = {};
	struct ptx_parser *p = &b->p;

	*takenp = false;
	if (p->token.kind != PTX_TOKEN_NAME || *p->token.text != '%' ||
		*p->lexer.pos == '.')
		return 0;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		if (!ptx_token_is(&p->token, PTX_TOKEN_NAME, vectors[i].text))
			continue;
		*takenp = true;
		ptx_next(p);
		for (uint32_t k = 0; k < 3; k++) {
			elements[k].kind = PTX_OPERAND_SREG;
			elements[k].index = vectors[i].x + k;
		}
		elements[3].kind = PTX_OPERAND_INT;
		return ptx_finish_vector(b, elements, 4, operand);
	}
	return 0;
}

int ptx_parse_vector(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool is_destination)
{
	bool taken;
	int r;

	if (b->p.token.kind == '{')
		return parse_braces(b, operand, is_destination);
	r = parse_whole_vector(b, operand, &taken);
	if (r || taken)
		return r;
	if (!is_destination) {
		r = parse_sreg_vector(b, operand, &taken);
		if (r || taken)
			return r;
	}
	return is_destination ? ptx_parse_destination(b, operand)
			      : ptx_parse_source(b, operand);
}
