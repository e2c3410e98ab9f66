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

/* The part's functions by address, its dynamic shared memory, and what both have. */
static __device__ unsigned int counter = 7;
extern __shared__ unsigned int words[];

__global__ static void use_all(unsigned int *out)
{
	unsigned int i = threadIdx.x;
	square s;
	const shape *p = &s;

	words[i] = operations[i % N_OPERATIONS](i);
	__syncthreads();
	reverse(blockDim.x);
	s.size = i;
	out[i] = words[i] + twice(p->area());
	count_there(1);
	atomicAdd(&counter, 2);
	__syncthreads();
	if (!i) {
		out[blockDim.x] = count_there(0);
		out[blockDim.x + 1] = counter;
	}
}

static size_t wrong_of_all()
{
	const unsigned int n = 96;
	unsigned int *device, host[n + 2];
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&device, sizeof(host)));
	use_all<<<1, n, n * sizeof(*device)>>>(device);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < n; i++) {
		unsigned int from = n - 1 - i, of[] = { ~from, mixed(from), 2 * from };

		n_wrong += host[i] != of[from % N_OPERATIONS] + 2 * i * i;
	}
	n_wrong += host[n] != n;
	n_wrong += host[n + 1] != 7 + 2 * n;
	CUDA(cudaFree(device));
	return n_wrong;
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
	n_wrong += wrong_of_all();
	return result("linked", N, n_wrong);
}
