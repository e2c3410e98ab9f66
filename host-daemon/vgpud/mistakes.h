/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mistakes: all mistakes in a configuration, in the order of detection
 */

#include <stdbool.h>
#include <stddef.h>

/* Where in which file. */
struct text_place {
	const char *file;
	int line;
};

struct mistakes {
	char *text; /* one line each, the last without its newline; NULL: none */
	unsigned int n;
	bool no_memory;
	const char **files; /* those that have one, each once */
	size_t n_files;
};

/* Adds 'FILE:LINE: ' and a sentence. Beyond MISTAKES_MAX they are only counted. */
void mistakes_add(struct mistakes *mistakes, struct text_place place, const char *format,
	...) __attribute__((__format__(__printf__, 3, 4)));

/* Adds the number of omitted mistakes. Return: the text, owned by the caller. */
char *mistakes_take(struct mistakes *mistakes);

/* Whether one is in that file: the string of its place, not one like it. */
bool mistakes_are_in(const struct mistakes *mistakes, const char *file);

void mistakes_deinit(struct mistakes *mistakes);
