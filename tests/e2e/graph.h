/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fixture of the end-to-end tests of graphs and captures
 */

#include "e2e.h"

static inline CUstream stream_new(void)
{
	CUstream stream = NULL;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static inline CUdeviceptr memory_new(size_t size)
{
	CUdeviceptr memory = 0;

	check_ok(cuMemAlloc(&memory, size));
	check_ok(cuMemsetD8(memory, 0, size));
	/* Streams of stream_new() do not wait for the fill. */
	check_ok(cuStreamSynchronize(NULL));
	return memory;
}

/* Of a node that is one thread. */
static inline CUDA_KERNEL_NODE_PARAMS step_params(CUfunction step, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = step,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params,
	};
}

static inline CUstreamCaptureStatus capture_status(CUstream stream)
{
	CUstreamCaptureStatus status = 99;

	check_ok(cuStreamIsCapturing(stream, &status));
	return status;
}

static inline void capture_begin(CUstream stream, CUstreamCaptureMode mode)
{
	check_ok(cuStreamBeginCapture(stream, mode));
	check_eq(capture_status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static inline CUgraph capture_end(CUstream stream)
{
	CUgraph graph = NULL;

	check_ok(cuStreamEndCapture(stream, &graph));
	check(graph);
	check_eq(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	return graph;
}

/* The capture was invalidated: it ends without a graph. */
static inline void capture_end_in_vain(CUstream stream)
{
	CUgraph graph = (CUgraph)1;

	check_eq(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	check_cu(cuStreamEndCapture(stream, &graph),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	check(!graph);
	check_eq(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

static inline CUgraphExec exec_new(CUgraph graph)
{
	CUgraphExec exec = NULL;

	check_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check(exec);
	return exec;
}

static inline void launch_and_wait(CUgraphExec exec, CUstream stream)
{
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuStreamSynchronize(stream));
}

static inline size_t count_nodes(CUgraph graph)
{
	size_t n = 0;

	check_ok(cuGraphGetNodes(graph, NULL, &n));
	return n;
}
