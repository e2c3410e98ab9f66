/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: what graphs and executable graphs refuse that have copies of ordinary
 * memory in the place of others
 *
 * The functions that fill and drain for such a copy are the guest library's, so the
 * limits are not those of CUDA.
 */

#include "graph.h"

static CUDA_MEMCPY3D to_device(CUdeviceptr to, const void *from)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
}

/* A graph of one copy, of pinned memory. */
static CUgraph graph_new(CUgraphNode *nodep, CUdeviceptr to, CUcontext context)
{
	CUDA_MEMCPY3D copy;
	unsigned int *pinned;
	CUgraph graph;

	check_ok(cuMemAllocHost((void **)&pinned, 4));
	*pinned = 1;
	copy = to_device(to, pinned);
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddMemcpyNode(nodep, graph, NULL, 0, &copy, context));
	return graph;
}

TEST(a_graph_with_a_copy_of_pageable_memory_in_the_place_of_another_is_not_copied)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	CUgraph graph, other, clone = NULL;
	CUgraphNode node, child = NULL;
	unsigned int memory = 5;
	CUDA_MEMCPY3D copy = to_device(x, &memory);
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUstream stream = stream_new();

	graph = graph_new(&node, x, fixture.context);
	check_ok(cuGraphCreate(&other, 0));
	check_ok(cuGraphMemcpyNodeSetParams(node, &copy));
	check_cu(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphAddChildGraphNode(&child, other, NULL, 0, graph),
		CUDA_ERROR_NOT_SUPPORTED);
	params.graph.graph = graph;
	check_cu(cuGraphAddNode(&child, other, NULL, NULL, 0, &params),
		CUDA_ERROR_NOT_SUPPORTED);
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	check_cu(cuGraphAddNode(&child, other, NULL, NULL, 0, &params),
		CUDA_ERROR_NOT_SUPPORTED);
	check(!clone && !child && count_nodes(other) == 0);
	launch_and_wait(exec_new(graph), stream);
	check_eq(device_word(x), 5);
	/* Without the node it is a graph like any other. */
	check_ok(cuGraphDestroyNode(node));
	check_ok(cuGraphClone(&clone, graph));
	check_ok(cuGraphAddChildGraphNode(&child, other, NULL, 0, graph));
}

TEST(an_executable_graph_that_was_given_pageable_memory_is_not_captured)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	unsigned int memory = 5;
	CUDA_MEMCPY3D copy = to_device(x, &memory);
	CUstream stream = stream_new();
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	graph = graph_new(&node, x, fixture.context);
	exec = exec_new(graph);
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, fixture.context));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(count_nodes(capture_end(stream)), 0);
	/* The graph's own node is the old one. */
	check_ok(cuGraphExecUpdate(exec, graph, &(CUgraphExecUpdateResultInfo){ 0 }));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 1);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_ok(cuGraphLaunch(exec, stream));
	check_eq(count_nodes(capture_end(stream)), 1);
}

/* A node in a child graph, where functions would have to be in all its copies. */
TEST(an_ordinary_copy_in_a_child_graph_stays_one)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	unsigned int memory = 5;
	CUDA_MEMCPY3D copy = to_device(x, &memory);
	CUstream stream = stream_new();
	CUgraphNode node, child;
	CUgraph graph, inside;
	size_t n = 1;

	inside = graph_new(&node, x, fixture.context);
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddChildGraphNode(&child, graph, NULL, 0, inside));
	check_ok(cuGraphChildGraphNodeGetGraph(child, &inside));
	check_ok(cuGraphGetNodes(inside, &node, &n));
	check_cu(cuGraphMemcpyNodeSetParams(node, &copy), CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec_new(graph), stream);
	check_eq(device_word(x), 1);
}
