/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels with one mistake each, which the first argument chooses; or with none
 */

#include <cstring>

#include "runtime.h"

#define N 256

/* Reverses a block; without the barrier the warps race. */
template <bool has_barrier> __global__ void reverse(int *data)
{
	__shared__ int tile[N];

	tile[threadIdx.x] = data[threadIdx.x];
	if (has_barrier)
		__syncthreads();
	data[threadIdx.x] = tile[N - 1 - threadIdx.x];
}

__global__ void sum_neighbours(const int *from, int *to, int n)
{
	int i = threadIdx.x;

	if (i < n)
		to[i] = from[i] + from[i + 1];
}

__global__ void count(unsigned int *bins, const unsigned char *data)
{
	__shared__ unsigned int local[4];

	if (threadIdx.x < 4)
		local[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(&local[data[threadIdx.x] & 3], 1);
	__syncthreads();
	if (threadIdx.x < 4)
		atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void read_tile(int *to)
{
	extern __shared__ int tile[];

	if (threadIdx.x)
		tile[threadIdx.x] = threadIdx.x;
	__syncthreads();
	to[threadIdx.x] = tile[threadIdx.x];
}

/* Many mistakes at once. */
__global__ void sum_columns(const int *from, int *to)
{
	int sum = 0;

#pragma unroll
	for (int i = 0; i < 12; i++)
		sum += from[i * 16 + threadIdx.x] * i;
	to[threadIdx.x] = sum;
}

static int run_clean(int *data, int *other)
{
	unsigned int *bins, counts[4];
	unsigned char *bytes;

	CUDA(cudaMalloc(&bins, sizeof(counts)));
	CUDA(cudaMemset(bins, 0, sizeof(counts)));
	CUDA(cudaMalloc(&bytes, N));
	CUDA(cudaMemset(bytes, 2, N));
	reverse<true><<<1, N>>>(data);
	sum_neighbours<<<1, N>>>(data, other, N - 1);
	count<<<1, N>>>(bins, bytes);
	CUDA(cudaMemcpy(counts, bins, sizeof(counts), cudaMemcpyDeviceToHost));
	return result("hazards", 1, counts[2] != N);
}

int main(int argc, char **argv)
{
	const char *mistake = argc > 1 ? argv[1] : "none";
	int *data, *other;

	CUDA(cudaMalloc(&data, N * sizeof(int)));
	CUDA(cudaMalloc(&other, N * sizeof(int)));
	CUDA(cudaMemset(data, 0, (N - 1) * sizeof(int)));
	CUDA(cudaMemset(data + N - 1, 1, sizeof(int)));
	if (!strcmp(mistake, "none"))
		return run_clean(data, other);
	if (!strcmp(mistake, "race"))
		reverse<false><<<1, N>>>(data);
	if (!strcmp(mistake, "memory"))
		sum_neighbours<<<1, N>>>(data, other, N);
	if (!strcmp(mistake, "freed")) {
		CUDA(cudaFree(other));
		sum_neighbours<<<1, N>>>(data, other, N - 1);
	}
	if (!strcmp(mistake, "uninitialised"))
		sum_neighbours<<<1, N>>>(other, data, N - 1);
	if (!strcmp(mistake, "shared"))
		read_tile<<<1, N, N * sizeof(int)>>>(data);
	if (!strcmp(mistake, "beyond"))
		read_tile<<<1, N, (N - 1) * sizeof(int)>>>(data);
	if (!strcmp(mistake, "many"))
		sum_columns<<<1, 16>>>(other, data);
	CUDA(cudaDeviceSynchronize());
	return 0;
}
