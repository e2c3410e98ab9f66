/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mappings of this process, as /proc/self/maps lists them (proc_pid_maps(5))
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct shim_mapping {
	uint64_t start, end, offset, inode;
	unsigned int major, minor;
	char permissions[5]; /* "rw-p", "r-xs" and the like */
	const char *path;    /* or a name in brackets, or ""; within the line */
};

/* Takes a line apart, which is changed. Return: false if it is none of that file. */
bool shim_mapping_parse(char *line, struct shim_mapping *mapping);

/* Opens the list. Return: NULL if there is none. */
FILE *shim_mapping_open(void);

static inline void shim_mapping_closep(FILE **filep)
{
	if (*filep)
		fclose(*filep);
}
