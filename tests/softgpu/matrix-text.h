/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of a kernel with matrices, piece by piece, for the tests
 */

struct text {
	char text[32768];
};

__attribute__((__format__(__printf__, 2, 3))) void text_add(
	struct text *text, const char *format, ...);

/* Adds {%<letter><first>, …} with @n registers, and @end. */
void text_add_vector(struct text *text, char letter, unsigned int first, unsigned int n,
	const char *end);
