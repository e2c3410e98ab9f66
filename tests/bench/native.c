/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of kernels, compiled for this machine
 *
 * This file alone is compiled with -O3 for the processor on which the build runs, by
 * clang where there is one.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* Four chains of each thread, one element of each thread after the other. */
static void run_dp4a(void)
{
	const int8_t *a = (const int8_t *)numbers.a, *b = (const int8_t *)numbers.b;
	uint32_t *restrict sums = (uint32_t *)numbers.c;

	for (int n = 0; n < NATIVE_ROUNDS * NATIVE_CHAINS; n++)
		for (int i = 0; i < NATIVE_THREADS; i++)
			sums[i] += (uint32_t)(a[4 * i] * b[4 * i] +
					      a[4 * i + 1] * b[4 * i + 1] +
					      a[4 * i + 2] * b[4 * i + 2] +
					      a[4 * i + 3] * b[4 * i + 3]);
}

/* Products of 16 by 8 elements, which fit into the nearest cache. */
#define RUN_MMA(_name, _T, _sum, _k)                                                     \
	static void _name(void)                                                          \
	{                                                                                \
		const _T *a = (const _T *)numbers.a, *b = (const _T *)numbers.b;         \
                                                                                         \
		for (int n = 0; n < NATIVE_WARPS * NATIVE_ROUNDS * NATIVE_CHAINS; n++)   \
			for (int y = 0; y < 16; y++) {                                   \
				_sum *c = (_sum *)numbers.c + 8 * y, sums[8];            \
                                                                                         \
				memcpy(sums, c, sizeof(sums));                           \
				for (int k = 0; k < _k; k++)                             \
					for (int x = 0; x < 8; x++)                      \
						sums[x] += (_sum)(a[y * _k + k] *        \
								  b[k * 8 + x]);         \
				memcpy(c, sums, sizeof(sums));                           \
			}                                                                \
	}

RUN_MMA(run_mma_tf32, float, float, 8)
RUN_MMA(run_mma_s8, int8_t, uint32_t, 32)

static int clamped(int i)
{
	return i < 0 ? 0 : i < NATIVE_TEXTURE ? i : NATIVE_TEXTURE - 1;
}

static float fetched(const float *texels, float x, float y)
{
	int left = (int)(x - 0.5f), top = (int)(y - 0.5f);
	float right_part = x - 0.5f - (float)left, lower_part = y - 0.5f - (float)top;
	const float *upper = texels + clamped(top) * NATIVE_TEXTURE;
	const float *lower = texels + clamped(top + 1) * NATIVE_TEXTURE;
	int right = clamped(left + 1);

	left = clamped(left);
	return (1 - lower_part) *
		       ((1 - right_part) * upper[left] + right_part * upper[right]) +
	       lower_part * ((1 - right_part) * lower[left] + right_part * lower[right]);
}

static void run_texture(void)
{
	float *restrict sums = numbers.c;

	for (int n = 0; n < NATIVE_ROUNDS; n++)
		for (int i = 0; i < NATIVE_THREADS; i++)
			sums[i] += fetched(numbers.a,
				(float)(i % 128) + 0.75f + 0.5f * (float)n,
				(float)(i / 128) + 0.75f);
}

const struct native_loop native_loops[NATIVE_LOOPS] = {
	{ "loop_vadd", run_vadd },
	{ "loop_reduce", run_reduce },
	{ "loop_matmul", run_matmul },
	{ "loop_dp4a", run_dp4a },
	{ "loop_mma_tf32", run_mma_tf32 },
	{ "loop_mma_s8", run_mma_s8 },
	{ "loop_texture", run_texture },
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
