/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds for the fuzz target of the driver API: programs of random calls
 *
 * usage: make-seeds-api FOLDER
 */

#include <stdio.h>

#include "random-program.h"

#define N_PROGRAMS 64u
#define PROGRAM_SIZE 2048u

int main(int argc, char **argv)
{
	uint8_t program[PROGRAM_SIZE];
	uint64_t state = 1;
	char path[4096];
	FILE *file;

	if (argc != 2)
		return 1;
	for (unsigned int i = 0; i < N_PROGRAMS; i++) {
		random_program(program, sizeof(program), &state);
		snprintf(path, sizeof(path), "%s/random-%02u", argv[1], i);
		file = fopen(path, "wb");
		if (!file || fwrite(program, sizeof(program), 1, file) != 1 ||
			fclose(file))
			return 1;
	}
	return 0;
}
