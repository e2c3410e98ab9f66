/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that allocate and free memory: built by calls, and captured; memory that
 * outlives the launch that allocated it
 */

#include "runtime.h"

#define N (1 << 16)
#define SIZE (N * sizeof(unsigned int))
#define ROUNDS 10

static const dim3 grid(N / 256), block(256);

__global__ void fill(unsigned int *to, const unsigned int *first)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = *first + i;
}

__global__ void add(unsigned int *to, const unsigned int *from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] += from[i];
}

static cudaGraphNode_t add_kernel(
	cudaGraph_t graph, cudaGraphNode_t before, void *function, void **arguments)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = grid;
	params.blockDim = block;
	params.kernelParams = arguments;
	CUDA(cudaGraphAddKernelNode(&node, graph, &before, 1, &params));
	return node;
}

/* sum += first, first + 1, ... by way of memory of the graph. */
static cudaGraph_t build(unsigned int *sum, unsigned int *first)
{
	cudaMemAllocNodeParams params = {};
	cudaGraphNode_t allocated, node;
	cudaGraph_t graph;
	unsigned int *memory;

	CUDA(cudaGraphCreate(&graph, 0));
	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.bytesize = SIZE;
	CUDA(cudaGraphAddMemAllocNode(&allocated, graph, NULL, 0, &params));
	memory = (unsigned int *)params.dptr;
	void *of_fill[] = { &memory, &first }, *of_add[] = { &sum, &memory };

	node = add_kernel(graph, allocated, (void *)fill, of_fill);
	node = add_kernel(graph, node, (void *)add, of_add);
	CUDA(cudaGraphAddMemFreeNode(&node, graph, &node, 1, memory));
	return graph;
}

/* The same by a capture, and a copy of the first number from memory of the program. */
static cudaGraph_t capture(
	unsigned int *sum, unsigned int *first, unsigned int *number, cudaStream_t stream)
{
	unsigned int *memory;
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMallocAsync(&memory, SIZE, stream));
	CUDA(cudaMemcpyAsync(
		first, number, sizeof(*number), cudaMemcpyHostToDevice, stream));
	fill<<<grid, block, 0, stream>>>(memory, first);
	add<<<grid, block, 0, stream>>>(sum, memory);
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static size_t run(cudaGraph_t graph, unsigned int *sum, unsigned int *number,
	unsigned int step, cudaStream_t stream)
{
	std::vector<unsigned int> values(N);
	cudaGraphExec_t exec;
	unsigned int total = 0;
	size_t n_wrong = 0;

	CUDA(cudaMemset(sum, 0, SIZE));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < ROUNDS; i++) {
		total += *number;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		*number += step;
	}
	CUDA(cudaMemcpy(values.data(), sum, SIZE, cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < N; i++)
		n_wrong += values[i] != total + ROUNDS * i;
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return n_wrong;
}

/* What a graph allocates and does not free stays until the program frees it, or the next
 * launch does. */
static size_t keep(unsigned int *first, unsigned int number, cudaStream_t stream)
{
	std::vector<unsigned int> values(N);
	unsigned int *memory;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t n_wrong = 0;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMallocAsync(&memory, SIZE, stream));
	fill<<<grid, block, 0, stream>>>(memory, first);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(
		&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	for (int i = 0; i < 2; i++)
		CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaMemcpyAsync(
		values.data(), memory, SIZE, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (unsigned int i = 0; i < N; i++)
		n_wrong += values[i] != number + i;
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return n_wrong;
}

/* Whether graphs hold memory of the device. */
static bool is_held(cudaGraphMemAttributeType attribute)
{
	unsigned long long size = 1;

	CUDA(cudaDeviceGetGraphMemAttribute(0, attribute, &size));
	return size != 0;
}

int main(void)
{
	unsigned int *sum, *first, number = 7;
	size_t n_wrong = 0;
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&sum, SIZE));
	CUDA(cudaMalloc(&first, sizeof(*first)));
	CUDA(cudaMemcpy(first, &number, sizeof(number), cudaMemcpyHostToDevice));
	n_wrong += run(build(sum, first), sum, &number, 0, stream);
	n_wrong += run(capture(sum, first, &number, stream), sum, &number, 3, stream);
	/* The last copy was of the number before the last step. */
	n_wrong += keep(first, number - 3, stream);
	n_wrong += is_held(cudaGraphMemAttrUsedMemCurrent);
	CUDA(cudaDeviceGraphMemTrim(0));
	n_wrong += is_held(cudaGraphMemAttrReservedMemCurrent);
	CUDA(cudaFree(sum));
	CUDA(cudaFree(first));
	return result("memory-nodes", 3 * N, n_wrong);
}
