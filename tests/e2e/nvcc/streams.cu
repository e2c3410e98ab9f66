/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that overlap, an event between two of them, and the time in between;
 * memory that is pinned, mapped, or both
 */

#include "runtime.h"

__global__ void step(unsigned int *x, int rounds)
{
	for (int i = 0; i < rounds; i++)
		x[threadIdx.x] = 3 * x[threadIdx.x] + 1;
}

static unsigned int stepped(unsigned int x, int rounds)
{
	while (rounds--)
		x = 3 * x + 1;
	return x;
}

int main()
{
	unsigned int *pinned, *mapped, *device_view, *a, *b;
	cudaEvent_t start, middle, end;
	cudaStream_t first, second;
	size_t n_wrong = 0;
	float time = 0;

	CUDA(cudaStreamCreate(&first));
	CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming));
	CUDA(cudaEventCreate(&end));
	CUDA(cudaMallocHost(&pinned, 4096));
	CUDA(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped));
	CUDA(cudaHostGetDevicePointer(&device_view, mapped, 0));
	CUDA(cudaMalloc(&a, 4096));
	CUDA(cudaMalloc(&b, 4096));
	for (int i = 0; i < 64; i++)
		pinned[i] = mapped[i] = i;

	CUDA(cudaEventRecord(start, first));
	CUDA(cudaMemcpyAsync(a, pinned, 256, cudaMemcpyHostToDevice, first));
	for (int i = 0; i < 100; i++)
		step<<<1, 64, 0, first>>>(a, 10);
	CUDA(cudaEventRecord(middle, first));
	CUDA(cudaStreamWaitEvent(second, middle, 0));
	CUDA(cudaMemcpyAsync(b, a, 256, cudaMemcpyDeviceToDevice, second));
	step<<<1, 64, 0, second>>>(b, 5);
	step<<<1, 64, 0, second>>>(device_view, 3);
	CUDA(cudaMemcpyAsync(pinned + 64, b, 256, cudaMemcpyDeviceToHost, second));
	CUDA(cudaEventRecord(end, second));
	CUDA(cudaEventSynchronize(end));
	CUDA(cudaEventElapsedTime(&time, start, end));
	CUDA(cudaStreamQuery(second));
	for (int i = 0; i < 64; i++) {
		n_wrong += pinned[64 + i] != stepped(i, 1005);
		n_wrong += mapped[i] != stepped(i, 3);
	}
	n_wrong += !(time > 0);
	CUDA(cudaStreamDestroy(first));
	CUDA(cudaStreamDestroy(second));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFreeHost(mapped));
	CUDA(cudaDeviceReset());
	return result("streams", 129, n_wrong);
}
