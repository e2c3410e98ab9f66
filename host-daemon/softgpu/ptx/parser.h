/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * PTX parser, inside
 *
 * struct ptx_parser is a position in the text and the current token; every
 * ptx_parse_*() starts at the current token and leaves the first one that it did
 * not take. All of them return 0, -errno or PTX_E_*; the latter only through
 * ptx_fail(), which has filled the error.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/error.h"

#include "ptx/arena.h"
#include "ptx/lexer.h"
#include "ptx/module.h"
#include "ptx/names.h"

struct ptx_parser {
	struct ptx_module *module;
	struct ptx_lexer lexer;
	struct ptx_token token;
	struct ptx_error *error;
	struct ptx_arena *arena; /* of the module or body under construction */
	bool is_range;		 /* a constant in <>: its end is no comparison */

	struct ptx_array functions; /* of the module while it is read */
	struct ptx_array variables;
	struct ptx_array relocs;
	struct ptx_array registers;	/* struct ptx_declaration */
	struct ptx_array inside;	/* struct ptx_inside */
	struct ptx_names *inside_names; /* of the function that is read */
	uint64_t n_registers;
	uint32_t n_params;   /* of all functions or prototypes so far */
	uint64_t init_bytes; /* written initialisers so far */
};

/* For %.*s: a token as far as a message has room for it. */
#define PTX_SHOWN(_token)                                                                \
	(int)((_token)->size < 160 ? (_token)->size : 160), (_token)->text

/* Fills the error with a sentence about the current line. Returns: PTX_E_INVALID. */
int ptx_fail(struct ptx_parser *p, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

/* The same about another line and with another condition. */
int ptx_fail_at(struct ptx_parser *p, int condition, uint32_t line, const char *format,
	...) __attribute__((__format__(__printf__, 4, 5)));

/* Takes the current token. */
void ptx_next(struct ptx_parser *p);

/* Takes the current token if it is that punctuation. Returns: whether it was. */
bool ptx_take(struct ptx_parser *p, int punct);

/* Takes the punctuation or fails with a sentence. */
int ptx_expect(struct ptx_parser *p, int punct);

/* Takes an identifier or fails; *namep is the token. */
int ptx_expect_name(struct ptx_parser *p, struct ptx_token *namep);

/*
 * Skips directives without effect here (.loc, .file, .pragma, .section). *takenp: whether
 * the current token was one.
 */
int ptx_skip_directive(struct ptx_parser *p, bool *takenp);

/* Takes everything up to and including the next semicolon. */
int ptx_skip_statement(struct ptx_parser *p);

/*
 * Skips from the open brace of a function to the place after its closing brace, and
 * creates the variables of the module that are declared between.
 */
int ptx_skip_body(struct ptx_parser *p, const struct ptx_token *function);

/* Takes an open brace and everything up to the one that closes it. */
int ptx_skip_braces(struct ptx_parser *p);

/*
 * Constants
 */

struct ptx_constant {
	uint8_t kind;	/* PTX_OPERAND_INT, F32, F64 or SYMBOL */
	uint8_t symbol; /* of a SYMBOL: enum ptx_symbol */
	bool generic;	/* of a SYMBOL: generic(symbol) */
	uint8_t shift;	/* of a SYMBOL: by mask(symbol) */
	uint8_t size;	/* of a SYMBOL: bytes of the mask, 0 if there is none */
	uint32_t index;
	uint64_t value; /* integer, bits, or offset from the symbol */
};

/* An integer expression. */
int ptx_parse_int(struct ptx_parser *p, uint64_t *valuep);

/* An expression within limits, for sizes and counts. */
int ptx_parse_count(
	struct ptx_parser *p, uint64_t max, const char *what, uint64_t *valuep);

/* A value of an initialiser: number, or address of a module symbol. */
int ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *constant);

/*
 * Declarations
 */

/* One name of a declaration with the words before and after it. */
struct ptx_declaration {
	uint32_t line;
	uint8_t linkage; /* enum ptx_linkage */
	uint8_t space;	 /* enum ptx_space */
	uint8_t type;
	uint8_t vector; /* 1 unless .v2, .v4, .v8 */
	bool managed;
	bool is_pointer; /* .ptr of a parameter */
	bool is_range;	 /* name<count> of registers */
	bool is_array;
	bool is_unsized; /* the first dimension is empty */
	uint32_t align;	 /* 0 unless written */
	struct ptx_token name;
	uint32_t n_dimensions;
	uint64_t dimensions[8];
	uint64_t count; /* elements, or registers of a range */
};

/* The words before the name: state space (if not yet set), type, alignment, ... */
int ptx_parse_declaration_head(struct ptx_parser *p, struct ptx_declaration *declaration);

/* The name with its dimensions or <count>. */
int ptx_parse_declarator(struct ptx_parser *p, struct ptx_declaration *declaration);

/* Makes a variable of a declaration: size and alignment, without initialiser. */
int ptx_make_variable(struct ptx_parser *p, const struct ptx_declaration *declaration,
	struct ptx_variable *variable);

/* `( parameters )`; *sizep is the size of their block. */
int ptx_parse_params(
	struct ptx_parser *p, struct ptx_param **paramsp, uint32_t *np, uint32_t *sizep);

/* `= initialiser` of a module variable, after the equals sign. */
int ptx_parse_initialiser(struct ptx_parser *p, const struct ptx_declaration *declaration,
	struct ptx_variable *variable);

/* The same of a texture, sampler or surface. */
int ptx_parse_opaque(struct ptx_parser *p, struct ptx_variable *variable);

/*
 * Bodies
 */

/* Kinds of names in the table of a body; enum ptx_symbol has those of a module. */
enum ptx_body_name {
	PTX_NAME_REG = 16, /* index: first in reg_map, count, type */
	PTX_NAME_LOCAL,
	PTX_NAME_PARAM,
	PTX_NAME_RETURN,
	PTX_NAME_PROTOTYPE,
	PTX_NAME_BRANCH_TABLE,
	PTX_NAME_INSIDE, /* index: of the module's variable */
};

/* Spaces of names in the table of a body. */
enum {
	PTX_NAMES_PLAIN,
	PTX_NAMES_RANGE, /* %r of %r<10> */
};

struct ptx_label_ref {
	struct ptx_token name;
	uint32_t scope;
	uint32_t operand; /* or place in branch_targets */
	bool is_table;
};

struct ptx_body_parser {
	struct ptx_parser p;
	struct ptx_function *function;
	struct ptx_body *body;

	struct ptx_names *names;  /* by scope, cut when it closes */
	struct ptx_names *labels; /* space: scope */
	struct ptx_names *op_names;

	uint32_t depth; /* open braces; the body's own is the first */
	uint32_t scope_stack[PTX_NESTING_MAX];
	uint32_t names_mark[PTX_NESTING_MAX];
	struct ptx_array scopes; /* uint32_t: scope around each */

	struct ptx_array instrs; /* what becomes the arrays of the body */
	struct ptx_array operands;
	struct ptx_array registers;
	struct ptx_array label_at;
	struct ptx_array branch_tables;
	struct ptx_array branch_targets;
	struct ptx_array variables;
	struct ptx_array prototypes;
	struct ptx_array op_text;

	struct ptx_array reg_map; /* declared register to its number */
	struct ptx_array label_refs;
};

static inline uint32_t ptx_scope(const struct ptx_body_parser *b)
{
	return b->scope_stack[b->depth - 1];
}

/* Puts a declared register into use. Returns: 0 or -errno. */
int ptx_use_register(
	struct ptx_body_parser *b, uint32_t declared, uint8_t type, uint32_t *regp);

/* Finds a register; *foundp: whether there is one of that name. */
int ptx_find_register(
	struct ptx_body_parser *b, const struct ptx_token *name, struct ptx_name *foundp);

/* Notes a use of a label that is resolved when the body ends. */
int ptx_note_label(struct ptx_body_parser *b, const struct ptx_token *name,
	uint32_t operand, bool is_table);

/*
 * Operands: each fills a zeroed *operand
 */

/* A name: register, symbol, special register or constant. */
int ptx_parse_operand_name(struct ptx_body_parser *b, struct ptx_operand *operand);

/* A name or a number. */
int ptx_parse_source(struct ptx_body_parser *b, struct ptx_operand *operand);

/* A register, or `_`. */
int ptx_parse_destination(struct ptx_body_parser *b, struct ptx_operand *operand);

/* A register or a number, `!` before it negates. */
int ptx_parse_predicate(struct ptx_body_parser *b, struct ptx_operand *operand);

/* `[...]` */
int ptx_parse_address(struct ptx_body_parser *b, struct ptx_operand *operand);
/* The same up to its closing bracket. */
int ptx_parse_open_address(struct ptx_body_parser *b, struct ptx_operand *operand);

/* `{...}`, a vector register, or a single operand. */
int ptx_parse_vector(
	struct ptx_body_parser *b, struct ptx_operand *operand, bool is_destination);

/* Puts a run of operands into the body. */
int ptx_push_operands(struct ptx_body_parser *b, const struct ptx_operand *operands,
	uint32_t n, uint32_t *firstp);

/* Puts the elements of a vector into the body and makes *operand that vector. */
int ptx_finish_vector(struct ptx_body_parser *b, const struct ptx_operand *elements,
	uint32_t n, struct ptx_operand *operand);

/* The operands of an instruction by its pattern. */
int ptx_parse_operands(struct ptx_body_parser *b, struct ptx_instr *instr);

/* An instruction whose opcode has been taken; guard as in struct ptx_instr. */
int ptx_parse_instr(struct ptx_body_parser *b, const struct ptx_token *opcode,
	uint32_t guard, bool guard_negated);

/* The current token names this register, which must be declared. */
int ptx_parse_register(struct ptx_body_parser *b, uint32_t *regp, uint8_t *typep);
