/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables and managed memory: host and kernels use the same pointers
 */

#include "runtime.h"

struct node {
	struct node *next;
	int value;
};

__managed__ int total = 1000;
__managed__ int table[256];
__managed__ struct node *list;
__device__ int scale = 3;

__global__ void sum(int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		atomicAdd(&total, scale * table[i]);
}

__global__ void walk(int *out)
{
	int value = 0;

	for (struct node *node = list; node; node = node->next)
		value = 10 * value + node->value;
	*out = value;
}

int main()
{
	struct node *nodes;
	size_t n_wrong = 0;
	int expected = 1000, *answer;
	cudaPointerAttributes attributes;

	/* The host is first: it touches a variable before it calls anything else. */
	n_wrong += total != 1000;
	for (int i = 0; i < 256; i++) {
		table[i] = i;
		expected += 3 * i;
	}
	sum<<<4, 64>>>(256);
	CUDA(cudaDeviceSynchronize());
	n_wrong += total != expected;

	/* A list that the host links and the device follows. */
	CUDA(cudaMallocManaged(&nodes, 4 * sizeof(*nodes)));
	CUDA(cudaMallocManaged(&answer, sizeof(*answer)));
	for (int i = 0; i < 4; i++) {
		nodes[i].next = i < 3 ? &nodes[i + 1] : NULL;
		nodes[i].value = i + 1;
	}
	list = nodes;
	walk<<<1, 1>>>(answer);
	CUDA(cudaDeviceSynchronize());
	n_wrong += *answer != 1234;

	CUDA(cudaPointerGetAttributes(&attributes, nodes));
	n_wrong += attributes.type != cudaMemoryTypeManaged;
	n_wrong += attributes.devicePointer != nodes || attributes.hostPointer != nodes;
	CUDA(cudaMemcpyFromSymbol(answer, total, sizeof(*answer)));
	n_wrong += *answer != expected;
	CUDA(cudaFree(nodes));
	CUDA(cudaFree(answer));
	return result("managed", 8, n_wrong);
}
