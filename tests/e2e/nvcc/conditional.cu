/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes of graphs: kernels decide what a graph does
 */

#include "runtime.h"

#define N 64

/* One step of the Collatz sequence for each of the numbers that are not 1; the condition
 * is how many are left. */
__global__ void collatz(
	cudaGraphConditionalHandle handle, unsigned int *numbers, unsigned int *steps)
{
	__shared__ unsigned int n_left;
	unsigned int *x = &numbers[threadIdx.x];

	if (!threadIdx.x)
		n_left = 0;
	__syncthreads();
	if (*x > 1) {
		*x = *x % 2 ? 3 * *x + 1 : *x / 2;
		steps[threadIdx.x]++;
	}
	if (*x > 1)
		atomicAdd(&n_left, 1);
	__syncthreads();
	if (!threadIdx.x)
		cudaGraphSetConditional(handle, n_left);
}

__global__ void choose(cudaGraphConditionalHandle handle, const unsigned int *value)
{
	cudaGraphSetConditional(handle, *value);
}

__global__ void add(unsigned int *x, unsigned int n)
{
	*x += n;
}

static unsigned int expected(unsigned int x)
{
	unsigned int n = 0;

	for (; x > 1; n++)
		x = x % 2 ? 3 * x + 1 : x / 2;
	return n;
}

static cudaGraphNode_t add_conditional(cudaGraph_t graph, const cudaGraphNode_t *before,
	cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
	unsigned int n, cudaGraph_t *bodies)
{
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node;

	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = n;
	CUDA(cudaGraphAddNode(&node, graph, before, NULL, before ? 1 : 0, &params));
	for (unsigned int i = 0; i < n; i++)
		bodies[i] = params.conditional.phGraph_out[i];
	return node;
}

static cudaGraphNode_t add_kernel(
	cudaGraph_t graph, const cudaGraphNode_t *before, void *function, void **values)
{
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node;

	params.type = cudaGraphNodeTypeKernel;
	params.kernel.func = function;
	params.kernel.gridDim = dim3(1);
	params.kernel.blockDim = dim3(1);
	params.kernel.kernelParams = values;
	CUDA(cudaGraphAddNode(&node, graph, before, NULL, before ? 1 : 0, &params));
	return node;
}

/* A loop whose body is captured, with a copy to ordinary memory. */
static size_t loop(cudaStream_t stream)
{
	unsigned int host[N], seen[N], *numbers, *steps;
	cudaGraphConditionalHandle handle;
	cudaGraphExec_t exec;
	cudaGraph_t graph, body;
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&numbers, sizeof(host)));
	CUDA(cudaMalloc(&steps, sizeof(host)));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(
		&handle, graph, 1, cudaGraphCondAssignDefault));
	add_conditional(graph, NULL, handle, cudaGraphCondTypeWhile, 1, &body);
	CUDA(cudaStreamBeginCaptureToGraph(
		stream, body, NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
	collatz<<<1, N, 0, stream>>>(handle, numbers, steps);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpyAsync(seen, steps, sizeof(seen), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, NULL));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < N; i++)
			host[i] = 1000 * round + i;
		CUDA(cudaMemcpy(numbers, host, sizeof(host), cudaMemcpyHostToDevice));
		CUDA(cudaMemset(steps, 0, sizeof(host)));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(host, steps, sizeof(host), cudaMemcpyDeviceToHost));
		for (unsigned int i = 0; i < N; i++)
			n_wrong += host[i] != expected(1000 * round + i) ||
				   seen[i] != host[i];
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return n_wrong;
}

/* if (value) value = 100, else 200; then x += 1 << value in a switch of four. */
static size_t choices(cudaStream_t stream)
{
	unsigned int *words, ones[] = { 1, 2, 4, 8 }, zero = 0, value;
	cudaGraphConditionalHandle decides, switches;
	cudaGraph_t graph, branches[2], cases[4];
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&words, 12));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(&decides, graph, 0, 0));
	CUDA(cudaGraphConditionalHandleCreate(&switches, graph, 0, 0));
	void *first[] = { &decides, &words };
	node = add_kernel(graph, NULL, (void *)choose, first);
	node = add_conditional(graph, &node, decides, cudaGraphCondTypeIf, 2, branches);
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int *x = words + 1, n = i ? 200 : 100;
		void *values[] = { &x, &n };

		add_kernel(branches[i], NULL, (void *)add, values);
	}
	void *second[] = { &switches, &words };
	node = add_kernel(graph, &node, (void *)choose, second);
	add_conditional(graph, &node, switches, cudaGraphCondTypeSwitch, 4, cases);
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int *x = words + 2;
		void *values[] = { &x, &ones[i] };

		add_kernel(cases[i], NULL, (void *)add, values);
	}
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned int i = 0; i < 6; i++) {
		unsigned int host[3] = { i, zero, zero };

		CUDA(cudaMemcpy(words, host, 12, cudaMemcpyHostToDevice));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(host, words, 12, cudaMemcpyDeviceToHost));
		value = i < 4 ? 1u << i : 0;
		n_wrong += host[1] != (i ? 100 : 200);
		n_wrong += host[2] != value;
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return n_wrong;
}

int main()
{
	cudaStream_t stream;
	size_t n_wrong;

	CUDA(cudaStreamCreate(&stream));
	n_wrong = loop(stream);
	n_wrong += choices(stream);
	return result("conditional", 2 * N + 12, n_wrong);
}
