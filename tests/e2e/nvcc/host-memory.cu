/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory on the host through the runtime: kernels and program work on the blocks of a
 * pool in turn, and streams that are ordered by events pass blocks on
 */

#include "runtime.h"

enum { N = 1 << 16, ROUNDS = 20, BLOCK = 256 };

__global__ void scale(unsigned int *values, unsigned int factor)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	values[i] = factor * values[i] + i;
}

static size_t n_wrong_in(const unsigned int *values, unsigned int first)
{
	size_t n_wrong = 0;

	for (unsigned int i = 0; i < N; i++)
		n_wrong += values[i] != 3 * (first + i) + i;
	return n_wrong;
}

/* A round in one stream; the block goes to the other one, which waits for the event. */
static size_t work(
	cudaMemPool_t pool, cudaStream_t stream, cudaEvent_t after, unsigned int first)
{
	unsigned int *values;
	size_t n_wrong;

	CUDA(cudaStreamWaitEvent(stream, after, 0));
	CUDA(cudaMallocFromPoolAsync(
		(void **)&values, N * sizeof(*values), pool, stream));
	/* The allocation is in the order of the stream. */
	CUDA(cudaStreamSynchronize(stream));
	for (unsigned int i = 0; i < N; i++)
		values[i] = first + i;
	scale<<<N / BLOCK, BLOCK, 0, stream>>>(values, 3);
	CUDA(cudaStreamSynchronize(stream));
	n_wrong = n_wrong_in(values, first);
	CUDA(cudaFreeAsync(values, stream));
	CUDA(cudaEventRecord(after, stream));
	return n_wrong;
}

int main(void)
{
	cudaMemAccessDesc access = {};
	cudaPointerAttributes attributes;
	cudaMemPoolProps props = {};
	cudaStream_t streams[2];
	unsigned int *values;
	int is_supported = 0;
	size_t n_wrong = 0;
	cudaMemPool_t pool;
	cudaEvent_t event;

	CUDA(cudaDeviceGetAttribute(
		&is_supported, cudaDevAttrHostNumaMemoryPoolsSupported, 0));
	if (!is_supported) {
		puts("skipped: the device has no memory pools on the host");
		return 77;
	}
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeHostNuma;
	CUDA(cudaMemPoolCreate(&pool, &props));
	access.location.type = cudaMemLocationTypeDevice;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CUDA(cudaMemPoolSetAccess(pool, &access, 1));
	for (int i = 0; i < 2; i++)
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (unsigned int i = 0; i < ROUNDS; i++)
		n_wrong += work(pool, streams[i % 2], event, i);
	CUDA(cudaMallocFromPoolAsync((void **)&values, 100, pool, streams[0]));
	CUDA(cudaPointerGetAttributes(&attributes, values));
	n_wrong += attributes.type != cudaMemoryTypeHost;
	CUDA(cudaFreeAsync(values, streams[0]));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemPoolDestroy(pool));
	return result("host-memory", (size_t)ROUNDS * N, n_wrong);
}
