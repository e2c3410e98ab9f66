/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: tokens, errors and what is skipped
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/parser.h"

int ptx_fail_at(
	struct ptx_parser *p, int condition, uint32_t line, const char *format, ...)
{
	struct ptx_error *error = p->error;
	va_list ap;

	error->line = line;
	va_start(ap, format);
	vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
	return condition;
}

int ptx_fail(struct ptx_parser *p, const char *format, ...)
{
	struct ptx_error *error = p->error;
	va_list ap;

	error->line = p->token.line;
	/* a token that is none explains itself better than what expected another */
	if (p->token.kind == PTX_TOKEN_BAD) {
		snprintf(error->message, sizeof(error->message), "%s", p->token.text);
		return PTX_E_INVALID;
	}
	va_start(ap, format);
	vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
	return PTX_E_INVALID;
}

void ptx_next(struct ptx_parser *p)
{
	ptx_lexer_next(&p->lexer, &p->token);
}

bool ptx_take(struct ptx_parser *p, int punct)
{
	if (p->token.kind != punct)
		return false;
	ptx_next(p);
	return true;
}

int ptx_expect(struct ptx_parser *p, int punct)
{
	if (ptx_take(p, punct))
		return 0;
	if (p->token.kind == PTX_TOKEN_END)
		return ptx_fail(p, "'%c' is missing at the end of the text", punct);
	return ptx_fail(
		p, "'%c' is missing before \"%.*s\"", punct, PTX_SHOWN(&p->token));
}

int ptx_expect_name(struct ptx_parser *p, struct ptx_token *namep)
{
	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_fail(p, "a name is missing");
	*namep = p->token;
	ptx_next(p);
	return 0;
}

int ptx_skip_statement(struct ptx_parser *p)
{
	while (p->token.kind != ';') {
		if (p->token.kind == PTX_TOKEN_END || p->token.kind == PTX_TOKEN_BAD)
			return ptx_fail(p, "';' is missing at the end of the text");
		ptx_next(p);
	}
	ptx_next(p);
	return 0;
}

int ptx_skip_braces(struct ptx_parser *p)
{
	struct ptx_block block = { .depth = 1, .lowest = 1 };
	enum ptx_block_end end;

	if (p->token.kind != '{')
		return ptx_expect(p, '{');
	do
		end = ptx_lexer_skip_block(&p->lexer, &block);
	while (end == PTX_BLOCK_VARIABLE);
	if (end == PTX_BLOCK_UNENDED)
		return ptx_fail(p, "'}' is missing at the end of the text");
	ptx_next(p);
	return ptx_expect(p, '}');
}

static int skip_section(struct ptx_parser *p)
{
	while (p->token.kind != '{') {
		if (p->token.kind == PTX_TOKEN_END || p->token.kind == PTX_TOKEN_BAD)
			return ptx_fail(p, "a section without a block");
		ptx_next(p);
	}
	return ptx_skip_braces(p);
}

int ptx_skip_directive(struct ptx_parser *p, bool *takenp)
{
	const struct ptx_token *token = &p->token;

	*takenp = true;
	if (ptx_token_is(token, PTX_TOKEN_DOT, "loc") ||
		ptx_token_is(token, PTX_TOKEN_DOT, "file")) {
		ptx_lexer_skip_line(&p->lexer);
		ptx_next(p);
		return 0;
	}
	if (ptx_token_is(token, PTX_TOKEN_DOT, "pragma"))
		return ptx_skip_statement(p);
	if (ptx_token_is(token, PTX_TOKEN_DOT, "section"))
		return skip_section(p);
	/* @@DWARF of PTX 1.x: a line each */
	if (token->kind == '@' && *p->lexer.pos == '@') {
		ptx_lexer_skip_line(&p->lexer);
		ptx_next(p);
		return 0;
	}
	*takenp = false;
	return 0;
}
