/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of all priorities whose kernels wait for each other, a scan whose blocks do,
 * and a captured graph that keeps the priorities of its streams
 */

#include "runtime.h"

#define N_BLOCKS 700
#define N_THREADS 128

/* Waits for the flag behind its own, which a kernel of lower priority sets. */
__global__ void link(volatile unsigned int *flags)
{
	while (!flags[1])
		;
	__threadfence();
	flags[0] = flags[1] + 1;
}

#define ALONE (1ull << 32)
#define WHOLE (2ull << 32)

/*
 * The inclusive sum by decoupled look-back; blocks take their places as they begin. A
 * state is one word: the sum of a block alone, or of all up to it.
 */
__global__ void scan(unsigned int *out, const unsigned int *in, unsigned int *next,
	volatile unsigned long long *states)
{
	__shared__ unsigned int values[N_THREADS], block, before;
	unsigned int sum = 0, total = 0;
	unsigned long long state;

	if (!threadIdx.x)
		block = atomicAdd(next, 1);
	__syncthreads();
	values[threadIdx.x] = in[block * N_THREADS + threadIdx.x];
	__syncthreads();
	for (unsigned int i = 0; i <= threadIdx.x; i++)
		sum += values[i];
	if (threadIdx.x == N_THREADS - 1) {
		states[block] = ALONE | sum;
		for (unsigned int i = block; i--;) {
			while (!(state = states[i]))
				;
			total += (unsigned int)state;
			if (state & WHOLE)
				break;
		}
		before = total;
		states[block] = WHOLE | (total + sum);
	}
	__syncthreads();
	out[block * N_THREADS + threadIdx.x] = before + sum;
}

static size_t links(int least, int greatest)
{
	const int n = least - greatest + 1;
	unsigned int *flags, one = 1;
	size_t n_wrong = 0;
	std::vector<unsigned int> seen(n + 1);
	cudaStream_t stream;
	int priority;

	CUDA(cudaMalloc(&flags, (n + 1) * sizeof(*flags)));
	CUDA(cudaMemset(flags, 0, (n + 1) * sizeof(*flags)));
	for (int i = 0; i < n; i++) {
		CUDA(cudaStreamCreateWithPriority(
			&stream, cudaStreamNonBlocking, greatest + i));
		CUDA(cudaStreamGetPriority(stream, &priority));
		n_wrong += priority != greatest + i;
		link<<<1, 1, 0, stream>>>(flags + i);
		CUDA(cudaGetLastError());
	}
	CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, least + 9));
	CUDA(cudaStreamGetPriority(stream, &priority));
	n_wrong += priority != least;
	CUDA(cudaMemcpyAsync(
		flags + n, &one, sizeof(one), cudaMemcpyHostToDevice, stream));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(
		seen.data(), flags, (n + 1) * sizeof(*flags), cudaMemcpyDeviceToHost));
	for (int i = 0; i <= n; i++)
		n_wrong += seen[i] != (unsigned int)(n + 1 - i);
	return n_wrong;
}

static int node_priority(cudaGraphNode_t node)
{
	cudaKernelNodeAttrValue value = {};

	CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value));
	return value.priority;
}

/* The scan, in a graph that was captured from a stream of the greatest priority. */
static size_t scans(int greatest)
{
	const unsigned int n = N_BLOCKS * N_THREADS;
	std::vector<unsigned int> in(n), out(n);
	unsigned int *x, *y, *next, sum = 0;
	cudaGraphNode_t nodes[3];
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t n_nodes = 3, n_wrong = 0;
	unsigned long long *states;

	for (unsigned int i = 0; i < n; i++)
		in[i] = i % 7;
	CUDA(cudaMalloc(&x, n * sizeof(*x)));
	CUDA(cudaMalloc(&y, n * sizeof(*y)));
	CUDA(cudaMalloc(&next, sizeof(*next)));
	CUDA(cudaMalloc(&states, N_BLOCKS * sizeof(*states)));
	CUDA(cudaMemcpy(x, in.data(), n * sizeof(*x), cudaMemcpyHostToDevice));
	CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaMemsetAsync(next, 0, sizeof(*next), stream));
	CUDA(cudaMemsetAsync(states, 0, N_BLOCKS * sizeof(*states), stream));
	scan<<<N_BLOCKS, N_THREADS, 0, stream>>>(y, x, next, states);
	CUDA(cudaGetLastError());
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, nodes, &n_nodes));
	n_wrong += n_nodes != 3 || node_priority(nodes[2]) != greatest;
	CUDA(cudaGraphInstantiateWithFlags(
		&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
	for (int round = 0; round < 3; round++) {
		CUDA(cudaMemset(y, 0xff, n * sizeof(*y)));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(out.data(), y, n * sizeof(*y), cudaMemcpyDeviceToHost));
		sum = 0;
		for (unsigned int i = 0; i < n; i++)
			n_wrong += out[i] != (sum += in[i]);
	}
	return n_wrong;
}

int main()
{
	int least, greatest;
	size_t n_wrong;

	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	n_wrong = least < greatest;
	n_wrong += links(least, greatest);
	n_wrong += scans(greatest);
	return result("priorities", N_BLOCKS * N_THREADS, n_wrong);
}
