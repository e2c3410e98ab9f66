/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum of an array by warp shuffles, shared memory and an atomic
 */

#include "runtime.h"

__device__ int warp_sum(int value)
{
	for (int offset = 16; offset; offset /= 2)
		value += __shfl_down_sync(0xffffffff, value, offset);
	return value;
}

__global__ void reduce(const int *in, int *out, int n)
{
	__shared__ int partial[32];
	int sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x)
		sum += in[i];
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		partial[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x < 32) {
		sum = warp_sum(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0);
		if (threadIdx.x == 0)
			atomicAdd(out, sum);
	}
}

int main()
{
	const int n = 1 << 20;
	std::vector<int> in(n);
	int *din, *dout, sum = 0, expected = 0;

	for (int i = 0; i < n; i++) {
		in[i] = i * 31 % 101 - 50;
		expected += in[i];
	}
	CUDA(cudaMalloc(&din, n * sizeof(int)));
	CUDA(cudaMalloc(&dout, sizeof(int)));
	CUDA(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaMemset(dout, 0, sizeof(int)));
	reduce<<<64, 256>>>(din, dout, n);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(&sum, dout, sizeof(int), cudaMemcpyDeviceToHost));
	return result("reduction", 1, sum != expected);
}
