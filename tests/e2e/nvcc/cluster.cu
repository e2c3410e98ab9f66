/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters by cooperative groups: a histogram whose bins are distributed over the shared
 * memory of the blocks, and a ring of messages; with the shape of the clusters in the
 * launch, and in the kernel
 */

#include <cooperative_groups.h>

#include "runtime.h"

namespace cg = cooperative_groups;

#define BINS 256
#define N (1 << 16)
#define BLOCKS 8
#define THREADS 128

/* Each block of a cluster has a part of the bins in its shared memory. */
__global__ void histogram(const unsigned int *in, unsigned int *out, int n_bins_each)
{
	extern __shared__ unsigned int bins[];
	cg::cluster_group cluster = cg::this_cluster();
	unsigned int n = gridDim.x * blockDim.x;

	for (int i = threadIdx.x; i < n_bins_each; i += blockDim.x)
		bins[i] = 0;
	cluster.sync();
	for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += n) {
		unsigned int bin = in[i] % BINS;
		unsigned int *there = cluster.map_shared_rank(bins, bin / n_bins_each);

		atomicAdd(there + bin % n_bins_each, 1);
	}
	cluster.sync();
	for (int i = threadIdx.x; i < n_bins_each; i += blockDim.x)
		atomicAdd(out + cluster.block_rank() * n_bins_each + i, bins[i]);
}

/* A thread of each block passes on what it got from the block before it. */
__global__ void __cluster_dims__(2, 2, 1) ring(unsigned int *out)
{
	__shared__ unsigned int box;
	cg::cluster_group cluster = cg::this_cluster();
	unsigned int rank = cluster.block_rank(),
		     next = (rank + 1) % cluster.num_blocks();
	unsigned int value = rank;
	unsigned int block = blockIdx.y * gridDim.x + blockIdx.x;

	for (unsigned int round = 0; round < 3; round++) {
		if (threadIdx.x == 0)
			*cluster.map_shared_rank(&box, next) = value * 10 + rank;
		cluster.barrier_arrive();
		cluster.barrier_wait();
		value = box;
		cluster.sync();
	}
	if (threadIdx.x == 0) {
		out[2 * block] = value;
		out[2 * block + 1] =
			cluster.query_shared_rank(cluster.map_shared_rank(&box, next)) *
				100 +
			cluster.dim_blocks().x * 10 + cluster.num_blocks();
	}
}

static unsigned int passed(unsigned int rank)
{
	unsigned int value[4], before[4];

	for (unsigned int i = 0; i < 4; i++)
		value[i] = i;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 4; i++)
			before[i] = value[i] * 10 + i;
		for (unsigned int i = 0; i < 4; i++)
			value[(i + 1) % 4] = before[i];
	}
	return value[rank];
}

static cudaError_t launch(unsigned int width, const unsigned int *in, unsigned int *out)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = width;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.gridDim = BLOCKS;
	config.blockDim = THREADS;
	config.dynamicSmemBytes = BINS / width * sizeof(unsigned int);
	config.attrs = &attribute;
	config.numAttrs = 1;
	return cudaLaunchKernelEx(&config, histogram, in, out, (int)(BINS / width));
}

int main()
{
	std::vector<unsigned int> in(N), want(BINS, 0), got(BINS);
	unsigned int *from, *to, words[2 * 4 * 4];
	size_t n_wrong = 0, n = 0;
	int can = 0;

	CUDA(cudaDeviceGetAttribute(&can, cudaDevAttrClusterLaunch, 0));
	if (!can) {
		fprintf(stderr, "no clusters\n");
		return EXIT_FAILURE;
	}
	for (unsigned int i = 0; i < N; i++) {
		in[i] = i * 2654435761u >> 7;
		want[in[i] % BINS]++;
	}
	CUDA(cudaMalloc(&from, N * sizeof(*from)));
	CUDA(cudaMalloc(&to, BINS * sizeof(*to)));
	CUDA(cudaMemcpy(from, in.data(), N * sizeof(*from), cudaMemcpyHostToDevice));
	for (unsigned int width = 1; width <= 8; width *= 2) {
		CUDA(cudaMemset(to, 0, BINS * sizeof(*to)));
		CUDA(launch(width, from, to));
		CUDA(cudaMemcpy(
			got.data(), to, BINS * sizeof(*to), cudaMemcpyDeviceToHost));
		for (unsigned int i = 0; i < BINS; i++, n++)
			n_wrong += got[i] != want[i];
	}
	/* Refused at the launch, and the context is usable. */
	n_wrong += launch(3, from, to) != cudaErrorInvalidClusterSize;
	cudaGetLastError();

	ring<<<dim3(4, 4), 32>>>(to);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(words, to, sizeof(words), cudaMemcpyDeviceToHost));
	for (unsigned int block = 0; block < 16; block++, n += 2) {
		unsigned int rank = block % 4 % 2 + block / 4 % 2 * 2;

		n_wrong += words[2 * block] != passed(rank);
		n_wrong += words[2 * block + 1] != (rank + 1) % 4 * 100 + 24;
	}
	return result("clusters", n, n_wrong);
}
