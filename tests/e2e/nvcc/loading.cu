/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of three parts, each with device code: which of it is handed to the driver?
 *
 * As an argument, the number of parts whose kernel runs.
 */

#include "loading.h"

__global__ void add_one(unsigned int *out)
{
	atomicAdd(out, 1);
}

static void run_first(unsigned int *out)
{
	add_one<<<1, 1>>>(out);
}

int main(int argc, char **argv)
{
	void (*const runs[])(unsigned int *) = { run_first, run_second, run_third };
	const int n = argc > 1 ? atoi(argv[1]) : 0;
	const unsigned int expected[] = { 0, 1, 3, 6 };
	unsigned int *device, sum;

	CUDA(cudaMalloc(&device, sizeof(*device)));
	CUDA(cudaMemset(device, 0, sizeof(*device)));
	for (int i = 0; i < n; i++)
		runs[i](device);
	CUDA(cudaMemcpy(&sum, device, sizeof(sum), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(device));
	return result("loading", 1, sum != expected[n]);
}
