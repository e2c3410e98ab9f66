/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opcodes and their modifiers
 */

#include <stdbool.h>
#include <stdint.h>

struct ptx_instr;

/* The instructions of PTX with an opcode's name. */
enum ptx_opcode_class {
	PTX_OPCODE_UNKNOWN,	/* no PTX instruction */
	PTX_OPCODE_UNSUPPORTED, /* a PTX instruction that is not decoded */
	PTX_OPCODE_DECODED,	/* *opp is set */
};

enum ptx_opcode_class ptx_opcode_find(const char *text, uint32_t size, uint16_t *opp);

/* Returns: the operand pattern of PTX_OPS. */
const char *ptx_opcode_operands(uint16_t op);

/* Returns: whether an opcode may carry that many types. */
bool ptx_opcode_takes_types(uint16_t op, unsigned int n_types);

/* Returns: whether those are more than any decoded form of it carries. */
bool ptx_opcode_has_more_types(uint16_t op, unsigned int n_types);

enum ptx_modifier_result {
	PTX_MODIFIER_OK,
	PTX_MODIFIER_CACHE_HINT, /* OK; the last operand is a cache policy */
	PTX_MODIFIER_REPEATED,	 /* a second one of its kind */
	PTX_MODIFIER_UNKNOWN,	 /* not decoded for this opcode */
};

/* Enters one modifier, written without its point, into *instr. */
enum ptx_modifier_result ptx_modifier_apply(
	struct ptx_instr *instr, const char *text, uint32_t size);

/* For the tests: the search needs a sorted table. */
bool ptx_modifiers_are_sorted(void);
