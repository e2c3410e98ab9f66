/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of two parts that the device linker joins (nvcc -rdc=true)
 */

#include "linked.h"
#include "runtime.h"

#define N 1000

__global__ static void fill(unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		out[i] = mixed(i) * factors[i % 4] + offset;
}

int main()
{
	static const unsigned int values[4] = { 1, 3, 5, 7 };
	unsigned int *device, host[N], shift = 5;
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMemcpyToSymbol(offset, &shift, sizeof(shift)));
	set_factors(values);
	fill<<<(N + 127) / 128, 128>>>(device);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < N; i++)
		n_wrong += host[i] != mixed(i) * values[i % 4] + shift;
	CUDA(cudaFree(device));
	return result("linked", N, n_wrong);
}
