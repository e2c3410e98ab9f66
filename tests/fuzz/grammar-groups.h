/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Groups: statements of the grammar in the newer groups of instructions
 *
 * Floats of 8 bits, video instructions, textures and surfaces, asynchronous copies, and
 * matrices. Those of matrices concern a warp: all its lanes are at the statement, which
 * is in no loop and not skipped.
 */

#include "grammar.h"

#define GROUP_TEXT 1024u /* of one statement */

/* Texel i of the texture and the surface. */
static inline uint32_t group_texel(uint32_t i)
{
	return i * 0x01030507u + 1;
}

/* Returns: the length of the text. */
size_t group_write(const struct grammar_statement *s, const struct grammar_places *places,
	char text[GROUP_TEXT]);

/* One thread, or the GRAMMAR_WARP threads of a warp. */
void group_run(const struct grammar_statement *s, struct grammar_thread *thread);
void group_run_warp(const struct grammar_statement *s, struct grammar_thread *threads);
