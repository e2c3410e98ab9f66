/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C = A * B in tiles of shared memory, checked against the CPU
 *
 * The matrices hold small integers, so every order of summation gives the same
 * floating-point result and the comparison is exact.
 */

#include "program.h"

#define TILE 16

static float expected(const float *a, const float *b, int n, int row, int column)
{
	float sum = 0;

	for (int k = 0; k < n; k++)
		sum += a[row * n + k] * b[k * n + column];
	return sum;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 256;
	size_t size = (size_t)n * n * sizeof(float), n_wrong = 0;
	struct program program = program_start();
	CUfunction function = program_function(&program, "matrix_mul");
	float *a = malloc(size), *b = malloc(size), *c = calloc(1, size);
	CUdeviceptr da, db, dc;
	void *parameters[] = { &da, &db, &dc, &n };

	for (int i = 0; i < n * n; i++) {
		a[i] = i * 7 % 13 - 6;
		b[i] = i * 5 % 11 - 5;
	}
	CU(cuMemAlloc(&da, size));
	CU(cuMemAlloc(&db, size));
	CU(cuMemAlloc(&dc, size));
	CU(cuMemcpyHtoD(da, a, size));
	CU(cuMemcpyHtoD(db, b, size));

	CU(cuLaunchKernel(function, n / TILE, n / TILE, 1, TILE, TILE, 1, 0, NULL,
		parameters, NULL));
	CU(cuMemcpyDtoH(c, dc, size));
	for (int row = 0; row < n; row++)
		for (int column = 0; column < n; column++)
			n_wrong += c[row * n + column] != expected(a, b, n, row, column);

	CU(cuMemFree(da));
	CU(cuMemFree(db));
	CU(cuMemFree(dc));
	program_end(&program);
	free(a);
	free(b);
	free(c);
	return program_result("matrixMul", (size_t)n * n, n_wrong);
}
