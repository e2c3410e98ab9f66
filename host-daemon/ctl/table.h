/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Table: a sample for people and for programs
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "ctl/sample.h"

struct table {
	/* Of the screen; lines 0: as many as there are. */
	unsigned int lines, columns;
	enum sample_key key; /* by which it was sorted */
	bool hides_idle;     /* processes that did nothing */
	bool hides_vms, hides_processes;
};

/* Prints machines, then processes, in at most so many lines, none of which is longer than
 * the screen; each line ends with that text. */
void table_print(const struct table *table, const struct sample *sample, FILE *file,
	const char *line_end);

/* Return: an object, or NULL without memory. */
json_t *table_json(const struct sample *sample, unsigned int seconds);
