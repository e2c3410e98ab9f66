/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module's text with symbols renamed
 *
 * The text is copied except for names of symbols. A name in a body may be that of a
 * register, label or local variable that hides the symbol: it is then renamed throughout
 * the body, which changes nothing. The opcode at the beginning of a statement is not a
 * name of the program.
 */

#include <stdlib.h>
#include <string.h>

#include "link/text.h"
#include "ptx/lexer.h"
#include "ptx/names.h"

bool text_add(struct text *text, const char *bytes, size_t size)
{
	size_t capacity = text->capacity ? text->capacity : 4096;
	char *grown;

	if (size > PTX_TEXT_SIZE_MAX - text->size)
		return false;
	while (capacity - text->size <= size)
		capacity *= 2;
	if (capacity != text->capacity) {
		grown = realloc(text->bytes, capacity);
		if (!grown)
			return false;
		text->bytes = grown;
		text->capacity = capacity;
	}
	if (size)
		memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	text->bytes[text->size] = '\0';
	return true;
}

struct walk {
	const struct ptx_module *module;
	const struct text_renames *renames;
	struct ptx_lexer lexer;
	struct ptx_token token;
	unsigned int depth;    /* open braces */
	bool is_initialiser;   /* after the = of a variable */
	bool begins_statement; /* the token is the first of one */
	bool is_behind_guard;  /* @ was read, its predicate was not */
	const char *copied;    /* everything before it was copied */
};

static bool is_renamed(const struct walk *walk)
{
	const struct ptx_token *token = &walk->token;
	const struct ptx_name *name;
	uint32_t at;

	at = ptx_names_find(walk->module->names, token->text, token->size, 0);
	if (!at)
		return false;
	name = ptx_names_at(walk->module->names, at - 1);
	if (name->kind == PTX_SYMBOL_FUNCTION)
		return walk->renames->functions[name->index];
	return name->kind == PTX_SYMBOL_VARIABLE && walk->renames->variables[name->index];
}

/* A word at the beginning of a statement is an opcode, unless a colon makes it a
 * label. */
static bool is_opcode(const struct walk *walk)
{
	struct ptx_lexer lexer = walk->lexer;
	struct ptx_token next;

	if (!walk->depth || walk->is_initialiser || !walk->begins_statement)
		return false;
	ptx_lexer_next(&lexer, &next);
	return next.kind != ':';
}

static bool add_until(struct walk *walk, struct text *text, const char *end)
{
	const char *from = walk->copied;

	walk->copied = end;
	return text_add(text, from, (size_t)(end - from));
}

static bool take_name(struct walk *walk, struct text *text)
{
	if (!is_renamed(walk) || is_opcode(walk))
		return true;
	return add_until(walk, text, walk->token.text + walk->token.size) &&
	       text_add(text, walk->renames->suffix, strlen(walk->renames->suffix));
}

/* The token after this one. */
static void step(struct walk *walk)
{
	int kind = walk->token.kind;

	if (!walk->depth && (kind == '=' || kind == ';'))
		walk->is_initialiser = kind == '=';
	if (kind == '{') {
		/* A body or a scope, or the elements of a vector. */
		walk->begins_statement |= !walk->depth++;
	} else if (kind == '@') {
		walk->is_behind_guard = true;
		walk->begins_statement = false;
	} else if (walk->is_behind_guard) {
		/* The guard ends with its predicate; a ! may precede it. */
		walk->is_behind_guard = kind == '!';
		walk->begins_statement = kind != '!';
	} else {
		walk->depth -= kind == '}' && walk->depth;
		walk->begins_statement = kind == ';' || kind == '}' || kind == ':';
	}
	if (ptx_token_is(&walk->token, PTX_TOKEN_DOT, "loc") ||
		ptx_token_is(&walk->token, PTX_TOKEN_DOT, "file")) {
		ptx_lexer_skip_line(&walk->lexer);
		walk->begins_statement = true;
	}
}

bool text_add_module(struct text *text, const struct ptx_module *module,
	const struct text_renames *renames)
{
	const char *start = module->text + module->head_size;
	struct walk walk = {
		.module = module,
		.renames = renames,
		.lexer = { .pos = start, .line = 1 },
		.copied = start,
	};

	for (;;) {
		ptx_lexer_next(&walk.lexer, &walk.token);
		if (walk.token.kind == PTX_TOKEN_END || walk.token.kind == PTX_TOKEN_BAD)
			break;
		if (walk.token.kind == PTX_TOKEN_NAME && !take_name(&walk, text))
			return false;
		step(&walk);
	}
	return add_until(&walk, text, module->text + strlen(module->text)) &&
	       text_add(text, "\n", 1);
}
