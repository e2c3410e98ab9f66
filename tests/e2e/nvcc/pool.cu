/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory through the runtime: temporaries of a reduction that are
 * allocated and freed in each round, and a pool of the program's own that keeps its
 * memory
 */

#include "runtime.h"

enum { N = 1 << 16, ROUNDS = 20, BLOCK = 256 };

__global__ void squares(unsigned int *out, unsigned int first)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = (first + i) * (first + i);
}

__global__ void sums(const unsigned int *in, unsigned int *out)
{
	__shared__ unsigned int part[BLOCK];

	part[threadIdx.x] = in[blockIdx.x * BLOCK + threadIdx.x];
	for (unsigned int step = BLOCK / 2; step; step /= 2) {
		__syncthreads();
		if (threadIdx.x < step)
			part[threadIdx.x] += part[threadIdx.x + step];
	}
	if (!threadIdx.x)
		out[blockIdx.x] = part[0];
}

static unsigned int expected(unsigned int first)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < N; i++)
		sum += (first + i) * (first + i);
	return sum;
}

static unsigned int reduce(cudaStream_t stream, unsigned int first)
{
	unsigned int *numbers, *blocks, *total, sum = 0;

	CUDA(cudaMallocAsync(&numbers, N * sizeof(*numbers), stream));
	squares<<<N / BLOCK, BLOCK, 0, stream>>>(numbers, first);
	CUDA(cudaMallocAsync(&blocks, N / BLOCK * sizeof(*blocks), stream));
	sums<<<N / BLOCK, BLOCK, 0, stream>>>(numbers, blocks);
	CUDA(cudaFreeAsync(numbers, stream));
	CUDA(cudaMallocAsync(&total, sizeof(*total), stream));
	sums<<<1, BLOCK, 0, stream>>>(blocks, total);
	CUDA(cudaFreeAsync(blocks, stream));
	CUDA(cudaMemcpyAsync(&sum, total, sizeof(sum), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaFreeAsync(total, stream));
	CUDA(cudaStreamSynchronize(stream));
	return sum;
}

static size_t n_wrong_rounds(cudaStream_t stream)
{
	size_t n_wrong = 0;

	for (unsigned int i = 0; i < ROUNDS; i++)
		n_wrong += reduce(stream, i) != expected(i);
	return n_wrong;
}

int main(void)
{
	unsigned long long threshold = ~0ull, reserved = 0;
	cudaMemPoolProps props = {};
	cudaMemPool_t pool, normal;
	cudaStream_t stream;
	int is_supported = 0;
	size_t n_wrong;

	CUDA(cudaDeviceGetAttribute(&is_supported, cudaDevAttrMemoryPoolsSupported, 0));
	if (!is_supported) {
		puts("skipped: the device has no memory pools");
		return 77;
	}
	CUDA(cudaStreamCreate(&stream));
	n_wrong = n_wrong_rounds(stream);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CUDA(cudaMemPoolCreate(&pool, &props));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	CUDA(cudaDeviceGetMemPool(&normal, 0));
	CUDA(cudaDeviceSetMemPool(0, pool));
	n_wrong += n_wrong_rounds(stream);
	n_wrong += n_wrong_rounds(0);
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	n_wrong += !reserved;
	CUDA(cudaDeviceSetMemPool(0, normal));
	CUDA(cudaMemPoolDestroy(pool));
	return result("pool", 3 * ROUNDS, n_wrong);
}
