/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of kernels, compiled for this machine
 *
 * This file alone is compiled with -O3 for the processor on which the build runs.
 */

#include <stdlib.h>

#include "native.h"

static struct {
	float *a, *b, *c; /* NATIVE_VADD each */
	volatile float sum;
} numbers;

static void run_vadd(void)
{
	const float *a = numbers.a, *b = numbers.b;
	float *restrict c = numbers.c;

	for (int i = 0; i < NATIVE_VADD; i++)
		c[i] = a[i] + b[i];
}

/* Sums that the compiler may keep in vectors, as the kernel's threads do. */
static void run_reduce(void)
{
	float sums[64] = { 0 }, sum = 0;

	for (int i = 0; i < NATIVE_REDUCE; i += 64)
		for (int k = 0; k < 64; k++)
			sums[k] += numbers.a[i + k];
	for (int k = 0; k < 64; k++)
		sum += sums[k];
	numbers.sum = sum;
}

static void run_matmul(void)
{
	const float *a = numbers.a, *b = numbers.b;
	float *restrict c = numbers.c;

	for (int y = 0; y < NATIVE_N; y++) {
		float *row = c + y * NATIVE_N;

		for (int x = 0; x < NATIVE_N; x++)
			row[x] = 0;
		for (int k = 0; k < NATIVE_N; k++)
			for (int x = 0; x < NATIVE_N; x++)
				row[x] += a[y * NATIVE_N + k] * b[k * NATIVE_N + x];
	}
}

const struct native_loop native_loops[3] = {
	{ "loop_vadd", run_vadd },
	{ "loop_reduce", run_reduce },
	{ "loop_matmul", run_matmul },
};

bool native_prepare(void)
{
	if (!numbers.a) {
		numbers.a = calloc(NATIVE_VADD, sizeof(float));
		numbers.b = calloc(NATIVE_VADD, sizeof(float));
		numbers.c = calloc(NATIVE_VADD, sizeof(float));
	}
	for (int i = 0; numbers.a && numbers.b && i < NATIVE_VADD; i++)
		numbers.a[i] = numbers.b[i] = (float)(i % 7);
	return numbers.a && numbers.b && numbers.c;
}

void native_free(void)
{
	free(numbers.a);
	free(numbers.b);
	free(numbers.c);
	numbers.a = numbers.b = numbers.c = NULL;
}
