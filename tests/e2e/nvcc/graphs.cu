/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the runtime: captured, built by calls, updated
 */

#include <cstring>

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

/* How many of the 64 numbers are not as many steps behind their place. */
static size_t count_wrong(const unsigned int *x, int rounds)
{
	size_t n = 0;

	for (int i = 0; i < 64; i++)
		n += x[i] != stepped(i, rounds);
	return n;
}

/* Copies in, steps in two streams, copies out. */
static cudaGraph_t capture(unsigned int *pinned, unsigned int *x, int rounds,
	cudaStream_t stream, cudaStream_t side)
{
	cudaStreamCaptureStatus status;
	cudaEvent_t fork, join;
	cudaGraph_t graph;

	CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaMemcpyAsync(x, pinned, 256, cudaMemcpyHostToDevice, stream));
	CUDA(cudaEventRecord(fork, stream));
	CUDA(cudaStreamWaitEvent(side, fork, 0));
	CUDA(cudaMemsetAsync(x + 64, 0, 256, side));
	step<<<1, 64, 0, side>>>(x + 64, 2);
	CUDA(cudaGetLastError());
	CUDA(cudaEventRecord(join, side));
	step<<<1, 64, 0, stream>>>(x, rounds);
	CUDA(cudaStreamWaitEvent(stream, join, 0));
	CUDA(cudaMemcpyAsync(pinned + 64, x, 512, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamIsCapturing(stream, &status));
	if (status != cudaStreamCaptureStatusActive)
		exit(1);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaEventDestroy(fork));
	CUDA(cudaEventDestroy(join));
	return graph;
}

static size_t replay(
	cudaGraphExec_t exec, unsigned int *pinned, int rounds, cudaStream_t stream)
{
	size_t n_wrong = 0;

	for (int i = 0; i < 10; i++) {
		memset(pinned + 64, 0xff, 512);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		n_wrong += count_wrong(pinned + 64, rounds);
		n_wrong += pinned[128] != stepped(0, 2);
	}
	return n_wrong;
}

static size_t captured(unsigned int *pinned, unsigned int *x)
{
	cudaGraphExecUpdateResultInfo info;
	cudaStream_t stream, side;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t n_nodes = 0, n_wrong;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	graph = capture(pinned, x, 7, stream, side);
	CUDA(cudaGraphGetNodes(graph, NULL, &n_nodes));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	n_wrong = replay(exec, pinned, 7, stream) + (n_nodes != 5);
	graph = capture(pinned, x, 9, stream, side);
	CUDA(cudaGraphExecUpdate(exec, graph, &info));
	n_wrong += info.result != cudaGraphExecUpdateSuccess;
	CUDA(cudaGraphUpload(exec, stream));
	n_wrong += replay(exec, pinned, 9, stream);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return n_wrong;
}

/* As in samples of the runtime: a node of each kind, each after the previous one. */
static size_t made_by_hand(unsigned int *pinned, unsigned int *x)
{
	cudaKernelNodeParams kernel = {}, told = {};
	cudaGraphNode_t nodes[4];
	cudaMemsetParams fill = {};
	cudaGraphExec_t exec;
	cudaGraphNodeType type;
	cudaGraph_t graph;
	int rounds = 4;
	void *params[] = { &x, &rounds };
	size_t n_wrong = 0;

	CUDA(cudaGraphCreate(&graph, 0));
	fill.dst = x + 64;
	fill.elementSize = 4;
	fill.width = 64;
	fill.height = 1;
	CUDA(cudaGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill));
	CUDA(cudaGraphAddMemcpyNode1D(
		&nodes[1], graph, &nodes[0], 1, x, pinned, 256, cudaMemcpyHostToDevice));
	kernel.func = (void *)step;
	kernel.gridDim = dim3(1);
	kernel.blockDim = dim3(64);
	kernel.kernelParams = params;
	CUDA(cudaGraphAddKernelNode(&nodes[2], graph, &nodes[1], 1, &kernel));
	CUDA(cudaGraphAddMemcpyNode1D(&nodes[3], graph, &nodes[2], 1, pinned + 64, x, 512,
		cudaMemcpyDeviceToHost));
	CUDA(cudaGraphKernelNodeGetParams(nodes[2], &told));
	n_wrong += told.func != kernel.func || told.blockDim.x != 64;
	n_wrong += *(int *)told.kernelParams[1] != 4;
	CUDA(cudaGraphNodeGetType(nodes[1], &type));
	n_wrong += type != cudaGraphNodeTypeMemcpy;
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaDeviceSynchronize());
	n_wrong += count_wrong(pinned + 64, 4) + (pinned[128] != 0);
	rounds = 6;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, nodes[2], &kernel));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaDeviceSynchronize());
	n_wrong += count_wrong(pinned + 64, 6);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return n_wrong;
}

int main()
{
	unsigned int *pinned, *x;
	size_t n_wrong;

	CUDA(cudaMallocHost(&pinned, 4096));
	CUDA(cudaMalloc(&x, 4096));
	for (int i = 0; i < 64; i++)
		pinned[i] = i;
	n_wrong = captured(pinned, x);
	n_wrong += made_by_hand(pinned, x);
	CUDA(cudaFree(x));
	CUDA(cudaFreeHost(pinned));
	return result("graphs", 21 * 65 + 64, n_wrong);
}
