/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cooperative groups: a grid whose blocks meet, tiles, coalesced threads
 */

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "runtime.h"

namespace cg = cooperative_groups;

#define BLOCKS 12
#define THREADS 96
#define N (BLOCKS * THREADS)
#define ROUNDS 5

/* Each round every thread takes what its right neighbour had the round before. */
__global__ void rotate(unsigned int *a, unsigned int *b, unsigned int *sums)
{
	cg::grid_group grid = cg::this_grid();
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
	unsigned int i = grid.thread_rank();

	for (int round = 0; round < ROUNDS; round++) {
		b[i] = a[(i + 1) % grid.size()] + 1;
		grid.sync();
		unsigned int *t = a;

		a = b;
		b = t;
	}
	unsigned int sum = cg::reduce(tile, a[i], cg::plus<unsigned int>());

	if (i % 3 == 1) {
		cg::coalesced_group active = cg::coalesced_threads();

		sum += active.size() * 1000000;
	}
	sums[i] = sum;
}

int main()
{
	std::vector<unsigned int> a(N), sums(N);
	unsigned int *da, *db, *ds;
	size_t n_wrong = 0;

	for (unsigned int i = 0; i < N; i++)
		a[i] = i * 7;
	CUDA(cudaMalloc(&da, N * sizeof(*da)));
	CUDA(cudaMalloc(&db, N * sizeof(*db)));
	CUDA(cudaMalloc(&ds, N * sizeof(*ds)));
	CUDA(cudaMemcpy(da, a.data(), N * sizeof(*da), cudaMemcpyHostToDevice));
	void *args[] = { &da, &db, &ds };
	CUDA(cudaLaunchCooperativeKernel((void *)rotate, BLOCKS, THREADS, args, 0, NULL));
	CUDA(cudaMemcpy(sums.data(), ds, N * sizeof(*ds), cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < N; i++) {
		unsigned int want = 0, lanes = 0;

		for (unsigned int k = i / 8 * 8; k < i / 8 * 8 + 8; k++)
			want += (k + ROUNDS) % N * 7 + ROUNDS;
		for (unsigned int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
			lanes += k % 3 == 1;
		n_wrong += sums[i] != want + (i % 3 == 1 ? lanes * 1000000 : 0);
	}
	return result("grid", N, n_wrong);
}
