/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text under construction, and a module's text with other names
 */

#include <stdbool.h>
#include <stddef.h>

#include "ptx/module.h"

struct text {
	char *bytes;
	size_t size;
	size_t capacity;
};

/* Appends. Return: false without memory or beyond PTX_TEXT_SIZE_MAX. */
bool text_add(struct text *text, const char *bytes, size_t size);

/* Which symbols of a module get a suffix; indexed as its functions and variables. */
struct text_renames {
	const bool *functions;
	const bool *variables;
	const char *suffix;
};

/* Appends a module without its head. Return: as text_add(). */
bool text_add_module(struct text *text, const struct ptx_module *module,
	const struct text_renames *renames);
