/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with functions of the program, children, and ordinary memory: captured, and
 * built by calls
 */

#include <atomic>
#include <thread>

#include "runtime.h"

#define N (1 << 16)
#define ROUNDS 10

static std::atomic<int> n_ends;

__global__ void add(float *sum, const float *x, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x)
		atomicAdd(sum, x[i]);
}

struct check {
	float *sum;
	float expected;
	size_t n_calls, n_wrong;
};

static void CUDART_CB look(void *data)
{
	struct check *check = (struct check *)data;

	check->n_calls++;
	check->n_wrong += *check->sum != check->expected;
}

static void CUDART_CB count_end(void *data)
{
	n_ends++;
}

/* Ordinary memory in, a sum, ordinary memory out, and a function that reads it. */
static cudaGraph_t capture(
	const float *x, float *on_device, struct check *check, cudaStream_t stream)
{
	cudaUserObject_t object;
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaMemsetAsync(on_device + N, 0, sizeof(float), stream));
	CUDA(cudaMemcpyAsync(
		on_device, x, N * sizeof(float), cudaMemcpyHostToDevice, stream));
	add<<<4, 64, 0, stream>>>(on_device + N, on_device, N);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpyAsync(check->sum, on_device + N, sizeof(float),
		cudaMemcpyDeviceToHost, stream));
	CUDA(cudaLaunchHostFunc(stream, look, check));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaUserObjectCreate(
		&object, check, count_end, 1, cudaUserObjectNoDestructorSync));
	CUDA(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	return graph;
}

/* The captured graph twice, one after the other, and a function between them. */
static cudaGraph_t build(cudaGraph_t part, struct check *check)
{
	cudaHostNodeParams host = { look, check };
	cudaGraphNode_t first, between, last;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&first, graph, NULL, 0, part));
	CUDA(cudaGraphAddHostNode(&between, graph, &first, 1, &host));
	CUDA(cudaGraphAddChildGraphNode(&last, graph, &between, 1, part));
	return graph;
}

static size_t replay(cudaGraph_t graph, std::vector<float> *x, struct check *check,
	size_t n_calls, cudaStream_t stream)
{
	size_t n_wrong = 0;
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 1; i <= ROUNDS; i++) {
		for (float &value : *x)
			value = (float)i;
		check->expected = (float)N * i;
		check->n_calls = 0;
		*check->sum = 0;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		n_wrong += check->n_calls != n_calls;
		n_wrong += *check->sum != check->expected;
	}
	CUDA(cudaGraphExecDestroy(exec));
	return n_wrong + check->n_wrong;
}

int main(void)
{
	float *on_device, sum = 0;
	struct check check = { &sum };
	std::vector<float> x(N);
	cudaGraph_t part, graph;
	cudaStream_t stream;
	size_t n_nodes = 0, n_wrong;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&on_device, (N + 1) * sizeof(float)));
	part = capture(x.data(), on_device, &check, stream);
	CUDA(cudaGraphGetNodes(part, NULL, &n_nodes));
	n_wrong = n_nodes != 5;
	n_wrong += replay(part, &x, &check, 1, stream);
	graph = build(part, &check);
	CUDA(cudaGraphDestroy(part));
	n_wrong += n_ends != 0;
	n_wrong += replay(graph, &x, &check, 3, stream);
	CUDA(cudaGraphDestroy(graph));
	while (!n_ends)
		std::this_thread::yield();
	return result("nodes", 2 * ROUNDS, n_wrong);
}
