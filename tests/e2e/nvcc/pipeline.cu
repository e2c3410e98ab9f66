/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies into shared memory, as programs of C++ make them: by cooperative
 * groups, pipelines of libcu++ and its barriers
 */

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "runtime.h"

namespace cg = cooperative_groups;

enum { BLOCK = 128, STAGES = 2, CHUNKS = 9, N = BLOCK * CHUNKS };

/* Each thread's sum over all chunks of its element, from shared memory. */
__global__ void by_group(int *out, const int *in)
{
	__shared__ int chunk[BLOCK];
	auto block = cg::this_thread_block();
	int sum = 0;

	for (int i = 0; i < CHUNKS; i++) {
		cg::memcpy_async(block, chunk, in + i * BLOCK, sizeof(chunk));
		cg::wait(block);
		sum += chunk[BLOCK - 1 - threadIdx.x];
		block.sync();
	}
	out[BLOCK - 1 - threadIdx.x] = sum;
}

__global__ void by_pipeline(int *out, const int *in)
{
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
	__shared__ int chunks[STAGES][BLOCK];
	auto block = cg::this_thread_block();
	auto pipeline = cuda::make_pipeline(block, &state);
	int sum = 0, fetched = 0;

	for (int i = 0; i < CHUNKS; i++) {
		for (; fetched < CHUNKS && fetched < i + STAGES; fetched++) {
			pipeline.producer_acquire();
			cuda::memcpy_async(block, chunks[fetched % STAGES],
				in + fetched * BLOCK, sizeof(*chunks), pipeline);
			pipeline.producer_commit();
		}
		pipeline.consumer_wait();
		sum += chunks[i % STAGES][BLOCK - 1 - threadIdx.x];
		pipeline.consumer_release();
	}
	out[BLOCK - 1 - threadIdx.x] = sum;
}

__global__ void by_barrier(int *out, const int *in)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> barrier;
	__shared__ alignas(16) int chunk[BLOCK];
	auto block = cg::this_thread_block();
	int sum = 0;

	if (!threadIdx.x)
		init(&barrier, BLOCK);
	block.sync();
	for (int i = 0; i < CHUNKS; i++) {
		cuda::memcpy_async(block, chunk, in + i * BLOCK,
			cuda::aligned_size_t<16>(sizeof(chunk)), barrier);
		barrier.arrive_and_wait();
		sum += chunk[BLOCK - 1 - threadIdx.x];
		barrier.arrive_and_wait();
	}
	out[BLOCK - 1 - threadIdx.x] = sum;
}

/* Sums of eight threads, by the reduction of a group. */
__global__ void reduced(int *out, const int *in)
{
	auto tile = cg::tiled_partition<8>(cg::this_thread_block());

	out[threadIdx.x] = cg::reduce(tile, in[threadIdx.x], cg::plus<int>());
}

static size_t compare(const int *device, const std::vector<int> &wanted)
{
	std::vector<int> got(BLOCK);
	size_t n = 0;

	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(got.data(), device, BLOCK * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BLOCK; i++)
		n += got[i] != wanted[i];
	return n;
}

int main(void)
{
	std::vector<int> values(N), sums(BLOCK), tiles(BLOCK);
	size_t n_wrong = 0;
	int *in, *out;

	for (int i = 0; i < N; i++) {
		values[i] = i * 37 % 1001;
		sums[i % BLOCK] += values[i];
	}
	for (int i = 0; i < BLOCK; i++)
		for (int k = 0; k < 8; k++)
			tiles[i] += values[i / 8 * 8 + k];
	CUDA(cudaMalloc(&in, N * sizeof(int)));
	CUDA(cudaMalloc(&out, BLOCK * sizeof(int)));
	CUDA(cudaMemcpy(in, values.data(), N * sizeof(int), cudaMemcpyHostToDevice));
	by_group<<<1, BLOCK>>>(out, in);
	n_wrong += compare(out, sums);
	by_pipeline<<<1, BLOCK>>>(out, in);
	n_wrong += compare(out, sums);
	by_barrier<<<1, BLOCK>>>(out, in);
	n_wrong += compare(out, sums);
	reduced<<<1, BLOCK>>>(out, in);
	n_wrong += compare(out, tiles);
	return result("pipeline", 4 * BLOCK, n_wrong);
}
