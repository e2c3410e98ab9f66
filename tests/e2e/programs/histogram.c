/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram of bytes by shared and global atomics, checked against the CPU; copies and
 * launch use a stream, the input is in pinned memory
 */

#include <string.h>

#include "program.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
	struct program program = program_start();
	CUfunction function = program_function(&program, "histogram");
	unsigned int *bins, expected[256] = {};
	CUdeviceptr din, dbins;
	size_t n_wrong = 0;
	unsigned char *in;
	CUstream stream;
	void *parameters[] = { &din, &dbins, &n };

	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemHostAlloc((void **)&in, n, 0));
	CU(cuMemHostAlloc((void **)&bins, sizeof(expected), 0));
	for (int i = 0; i < n; i++) {
		in[i] = (unsigned int)i * 2654435761u >> 24;
		expected[in[i]]++;
	}
	memset(bins, 0xff, sizeof(expected));
	CU(cuMemAlloc(&din, n));
	CU(cuMemAlloc(&dbins, sizeof(expected)));
	CU(cuMemsetD8Async(dbins, 0, sizeof(expected), stream));
	CU(cuMemcpyHtoDAsync(din, in, n, stream));

	CU(cuLaunchKernel(function, 32, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
	CU(cuMemcpyDtoHAsync(bins, dbins, sizeof(expected), stream));
	CU(cuStreamSynchronize(stream));
	for (int i = 0; i < 256; i++)
		n_wrong += bins[i] != expected[i];

	CU(cuMemFree(din));
	CU(cuMemFree(dbins));
	CU(cuMemFreeHost(in));
	CU(cuMemFreeHost(bins));
	CU(cuStreamDestroy(stream));
	program_end(&program);
	return program_result("histogram", 256, n_wrong);
}
