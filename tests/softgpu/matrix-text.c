/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a kernel with matrices
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "matrix-text.h"
#include "test.h"

void text_add(struct text *text, const char *format, ...)
{
	size_t used = strlen(text->text), room = sizeof(text->text) - used;
	va_list args;

	va_start(args, format);
	check((size_t)vsnprintf(text->text + used, room, format, args) < room);
	va_end(args);
}

void text_add_vector(struct text *text, char letter, unsigned int first, unsigned int n,
	const char *end)
{
	for (unsigned int i = 0; i < n; i++)
		text_add(text, "%s%%%c%u", i ? ", " : "{", letter, first + i);
	text_add(text, "}%s", end);
}
