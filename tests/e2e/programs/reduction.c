/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum of an array by warp shuffles, shared memory and an atomic, checked against
 * the CPU; the launch passes its parameters as one buffer (`extra`)
 */

#include <stddef.h>

#include "program.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1 << 20, sum = 0, expected = 0;
	struct program program = program_start();
	CUfunction function = program_function(&program, "reduce");
	int *in = malloc(n * sizeof(int));
	CUdeviceptr din, dout;
	struct {
		CUdeviceptr in, out;
		int n;
	} parameters = { .n = n };
	size_t size = offsetof(__typeof__(parameters), n) + sizeof(int);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };

	for (int i = 0; i < n; i++) {
		in[i] = i * 31 % 101 - 50;
		expected += in[i];
	}
	CU(cuMemAlloc(&din, n * sizeof(int)));
	CU(cuMemAlloc(&dout, sizeof(int)));
	CU(cuMemcpyHtoD(din, in, n * sizeof(int)));
	CU(cuMemsetD32(dout, 0, 1));
	parameters.in = din;
	parameters.out = dout;

	CU(cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
	CU(cuMemcpyDtoH(&sum, dout, sizeof(sum)));

	CU(cuMemFree(din));
	CU(cuMemFree(dout));
	program_end(&program);
	free(in);
	return program_result("reduction", 1, sum != expected);
}
