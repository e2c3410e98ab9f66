/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks of a device before it uses it, and that the answers hold
 */

#include <cstring>

#include "runtime.h"

__global__ void fill(int *out, int value)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int main()
{
	cudaFuncAttributes attributes;
	cudaDeviceProp properties;
	int n = 0, device = -1, runtime = 0, driver = 0, blocks = 0, value = 0, *p;
	size_t n_wrong = 0, before, during, total;

	CUDA(cudaRuntimeGetVersion(&runtime));
	CUDA(cudaDriverGetVersion(&driver));
	n_wrong += driver < runtime;
	CUDA(cudaGetDeviceCount(&n));
	CUDA(cudaSetDevice(0));
	CUDA(cudaGetDevice(&device));
	n_wrong += n < 1 || device != 0;
	CUDA(cudaGetDeviceProperties(&properties, 0));
	printf("%s, compute capability %d.%d, %zu MiB, %d multiprocessors\n",
		properties.name, properties.major, properties.minor,
		properties.totalGlobalMem >> 20, properties.multiProcessorCount);
	n_wrong += properties.warpSize != 32 || !strlen(properties.name);
	n_wrong += properties.maxThreadsPerBlock < 512 || properties.major < 5;
	CUDA(cudaFuncGetAttributes(&attributes, fill));
	n_wrong += attributes.maxThreadsPerBlock < 256 || attributes.ptxVersion < 50;
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0));
	n_wrong += blocks < 1;
	CUDA(cudaMemGetInfo(&before, &total));
	CUDA(cudaMalloc(&p, 16 << 20));
	CUDA(cudaMemGetInfo(&during, &total));
	n_wrong += during >= before || total < before;
	/* the largest block that the device claims really runs */
	fill<<<1, attributes.maxThreadsPerBlock>>>(p, 77);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&value, p + attributes.maxThreadsPerBlock - 1, sizeof(int),
		cudaMemcpyDeviceToHost));
	n_wrong += value != 77;
	CUDA(cudaFree(p));
	return result("properties", 8, n_wrong);
}
