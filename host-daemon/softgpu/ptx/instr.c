/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: instructions
 *
 * A valid PTX instruction that is not decoded keeps only its name, guard and line; its
 * operands are skipped.
 */

#include <string.h>

#include "ptx/modifier.h"
#include "ptx/parser.h"

#define OP_TEXT_MAX 256		/* an opcode with its modifiers; longest met: 90 */
#define OP_TEXTS_MAX (1u << 20) /* all spellings of a body; largest met: 3 KiB */

struct op_text {
	char text[OP_TEXT_MAX];
	uint32_t size;
};

static int add_word(struct ptx_parser *p, struct op_text *name)
{
	bool is_dot = p->token.kind == PTX_TOKEN_DOT;

	if (name->size + is_dot + p->token.size >= OP_TEXT_MAX)
		return ptx_fail(p, "an opcode with too many modifiers");
	if (is_dot)
		name->text[name->size++] = '.';
	memcpy(name->text + name->size, p->token.text, p->token.size);
	name->size += p->token.size;
	return 0;
}

/* Each spelling is kept once. */
static int keep_name(
	struct ptx_body_parser *b, const struct op_text *name, uint32_t *offsetp)
{
	struct ptx_name entry = { .size = name->size, .index = b->op_text.n };
	uint32_t at = ptx_names_find(b->op_names, name->text, name->size, 0);
	char *slot;

	if (at) {
		*offsetp = ptx_names_at(b->op_names, at - 1)->index;
		return 0;
	}
	if (b->op_text.n > OP_TEXTS_MAX)
		return ptx_fail(&b->p, "too many different opcodes");
	slot = ptx_array_push(&b->op_text, name->size + 1, 1);
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	memcpy(slot, name->text, name->size);
	*offsetp = entry.index;
	/* the table wants text that does not move */
	entry.text = ptx_arena_string(b->p.arena, name->text, name->size);
	if (!entry.text)
		return vgpu_error_origin(-ENOMEM);
	return ptx_names_add(b->op_names, &entry);
}

/* Later words that make another instruction of the first: st.bulk is not a st. There is
 * no instruction of the first word alone if that is not decoded. */
static int take_more_words(struct ptx_body_parser *b, struct ptx_instr *instr,
	struct op_text *name, bool *decodedp)
{
	bool has_longer = !*decodedp || instr->op == PTX_OP_ST ||
			  instr->op == PTX_OP_BARRIER || instr->op == PTX_OP_MMA ||
			  instr->op == PTX_OP_RED;
	enum ptx_opcode_class class;
	struct op_text longer;
	uint16_t op;
	int r;

	while (has_longer && b->p.token.kind == PTX_TOKEN_DOT) {
		longer = *name;
		r = add_word(&b->p, &longer);
		if (r)
			return r;
		class = ptx_opcode_find(longer.text, longer.size, &op);
		if (class == PTX_OPCODE_UNKNOWN)
			break;
		if (class == PTX_OPCODE_DECODED) {
			instr->op = op;
			*decodedp = true;
		}
		*name = longer;
		ptx_next(&b->p);
	}
	return 0;
}

/* Takes the modifiers. *decodedp is cleared where one is not decoded. */
static int parse_modifiers(struct ptx_body_parser *b, struct ptx_instr *instr,
	struct op_text *name, bool *decodedp, bool *policyp)
{
	struct ptx_parser *p = &b->p;
	int r;

	for (; p->token.kind == PTX_TOKEN_DOT; ptx_next(p)) {
		r = add_word(p, name);
		if (r)
			return r;
		if (!*decodedp)
			continue;
		switch (ptx_modifier_apply(instr, p->token.text, p->token.size)) {
		case PTX_MODIFIER_OK:
			break;
		case PTX_MODIFIER_CACHE_HINT:
			*policyp = true;
			break;
		case PTX_MODIFIER_REPEATED:
		case PTX_MODIFIER_UNKNOWN:
			*decodedp = false;
			break;
		}
	}
	return 0;
}

static int append(struct ptx_body_parser *b, const struct ptx_instr *instr)
{
	struct ptx_instr *slot;

	if (b->instrs.n == PTX_INSTRS_MAX)
		return ptx_fail(&b->p, "more than %u instructions", PTX_INSTRS_MAX);
	slot = ptx_array_push(&b->instrs, 1, sizeof(*slot));
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	*slot = *instr;
	return 0;
}

static int parse_unsupported(struct ptx_body_parser *b, const struct ptx_instr *decoded)
{
	struct ptx_instr instr = {
		.op = PTX_OP_UNSUPPORTED,
		.guard = decoded->guard,
		.guard_negated = decoded->guard_negated,
		.line = decoded->line,
		.name = decoded->name,
		.first_operand = b->operands.n,
		.vector = 1,
	};
	int r;

	r = ptx_skip_statement(&b->p);
	if (r)
		return r;
	if (b->body->first_unsupported == PTX_INDEX_NONE)
		b->body->first_unsupported = b->instrs.n;
	return append(b, &instr);
}

/*
 * Checks that every consumer would have to repeat. Too many types belong to a form that
 * is not decoded, as does an unknown combination of modifiers: whether PTX has it is not
 * known here, and the rest of the module does not depend on it.
 */
static int check_instr(struct ptx_body_parser *b, const struct ptx_instr *instr,
	const struct op_text *name)
{
	if (!ptx_opcode_takes_types(instr->op, instr->n_types))
		return ptx_fail(&b->p, "%.*s has %u types", (int)name->size, name->text,
			instr->n_types);
	if ((instr->op == PTX_OP_BAR || instr->op == PTX_OP_BARRIER) && !instr->mode)
		return ptx_fail(&b->p, "%.*s is no barrier operation", (int)name->size,
			name->text);
	return 0;
}

static int finish(struct ptx_body_parser *b, struct ptx_instr *instr, bool has_policy)
{
	struct ptx_operand policy = {};
	int r;

	if (has_policy && ptx_take(&b->p, ',')) {
		r = ptx_parse_source(b, &policy);
		if (r)
			return r;
	}
	r = ptx_expect(&b->p, ';');
	return r ? r : append(b, instr);
}

int ptx_parse_instr(struct ptx_body_parser *b, const struct ptx_token *opcode,
	uint32_t guard, bool guard_negated)
{
	struct ptx_instr instr = {
		.guard = guard,
		.guard_negated = guard_negated,
		.line = opcode->line,
	};
	bool decoded, has_policy = false;
	struct op_text name = {};
	int r;

	switch (ptx_opcode_find(opcode->text, opcode->size, &instr.op)) {
	case PTX_OPCODE_UNKNOWN:
		return ptx_fail_at(&b->p, PTX_E_INVALID, opcode->line,
			"\"%.*s\" is no instruction", PTX_SHOWN(opcode));
	case PTX_OPCODE_UNSUPPORTED:
		decoded = false;
		break;
	default:
		decoded = true;
		break;
	}
	memcpy(name.text, opcode->text, opcode->size);
	name.size = opcode->size;
	r = take_more_words(b, &instr, &name, &decoded);
	if (!r)
		r = parse_modifiers(b, &instr, &name, &decoded, &has_policy);
	if (r)
		return r;
	r = keep_name(b, &name, &instr.name);
	if (r)
		return r;
	if (!decoded || ptx_opcode_has_more_types(instr.op, instr.n_types))
		return parse_unsupported(b, &instr);
	if (!instr.vector)
		instr.vector = 1;
	r = check_instr(b, &instr, &name);
	if (!r)
		r = ptx_parse_operands(b, &instr);
	return r ? r : finish(b, &instr, has_policy);
}
