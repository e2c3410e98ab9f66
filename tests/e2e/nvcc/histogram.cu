/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram of bytes by shared and global atomics; a table in constant memory
 */

#include "runtime.h"

__constant__ unsigned char permutation[256];

__global__ void histogram(const unsigned char *in, unsigned int *bins, int n)
{
	__shared__ unsigned int local[256];

	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		local[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x)
		atomicAdd(&local[permutation[in[i]]], 1);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&bins[i], local[i]);
}

int main()
{
	const int n = 1 << 20;
	std::vector<unsigned char> in(n);
	unsigned int *dbins, bins[256], expected[256] = {};
	unsigned char *din, table[256];
	size_t n_wrong = 0;

	for (int i = 0; i < 256; i++)
		table[i] = i * 167 + 13;
	for (int i = 0; i < n; i++) {
		in[i] = (unsigned int)i * 2654435761u >> 24;
		expected[table[in[i]]]++;
	}
	CUDA(cudaMemcpyToSymbol(permutation, table, sizeof(table)));
	CUDA(cudaMalloc(&din, n));
	CUDA(cudaMalloc(&dbins, sizeof(bins)));
	CUDA(cudaMemset(dbins, 0, sizeof(bins)));
	CUDA(cudaMemcpy(din, in.data(), n, cudaMemcpyHostToDevice));
	histogram<<<32, 256>>>(din, dbins, n);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(bins, dbins, sizeof(bins), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		n_wrong += bins[i] != expected[i];
	return result("histogram", 256, n_wrong);
}
