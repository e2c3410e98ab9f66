/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mistakes: all that is wrong with a configuration, in the order in which it was found
 */

#include <stdbool.h>

struct mistakes {
	const char *name; /* of the file */
	char *text;	  /* one line each, the last without its newline; NULL: none */
	unsigned int n;
	bool no_memory;
};

/* Adds 'FILE:LINE: ' and a sentence. Those that do not fit are only counted. */
void mistakes_add(struct mistakes *mistakes, int line, const char *format, ...)
	__attribute__((__format__(__printf__, 3, 4)));

/* Says how many were left out. Returns: the text, the caller's from now on. */
char *mistakes_take(struct mistakes *mistakes);

void mistakes_deinit(struct mistakes *mistakes);
