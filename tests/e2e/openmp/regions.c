/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMP: several target regions share data, functions and variables of the device, and
 * one of them prints
 */

#include <omp.h>
#include <string.h>
#include <unistd.h>

#include "offload.h"

#define ROWS 500
#define COLUMNS 10
#define N (ROWS * COLUMNS)

#pragma omp declare target
static unsigned int table[256];
static double scale = 0.5;
static int n_calls;

static unsigned int mixed(unsigned int i)
{
	return (i ^ i << 7) * 2654435761u;
}

static double weight(int i)
{
#pragma omp atomic
	n_calls++;
	return scale * table[i & 255];
}
#pragma omp end declare target

/* Return: whether the output of the device appears on standard output. */
static int prints(void)
{
	static const char expected[] = "the device has 6 * 7 = 42\n";
	FILE *file = tmpfile();
	char text[sizeof(expected) + 1] = "";
	int before = dup(STDOUT_FILENO), six = 6;

	if (!file || before < 0)
		return 0;
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
#pragma omp target map(to : six)
	printf("the device has %d * 7 = %d\n", six, six * 7);
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return !strcmp(text, expected);
}

int main(void)
{
	double *out = calloc(N, sizeof(*out));
	int is_on_host = 1;
	size_t n_wrong = 0;

	if (!out)
		return EXIT_FAILURE;
#pragma omp target data map(from : out[:N])
	{
#pragma omp target teams distribute parallel for
		for (int i = 0; i < 256; i++)
			table[i] = mixed(i);
		scale = 0.25;
#pragma omp target update to(scale)
#pragma omp target teams distribute parallel for collapse(2)
		for (int i = 0; i < ROWS; i++)
			for (int j = 0; j < COLUMNS; j++)
				out[i * COLUMNS + j] = weight(i * COLUMNS + j);
	}
#pragma omp target map(from : is_on_host)
	is_on_host = omp_is_initial_device();
#pragma omp target update from(n_calls)
	for (int i = 0; i < N; i++)
		n_wrong += out[i] != 0.25 * mixed(i & 255);
	n_wrong += n_calls != N;
	n_wrong += !prints();
	free(out);
	return offload_result("regions", omp_get_num_devices(), is_on_host, n_wrong);
}
