/* SPDX-License-Identifier: Apache-2.0 */
/*
 * new and delete in kernels, from a heap of the size that was asked for; then an assert
 */

#undef NDEBUG
#include <cassert>

#include "runtime.h"

#define N 128

struct node {
	node *next;
	unsigned int value;
};

/* Lists that outlive the kernel that made them. */
__global__ void make(node **lists)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
	node *list = NULL;

	for (unsigned int k = 0; k < i % 5 + 1; k++) {
		node *n = new node;

		n->next = list;
		n->value = i * 10 + k;
		list = n;
	}
	lists[i] = list;
}

__global__ void sum(node **lists, unsigned int *sums)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
	node *next;

	sums[i] = 0;
	for (node *n = lists[i]; n; n = next) {
		sums[i] += n->value;
		next = n->next;
		delete n;
	}
}

/* How many pieces of 64 KiB the heap holds; all of them go back. */
__global__ void exhaust(unsigned int *count)
{
	void *list = NULL;
	unsigned int n = 0;

	for (void *p; n < 100000 && (p = malloc(65536)); n++) {
		*(void **)p = list;
		list = p;
	}
	*count = n;
	while (list) {
		void *next = *(void **)list;

		free(list);
		list = next;
	}
}

__global__ void fail(unsigned int limit)
{
	assert(threadIdx.x < limit);
}

int main()
{
	std::vector<unsigned int> sums(N);
	unsigned int *ds, count[2];
	size_t n_wrong = 0;
	node **lists;

	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 4 << 20));
	CUDA(cudaMalloc(&lists, N * sizeof(*lists)));
	CUDA(cudaMalloc(&ds, N * sizeof(*ds)));
	make<<<N / 32, 32>>>(lists);
	sum<<<N / 32, 32>>>(lists, ds);
	CUDA(cudaMemcpy(sums.data(), ds, N * sizeof(*ds), cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < N; i++) {
		unsigned int n = i % 5 + 1;

		n_wrong += sums[i] != n * i * 10 + n * (n - 1) / 2;
	}
	for (int k = 0; k < 2; k++) {
		exhaust<<<1, 1>>>(ds);
		CUDA(cudaMemcpy(&count[k], ds, sizeof(count[k]), cudaMemcpyDeviceToHost));
	}
	n_wrong += count[0] < 32 || count[0] > 64 || count[1] != count[0];
	fail<<<2, 32>>>(32);
	CUDA(cudaDeviceSynchronize());
	fail<<<2, 32>>>(31);
	n_wrong += cudaDeviceSynchronize() != cudaErrorAssert;
	n_wrong += cudaFree(ds) != cudaErrorAssert;
	return result("heap", N + 4, n_wrong);
}
