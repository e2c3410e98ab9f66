/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * PTX lexer
 *
 * Reads one token at a time from a text that ends with a NUL. A token of one
 * punctuation character has that character as its kind.
 */

#include <stdbool.h>
#include <stdint.h>

enum ptx_token_kind {
	PTX_TOKEN_END = 0,
	_PTX_TOKEN_FIRST = 256,
	PTX_TOKEN_NAME,	      /* identifier, %register, opcode */
	PTX_TOKEN_DOT,	      /* .directive, .type, .modifier: text without the point */
	PTX_TOKEN_INT,	      /* value */
	PTX_TOKEN_F32,	      /* value: bits */
	PTX_TOKEN_F64,	      /* value: bits */
	PTX_TOKEN_STRING,     /* text without the quotes */
	PTX_TOKEN_SHIFT_LEFT, /* << */
	PTX_TOKEN_SHIFT_RIGHT,
	PTX_TOKEN_BAD, /* text: what is wrong, a static string */
	_PTX_TOKEN_N,
};

struct ptx_token {
	int kind;
	uint32_t line;
	uint32_t size;
	const char *text;
	uint64_t value;
};

struct ptx_lexer {
	const char *pos;
	uint32_t line;
};

void ptx_lexer_next(struct ptx_lexer *lexer, struct ptx_token *token);

/* Advances to the next line: .loc and .file end there. */
void ptx_lexer_skip_line(struct ptx_lexer *lexer);

/* Where a block that is skipped has been left, at first { 1, 1 }. */
struct ptx_block {
	unsigned int depth;  /* open braces */
	unsigned int lowest; /* the least that there were since this was set */
};

enum ptx_block_end {
	PTX_BLOCK_UNENDED,  /* the text ends first */
	PTX_BLOCK_CLOSED,   /* at the brace that closes the block */
	PTX_BLOCK_VARIABLE, /* at a statement that begins with .global or .const */
};

/* Braces and statements in strings and comments do not count. */
enum ptx_block_end ptx_lexer_skip_block(struct ptx_lexer *lexer, struct ptx_block *block);

bool ptx_token_is(const struct ptx_token *token, int kind, const char *text);
