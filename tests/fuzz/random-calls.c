/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of random calls, one after the other, from a pseudo-random generator
 *
 * usage: random-calls [SECONDS [SEED]]
 *        random-calls -n PROGRAMS [SEED]
 *
 * Prints the seed. The same seed makes the same programs, but the threads interleave
 * differently each time.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls.h"
#include "random-program.h"

#define PROGRAM_CALLS 256u

const char *__tsan_default_suppressions(void) __attribute__((visibility("default")));

/* Memory of the device is the program's, whose calls and kernels race for it here; only
 * these functions touch it. Of the windows that a block copies only sizes change. */
const char *__tsan_default_suppressions(void)
{
	return "race:vgpu_bulk_copy\nrace:sched_row_run\nrace:sched_fill_row\n"
	       "race:softgpu_program_fill\nrace:sched_word_write\nrace:sched_word_is_"
	       "met\n"
	       "race:exec/memory.c\nrace:set_words\nrace:context_open_space\n";
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	bool is_counted = argc > 2 && !strcmp(argv[1], "-n");
	uint64_t n_programs = is_counted ? strtoull(argv[2], NULL, 0) : UINT64_MAX, n = 0;
	const char *seed_text = argv[is_counted ? 3 : argc > 1 ? 2 : 1];
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : (uint64_t)time(NULL);
	double end = seconds() + (argc > 1 ? atof(argv[1]) : 10);
	uint8_t program[PROGRAM_CALLS * CALLS_CALL_SIZE];
	uint64_t state = seed;

	printf("seed %" PRIu64 "\n", seed);
	fflush(stdout);
	calls_start();
	do {
		random_program(program, sizeof(program), &state);
		calls_run(program, sizeof(program));
		n++;
	} while (n < n_programs && (is_counted || seconds() < end));
	printf("%" PRIu64 " programs of %u calls\n", n, PROGRAM_CALLS);
	return 0;
}
