/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX lexer
 *
 * Every loop stops at the NUL that ends the text, so no position is compared with
 * an end. Text beyond ASCII is accepted in strings and comments only.
 */

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/lexer.h"
#include "ptx/module.h"

enum {
	C_NAME = 1 << 0, /* may continue an identifier */
	C_DIGIT = 1 << 1,
	C_HEX = 1 << 2,
	C_SPACE = 1 << 3, /* white space but the end of a line */
	C_PUNCT = 1 << 4,
	C_BLOCK = 1 << 5, /* relevant while a block is skipped */
};

/* clang-format off */
static const unsigned char classes[256] = {
	['0' ... '9'] = C_NAME | C_DIGIT | C_HEX,
	['a' ... 'f'] = C_NAME | C_HEX, ['g' ... 'z'] = C_NAME,
	['A' ... 'F'] = C_NAME | C_HEX, ['G' ... 'Z'] = C_NAME,
	['_'] = C_NAME, ['$'] = C_NAME,
	[' '] = C_SPACE, ['\t'] = C_SPACE, ['\r'] = C_SPACE,
	['\v'] = C_SPACE, ['\f'] = C_SPACE,
	['('] = C_PUNCT, [')'] = C_PUNCT, ['{'] = C_PUNCT | C_BLOCK,
	['}'] = C_PUNCT | C_BLOCK,
	['['] = C_PUNCT, [']'] = C_PUNCT, ['<'] = C_PUNCT, ['>'] = C_PUNCT,
	[','] = C_PUNCT, [';'] = C_PUNCT | C_BLOCK, [':'] = C_PUNCT | C_BLOCK,
	['@'] = C_PUNCT,
	['!'] = C_PUNCT, ['|'] = C_PUNCT, ['+'] = C_PUNCT, ['-'] = C_PUNCT,
	['*'] = C_PUNCT, ['/'] = C_PUNCT | C_BLOCK, ['%'] = C_PUNCT, ['='] = C_PUNCT,
	['~'] = C_PUNCT, ['^'] = C_PUNCT, ['&'] = C_PUNCT, ['?'] = C_PUNCT,
	['\0'] = C_BLOCK, ['\n'] = C_BLOCK, ['"'] = C_BLOCK,
};
/* clang-format on */

static inline unsigned int class_of(char c)
{
	return classes[(unsigned char)c];
}

static void token_bad(struct ptx_token *token, const char *what)
{
	token->kind = PTX_TOKEN_BAD;
	token->text = what;
	token->size = 0;
}

/* Returns: false where a comment does not end. */
static bool skip_comment(struct ptx_lexer *lexer)
{
	const char *p = lexer->pos + 2;

	if (lexer->pos[1] == '/') {
		while (*p && *p != '\n')
			p++;
		lexer->pos = p;
		return true;
	}
	for (; *p; p++) {
		if (*p == '*' && p[1] == '/') {
			lexer->pos = p + 2;
			return true;
		}
		lexer->line += *p == '\n';
	}
	lexer->pos = p;
	return false;
}

static inline bool at_comment(const char *p)
{
	return *p == '/' && (p[1] == '/' || p[1] == '*');
}

static bool skip_space(struct ptx_lexer *lexer)
{
	for (;;) {
		if (class_of(*lexer->pos) & C_SPACE) {
			lexer->pos++;
		} else if (*lexer->pos == '\n') {
			lexer->line++;
			lexer->pos++;
		} else if (at_comment(lexer->pos)) {
			if (!skip_comment(lexer))
				return false;
		} else {
			return true;
		}
	}
}

static void lex_name(struct ptx_lexer *lexer, struct ptx_token *token)
{
	const char *p = lexer->pos + 1;

	while (class_of(*p) & C_NAME)
		p++;
	token->kind = PTX_TOKEN_NAME;
	token->text = lexer->pos;
	token->size = p - lexer->pos;
	lexer->pos = p;
	if (token->size > PTX_NAME_SIZE_MAX)
		token_bad(token, "an identifier is too long");
}

/* A modifier may contain `::`, as in .L2::128B or .shared::cta. */
static void lex_dot(struct ptx_lexer *lexer, struct ptx_token *token)
{
	const char *p = lexer->pos + 1;

	token->kind = PTX_TOKEN_DOT;
	token->text = p;
	for (;;) {
		while (class_of(*p) & C_NAME)
			p++;
		if (p == token->text || p[0] != ':' || p[1] != ':' ||
			!(class_of(p[2]) & C_NAME))
			break;
		p += 2;
	}
	token->size = p - token->text;
	lexer->pos = p;
	if (!token->size)
		token_bad(token, "a point without a name");
	else if (token->size > PTX_NAME_SIZE_MAX)
		token_bad(token, "a modifier is too long");
}

static void lex_string(struct ptx_lexer *lexer, struct ptx_token *token)
{
	const char *p = lexer->pos + 1;

	token->kind = PTX_TOKEN_STRING;
	token->text = p;
	while (*p && *p != '"' && *p != '\n') {
		if (*p == '\\' && p[1] && p[1] != '\n')
			p++;
		p++;
	}
	token->size = p - token->text;
	if (*p == '"')
		p++;
	else
		token_bad(token, "a string does not end");
	lexer->pos = p;
}

/* 0f3F800000 and 0d3FF0000000000000: the bits in hexadecimal. */
static void lex_float_bits(struct ptx_lexer *lexer, struct ptx_token *token)
{
	bool is_single = (lexer->pos[1] | 0x20) == 'f';
	const char *p = lexer->pos + 2, *start = p;

	token->kind = is_single ? PTX_TOKEN_F32 : PTX_TOKEN_F64;
	token->value = 0;
	for (; class_of(*p) & C_HEX; p++)
		if (p - start < 16)
			token->value = token->value << 4 |
				       (class_of(*p) & C_DIGIT ? *p - '0'
							       : (*p | 0x20) - 'a' + 10);
	lexer->pos = p;
	if (p - start != (is_single ? 8 : 16) || class_of(*p) & C_NAME)
		token_bad(token, "a floating-point literal needs 8 or 16 digits");
}

/* In a library the locale of the process may have another decimal point. */
static void lex_decimal_float(
	struct ptx_lexer *lexer, struct ptx_token *token, const char *p)
{
	char digits[64], *end;
	locale_t c_locale;
	size_t size;
	double value;

	if (*p == '.')
		for (p++; class_of(*p) & C_DIGIT; p++)
			;
	if ((*p | 0x20) == 'e') {
		p++;
		if (*p == '+' || *p == '-')
			p++;
		while (class_of(*p) & C_DIGIT)
			p++;
	}
	size = p - lexer->pos;
	if (size >= sizeof(digits) || class_of(*p) & C_NAME) {
		lexer->pos = p;
		token_bad(token, "a malformed floating-point literal");
		return;
	}
	memcpy(digits, lexer->pos, size);
	digits[size] = '\0';
	c_locale = newlocale(LC_ALL_MASK, "C", NULL);
	value = strtod_l(digits, &end, c_locale);
	freelocale(c_locale);
	lexer->pos = p;
	token->kind = PTX_TOKEN_F64;
	memcpy(&token->value, &value, sizeof(value));
	if (*end)
		token_bad(token, "a malformed floating-point literal");
}

static void lex_int(struct ptx_lexer *lexer, struct ptx_token *token, const char *p,
	unsigned int base)
{
	const char *start = p;
	bool overflow = false;
	unsigned int digit;

	token->kind = PTX_TOKEN_INT;
	token->value = 0;
	for (; class_of(*p) & C_HEX; p++) {
		digit = class_of(*p) & C_DIGIT ? *p - '0' : (*p | 0x20) - 'a' + 10;
		if (digit >= base)
			break;
		overflow |= __builtin_mul_overflow(token->value, base, &token->value);
		overflow |= __builtin_add_overflow(token->value, digit, &token->value);
	}
	if (p != start && *p == 'U')
		p++;
	lexer->pos = p;
	if (p == start || class_of(*p) & C_NAME)
		token_bad(token, "a malformed number");
	else if (overflow)
		token_bad(token, "a number does not fit 64 bits");
}

static void lex_number(struct ptx_lexer *lexer, struct ptx_token *token)
{
	const char *p = lexer->pos;

	if (*p == '0') {
		switch (p[1] | 0x20) {
		case 'x':
			lex_int(lexer, token, p + 2, 16);
			return;
		case 'b':
			lex_int(lexer, token, p + 2, 2);
			return;
		case 'f':
		case 'd':
			lex_float_bits(lexer, token);
			return;
		}
	}
	while (class_of(*p) & C_DIGIT)
		p++;
	if (*p == '.' || (*p | 0x20) == 'e')
		lex_decimal_float(lexer, token, p);
	else
		lex_int(lexer, token, lexer->pos, *lexer->pos == '0' ? 8 : 10);
}

static void lex_punct(struct ptx_lexer *lexer, struct ptx_token *token)
{
	const char *p = lexer->pos++;

	token->kind = *p;
	token->size = 1;
	if (p[0] == p[1] && (*p == '<' || *p == '>')) {
		token->kind = *p == '<' ? PTX_TOKEN_SHIFT_LEFT : PTX_TOKEN_SHIFT_RIGHT;
		token->size = 2;
		lexer->pos++;
	}
}

void ptx_lexer_next(struct ptx_lexer *lexer, struct ptx_token *token)
{
	bool ended = skip_space(lexer);
	const char *p = lexer->pos;
	unsigned int class = class_of(*p);

	token->line = lexer->line;
	token->text = p;
	token->size = 0;
	if (!ended)
		token_bad(token, "a comment does not end");
	else if (class & C_DIGIT)
		lex_number(lexer, token);
	else if (class & C_NAME ||
		 (*p == '%' && class_of(p[1]) & C_NAME && !(class_of(p[1]) & C_DIGIT)))
		lex_name(lexer, token);
	else if (*p == '.')
		lex_dot(lexer, token);
	else if (*p == '"')
		lex_string(lexer, token);
	else if (class & C_PUNCT)
		lex_punct(lexer, token);
	else if (!*p)
		token->kind = PTX_TOKEN_END;
	else
		token_bad(token, "a character that PTX does not have");
	if (token->kind >= PTX_TOKEN_INT && token->kind <= PTX_TOKEN_F64)
		token->size = lexer->pos - p;
}

void ptx_lexer_skip_line(struct ptx_lexer *lexer)
{
	while (*lexer->pos && *lexer->pos != '\n')
		lexer->pos++;
}

static void skip_string(struct ptx_lexer *lexer)
{
	struct ptx_token token;

	lex_string(lexer, &token);
}

static bool is_word(const char *text, const char *word, size_t size)
{
	return !strncmp(text, word, size) && !(class_of(text[size]) & C_NAME);
}

/* At the beginning of a statement: advances to its .global or .const, if it has one. */
static bool find_variable(struct ptx_lexer *lexer)
{
	struct ptx_lexer ahead = *lexer;

	if (!skip_space(&ahead) || *ahead.pos != '.' ||
		(!is_word(ahead.pos, ".global", 7) && !is_word(ahead.pos, ".const", 6)))
		return false;
	*lexer = ahead;
	return true;
}

enum ptx_block_end ptx_lexer_skip_block(struct ptx_lexer *lexer, struct ptx_block *block)
{
	char c;

	for (;;) {
		while (!(class_of(*lexer->pos) & C_BLOCK))
			lexer->pos++;
		c = *lexer->pos;
		switch (c) {
		case '\0':
			return PTX_BLOCK_UNENDED;
		case '"':
			skip_string(lexer);
			continue;
		case '/':
			if (!at_comment(lexer->pos))
				break;
			if (!skip_comment(lexer))
				return PTX_BLOCK_UNENDED;
			continue;
		case '\n':
			lexer->line++;
			break;
		case '{':
			block->depth++;
			break;
		case '}':
			if (!--block->depth)
				return PTX_BLOCK_CLOSED;
			if (block->lowest > block->depth)
				block->lowest = block->depth;
			break;
		}
		lexer->pos++;
		if (c != '/' && c != '\n' && find_variable(lexer))
			return PTX_BLOCK_VARIABLE;
	}
}

bool ptx_token_is(const struct ptx_token *token, int kind, const char *text)
{
	/* Most are distinguished by their first characters. */
	return token->kind == kind && *token->text == *text &&
	       !strncmp(token->text, text, token->size) && !text[token->size];
}
