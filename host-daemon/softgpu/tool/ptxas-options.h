/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Command line of ptxas
 *
 * An option has a long name after two dashes and a short one after one; both are accepted
 * after either, as is a value after '=' or in the next argument. Options that only tell
 * ptxas how to make machine code are accepted and have no effect.
 */

#include <stdbool.h>

struct ptxas_options {
	const char *input;
	const char *output; /* elf.o if none is given, as of ptxas */
	const char *text;   /* --input-as-string */
	const char *gpu_name;
	unsigned int arch; /* 90 for sm_90 */
	bool verbose;
	bool quiet;  /* no warnings */
	bool strict; /* warnings are errors */
	bool help;
	bool version;
};

/* Returns: NULL, or a reason to refuse the command line, with its words in argv. */
const char *ptxas_options_parse(
	struct ptxas_options *options, int argc, char **argv, const char **wordp);
