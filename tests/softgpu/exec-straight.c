/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Straight-line programs: random ones, against the results that straight.py has computed
 *
 * The file has, for each program, its PTX and a line for each thread with the values that
 * its registers have before and after. STRAIGHT names the file.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define PROGRAMS_MIN 20 /* so that a file that is cut short does not pass */
#define TEXT_MAX 65536u
#define VALUES_MAX 64u
#define THREADS_MAX 64u

static struct {
	char text[TEXT_MAX];
	unsigned int n_threads, n_values;
	uint64_t before[THREADS_MAX * VALUES_MAX];
	uint64_t after[THREADS_MAX * VALUES_MAX];
} program;

static char line[4096];

static void read_text(FILE *file, unsigned int n_lines)
{
	size_t size = 0, n;

	for (unsigned int i = 0; i < n_lines; i++) {
		check(fgets(line, sizeof(line), file));
		n = strlen(line);
		check(n < sizeof(program.text) - size);
		memcpy(program.text + size, line, n + 1);
		size += n;
	}
}

static void read_thread(FILE *file, unsigned int i)
{
	uint64_t *parts[] = { program.before, program.after };
	char *at = line, *end;

	check(fgets(line, sizeof(line), file));
	for (unsigned int part = 0; part < 2; part++)
		for (unsigned int k = 0; k < program.n_values; k++) {
			parts[part][i * program.n_values + k] = strtoull(at, &end, 16);
			check(end > at);
			at = end;
		}
}

/* Returns: whether there was a program. */
static bool read_program(FILE *file)
{
	unsigned int n_lines;

	if (!fgets(line, sizeof(line), file))
		return false;
	check_eq(sscanf(line, "program %u %u %u", &n_lines, &program.n_threads,
			 &program.n_values),
		3);
	check(program.n_threads <= THREADS_MAX && program.n_values <= VALUES_MAX);
	read_text(file, n_lines);
	for (unsigned int i = 0; i < program.n_threads; i++)
		read_thread(file, i);
	return true;
}

static void report(unsigned int number, unsigned int i, uint64_t got)
{
	unsigned int thread = i / program.n_values;

	fprintf(stderr, "%s\nbefore:", program.text);
	for (unsigned int k = 0; k < program.n_values; k++)
		fprintf(stderr, " %llx",
			(long long)program.before[thread * program.n_values + k]);
	test_fail(__FILE__, __LINE__, "program %u, thread %u, value %u: %llx, not %llx",
		number, thread, i % program.n_values, (long long)got,
		(long long)program.after[i]);
}

static void run_program(unsigned int number)
{
	const size_t n = (size_t)program.n_threads * program.n_values;
	CLEAN_RIG rig = rig_new(program.text);
	uint64_t *places[2];

	for (unsigned int i = 0; i < 2; i++)
		places[i] = rig_alloc(rig, n * sizeof(uint64_t));
	memcpy(places[0], program.before, n * sizeof(uint64_t));
	rig_launch(rig, "k", 1, program.n_threads, places, sizeof(places));
	for (unsigned int i = 0; i < n; i++)
		if (places[1][i] != program.after[i])
			report(number, i, places[1][i]);
}

TEST(random_straight_line_programs_have_the_results_of_a_second_implementation)
{
	const char *name = getenv("STRAIGHT");
	FILE *file = fopen(name ? name : "", "r");
	unsigned int n = 0;

	check(file);
	while (read_program(file))
		run_program(n++);
	check(n >= PROGRAMS_MIN);
	fclose(file);
}
