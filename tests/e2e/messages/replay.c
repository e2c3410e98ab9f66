/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures an iteration and replays it, also while the host is stopped
 *
 * It prints "ready" after the first launch of the graph, waits for a line, launches the
 * graph a hundred times, prints "launched", and waits for another line before it checks
 * the result.
 */

#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#define TRY(_call)                                                                       \
	do {                                                                             \
		CUresult r_ = (_call);                                                   \
		if (r_ != CUDA_SUCCESS) {                                                \
			printf("%s is %d\n", #_call, r_);                                \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

extern const char kernels_ptx[];

static void step(CUfunction function, CUdeviceptr x, int rounds, CUstream stream)
{
	void *params[] = { &x, &rounds };

	TRY(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* Work in two streams, and all that a framework does in between. */
static CUgraphExec capture(CUfunction function, CUdeviceptr x, CUstream stream)
{
	CUevent fork, join;
	CUgraphExec exec;
	CUgraph graph;
	CUstream side;

	TRY(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	TRY(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	TRY(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	TRY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	step(function, x, 1, stream);
	TRY(cuEventRecord(fork, stream));
	TRY(cuStreamWaitEvent(side, fork, 0));
	TRY(cuMemsetD32Async(x + 4, 5, 1, side));
	step(function, x + 4, 1, side);
	TRY(cuEventRecord(join, side));
	step(function, x, 1, stream);
	TRY(cuStreamWaitEvent(stream, join, 0));
	TRY(cuMemcpyDtoDAsync(x + 8, x + 4, 4, stream));
	TRY(cuStreamEndCapture(stream, &graph));
	TRY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	TRY(cuGraphDestroy(graph));
	return exec;
}

static void tell(const char *what)
{
	puts(what);
	fflush(stdout);
	if (getchar() == EOF)
		exit(2);
}

int main(void)
{
	unsigned int words[3] = { 0 }, expected = 0;
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUgraphExec exec;
	CUstream stream;
	CUdeviceptr x;

	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&context, 0));
	TRY(cuCtxSetCurrent(context));
	TRY(cuModuleLoadData(&module, kernels_ptx));
	TRY(cuModuleGetFunction(&function, module, "step"));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuMemAlloc(&x, sizeof(words)));
	TRY(cuMemsetD32(x, 0, 3));
	exec = capture(function, x, stream);
	TRY(cuGraphLaunch(exec, stream));
	TRY(cuStreamSynchronize(stream));
	tell("ready");
	for (int i = 0; i < 100; i++)
		TRY(cuGraphLaunch(exec, stream));
	tell("launched");
	TRY(cuStreamSynchronize(stream));
	TRY(cuMemcpyDtoH(words, x, sizeof(words)));
	for (int i = 0; i < 202; i++)
		expected = 3 * expected + 1;
	return words[0] != expected || words[2] != 3 * 5 + 1;
}
