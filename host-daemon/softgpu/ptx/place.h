/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Place: where in the program's source a line of PTX comes from
 *
 * Compilers write it with .loc and .file (nvcc -lineinfo). Nothing of it is kept when a
 * module is parsed: the text is searched when a fault is described.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls that were inlined into each other, of which so many are named. */
#define PTX_PLACE_DEPTH_MAX 4

/**
 * ptx_place_find() - describe where a line comes from
 * @text:	of the module, ends with a NUL
 * @line:	in the text, from 1
 * @to:		"file.cu:12", or "file.cu:3, inlined at file.cu:12"; empty if the text
 *		does not say
 *
 * Return: the length of what is in @to.
 */
size_t ptx_place_find(const char *text, uint32_t line, char *to, size_t size);

/* Return: whether a line of the text has that word in it, such as ".shared". */
bool ptx_line_has(const char *text, uint32_t line, const char *word);
