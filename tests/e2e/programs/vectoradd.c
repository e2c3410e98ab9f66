/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c = a + b, checked against the CPU
 */

#include "program.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
	size_t size = n * sizeof(float), n_wrong = 0;
	struct program program = program_start();
	CUfunction function = program_function(&program, "vector_add");
	float *a = malloc(size), *b = malloc(size), *c = calloc(1, size);
	CUdeviceptr da, db, dc;
	void *parameters[] = { &da, &db, &dc, &n };

	for (int i = 0; i < n; i++) {
		a[i] = i * 0.5f;
		b[i] = n - i * 0.25f;
	}
	CU(cuMemAlloc(&da, size));
	CU(cuMemAlloc(&db, size));
	CU(cuMemAlloc(&dc, size));
	CU(cuMemcpyHtoD(da, a, size));
	CU(cuMemcpyHtoD(db, b, size));

	CU(cuLaunchKernel(
		function, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
	CU(cuMemcpyDtoH(c, dc, size));
	for (int i = 0; i < n; i++)
		n_wrong += c[i] != a[i] + b[i];

	CU(cuMemFree(da));
	CU(cuMemFree(db));
	CU(cuMemFree(dc));
	program_end(&program);
	free(a);
	free(b);
	free(c);
	return program_result("vectorAdd", n, n_wrong);
}
