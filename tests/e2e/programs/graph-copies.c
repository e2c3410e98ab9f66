/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from and to pinned memory in graphs only, for recordings: one graph is captured,
 * the other is made of nodes; each is launched three times, with other contents. Before
 * them are reservations that are refused.
 */

#include <stdio.h>
#include <string.h>

#include <cuda.h>

#define N_LAUNCHES 3

static int wrong;

static void is(CUresult r, const char *what)
{
	if (r)
		fprintf(stderr, "%s gives %d\n", what, r);
	wrong |= r != 0;
}

static CUgraph capture(CUstream stream, unsigned int *pinned, CUdeviceptr memory)
{
	CUgraph graph = NULL;

	is(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capturing");
	is(cuMemcpyHtoDAsync(memory, pinned, 4, stream), "copying");
	is(cuMemcpyDtoHAsync(pinned + 1024, memory, 4, stream), "copying back");
	is(cuStreamEndCapture(stream, &graph), "ending");
	return graph;
}

static CUgraph build(CUcontext context, unsigned int *pinned, CUdeviceptr memory)
{
	CUDA_MEMCPY3D to = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = pinned,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
	CUDA_MEMCPY3D from = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = pinned + 1024,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
	CUgraph graph = NULL;
	CUgraphNode node, last;

	is(cuGraphCreate(&graph, 0), "a graph");
	is(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &to, context), "a node");
	is(cuGraphAddMemcpyNode(&last, graph, &node, 1, &from, context), "a node");
	return graph;
}

static void run(CUgraph graph, CUstream stream, unsigned int *pinned)
{
	CUgraphExec exec = NULL;

	is(cuGraphInstantiate(&exec, graph, 0), "instantiating");
	for (unsigned int i = 0; i < N_LAUNCHES; i++) {
		pinned[0] = i + 5;
		pinned[1024] = 0;
		is(cuGraphLaunch(exec, stream), "launching");
		is(cuStreamSynchronize(stream), "waiting");
		wrong |= pinned[1024] != i + 5;
	}
}

int main(void)
{
	unsigned int *pinned = NULL;
	CUdeviceptr memory = 0, none;
	CUcontext context;
	CUstream stream;
	CUdevice device;

	is(cuInit(0), "cuInit");
	is(cuDeviceGet(&device, 0), "cuDeviceGet");
	is(cuDevicePrimaryCtxRetain(&context, device), "retaining");
	is(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	is(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream");
	is(cuMemAlloc(&memory, 4096), "allocating");
	is(cuMemHostAlloc((void **)&pinned, 8192, 0), "pinned memory");
	if (wrong)
		return 1;
	/* Its reply has the result only. */
	for (size_t size = 1; size < 8; size++)
		wrong |= cuMemAddressReserve(&none, size, 0, 0, 0) !=
			 CUDA_ERROR_INVALID_VALUE;
	run(capture(stream, pinned, memory), stream, pinned);
	run(build(context, pinned, memory), stream, pinned);
	return wrong;
}
