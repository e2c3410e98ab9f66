/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fixture of the tests of graphs and captures
 */

#include "api.h"

/* One thread of a kernel; parameters are copied where they are used. */
static inline CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction function, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = function,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params,
	};
}

/* *address = value. */
static inline CUgraphNode add_store(CUgraph graph, const CUgraphNode *before, size_t n,
	CUdeviceptr address, unsigned int value)
{
	void *params[] = { &address, &value };
	const CUDA_KERNEL_NODE_PARAMS node_params = one_thread(kernel("store"), params);
	CUgraphNode node = NULL;

	check_ok(cuGraphAddKernelNode(&node, graph, before, n, &node_params));
	return node;
}

/* A copy of words from device to device or pinned memory. */
static inline CUDA_MEMCPY3D word_copy(CUdeviceptr to, CUdeviceptr from, size_t n_words)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = 4 * n_words,
		.Height = 1,
		.Depth = 1,
	};
}

static inline CUgraphNode add_copy(CUgraph graph, const CUgraphNode *before, size_t n,
	CUdeviceptr to, CUdeviceptr from)
{
	const CUDA_MEMCPY3D copy = word_copy(to, from, 1);
	CUcontext context;
	CUgraphNode node = NULL;

	check_ok(cuCtxGetCurrent(&context));
	check_ok(cuGraphAddMemcpyNode(&node, graph, before, n, &copy, context));
	return node;
}

static inline CUgraph graph_new(void)
{
	CUgraph graph = NULL;

	check_ok(cuGraphCreate(&graph, 0));
	return graph;
}

static inline CUgraphExec exec_new(CUgraph graph)
{
	CUgraphExec exec = NULL;

	check_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static inline CUstream stream_new(void)
{
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
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
