/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: graphs in graphs, and nodes that write and wait for words
 */

#include "graph.h"

static CUgraphNode add_step(CUgraph graph, const CUgraphNode *before, CUfunction step,
	CUdeviceptr x, int rounds)
{
	void *params[] = { &x, &rounds };
	CUDA_KERNEL_NODE_PARAMS node_params = step_params(step, params);
	CUgraphNode node = NULL;

	check_ok(
		cuGraphAddKernelNode(&node, graph, before, before ? 1 : 0, &node_params));
	return node;
}

/* A graph of so many steps, one after the other. */
static CUgraph steps_new(CUfunction step, CUdeviceptr x, int n)
{
	CUgraphNode node = NULL;
	CUgraph graph = NULL;

	check_ok(cuGraphCreate(&graph, 0));
	for (int i = 0; i < n; i++)
		node = add_step(graph, i ? &node : NULL, step, x, 1);
	return graph;
}

TEST(a_child_graph_runs_in_the_place_of_its_node)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	CUgraph child = steps_new(step, x, 2), graph, inner = NULL, again = NULL;
	CUgraphNode before, node, found;
	CUgraphNodeType type;
	CUgraphExec exec;

	check_ok(cuGraphCreate(&graph, 0));
	before = add_step(graph, NULL, step, x, 1);
	check_ok(cuGraphAddChildGraphNode(&node, graph, &before, 1, child));
	add_step(graph, &node, step, x, 1);
	check_ok(cuGraphNodeGetType(node, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_GRAPH);
	/* The node has a copy of the graph, always the same one. */
	check_ok(cuGraphChildGraphNodeGetGraph(node, &inner));
	check(inner && inner != child);
	check_ok(cuGraphChildGraphNodeGetGraph(node, &again));
	check(inner == again);
	check_eq(count_nodes(inner), 2);
	check_cu(cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(child));
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 40);
	/* The graph inside may still be changed. */
	check_ok(cuGraphGetRootNodes(inner, &found, &(size_t){ 1 }));
	check_ok(cuGraphDestroyNode(found));
	check_ok(cuMemsetD32(x, 0, 1));
	launch_and_wait(exec_new(graph), stream);
	check_eq(device_word(x), 13);
	check_ok(cuMemsetD32(x, 0, 1));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 40);
	/* It ends with its node. */
	check_ok(cuGraphDestroyNode(node));
	check_cu(cuGraphGetNodes(inner, NULL, &(size_t){ 0 }), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
}

TEST(children_of_executable_graphs_are_replaced)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(8);
	CUstream stream = stream_new();
	CUgraph one = steps_new(step, x, 2), other = steps_new(step, x + 4, 2);
	CUgraph longer = steps_new(step, x, 3), graph, clone;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUgraphNode node, cloned;
	CUgraphExec exec;

	check_ok(cuGraphCreate(&graph, 0));
	params.graph.graph = one;
	check_ok(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	exec = exec_new(graph);
	check_ok(cuGraphExecChildGraphNodeSetParams(exec, node, other));
	launch_and_wait(exec, stream);
	check(device_word(x) == 0 && device_word(x + 4) == 4);
	check_cu(cuGraphExecChildGraphNodeSetParams(exec, node, longer),
		CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 4), 40);
	/* Copies of a graph have copies of its children. */
	check_ok(cuGraphClone(&clone, graph));
	check_ok(cuGraphNodeFindInClone(&cloned, node, clone));
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec_new(clone), stream);
	check_eq(device_word(x), 4);
	check_cu(cuGraphAddChildGraphNode(&node, clone, NULL, 0, graph),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_child_graph_is_moved_into_its_node)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	CUgraph child = steps_new(step, x, 2), graph, other, inner = NULL;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node, second = NULL;
	CUgraphExec exec, made;

	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphCreate(&other, 0));
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	/* Into itself, from nothing, behind a node that is not there. */
	params.graph.graph = graph;
	check_cu(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.graph.graph = NULL;
	check_cu(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.graph.graph = child;
	check_cu(cuGraphAddNode(&node, graph, &second, NULL, 1, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	check_ok(cuGraphChildGraphNodeGetGraph(node, &inner));
	check(inner == child);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 4);
	/* It is the graph's, and nobody else's. */
	check_cu(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphInstantiate(&made, child, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddChildGraphNode(&second, other, NULL, 0, child),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddNode(&second, other, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphExecUpdate(exec, child, &info), CUDA_ERROR_INVALID_VALUE);
	params.graph.graph = graph;
	check_cu(cuGraphAddNode(&second, child, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.graph.ownership = (CUgraphChildGraphNodeOwnership)9;
	check_cu(cuGraphAddNode(&second, other, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	/* More nodes may be added, and it ends with the node. */
	add_step(child, NULL, step, x + 0, 1);
	check_eq(count_nodes(child), 3);
	check_ok(cuGraphDestroyNode(node));
	check_cu(cuGraphGetNodes(child, NULL, &(size_t){ 0 }), CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 40);
	check_ok(cuGraphDestroy(graph));
}

/* A launch that is captured is a child, too; and so is a child's child. */
TEST(a_captured_launch_is_a_child)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	CUgraph inner = steps_new(step, x, 2), graph, outer, found;
	CUgraphExec exec = exec_new(inner);
	CUgraphNode node, child;

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuGraphLaunch(exec, stream));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 2);
	check_ok(cuGraphGetRootNodes(graph, &node, &(size_t){ 1 }));
	check_ok(cuGraphChildGraphNodeGetGraph(node, &found));
	check_eq(count_nodes(found), 2);
	check_ok(cuGraphCreate(&outer, 0));
	check_ok(cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph));
	launch_and_wait(exec_new(outer), stream);
	check_eq(device_word(x), 40);
}

static void word_writes(CUstreamBatchMemOpParams *ops, CUdeviceptr x, unsigned int value)
{
	ops[0] = (CUstreamBatchMemOpParams){
		.writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_32, x, { value } },
	};
	ops[1] = (CUstreamBatchMemOpParams){
		.waitValue = { CU_STREAM_MEM_OP_WAIT_VALUE_32, x, { value },
			CU_STREAM_WAIT_VALUE_EQ },
	};
	ops[2] = (CUstreamBatchMemOpParams){
		.writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_64, x + 8, { 0 } },
	};
	ops[2].writeValue.value64 = (cuuint64_t)value << 32 | 7;
}

TEST(a_batch_node_writes_and_waits)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(16);
	CUstreamBatchMemOpParams ops[3];
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = { fixture.context, 3, ops, 0 }, told = {};
	CUstream stream = stream_new();
	CUgraphNodeType type;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	word_writes(ops, x, 5);
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
	add_step(graph, &node, step, x, 1);
	check_ok(cuGraphNodeGetType(node, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 16);
	check(device_word(x + 8) == 7 && device_word(x + 12) == 5);
	check_ok(cuGraphBatchMemOpNodeGetParams(node, &told));
	check_eq(told.count, 3);
	check(!memcmp(&told.paramArray[0].writeValue.address, &x, sizeof(x)));
	check_eq(told.paramArray[2].writeValue.value64, 5ull << 32 | 7);
	/* For later launches, and in the graph. */
	word_writes(ops, x, 2);
	check_ok(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
	launch_and_wait(exec, stream);
	check(device_word(x) == 7 && device_word(x + 12) == 2);
	word_writes(ops, x, 3);
	check_ok(cuGraphBatchMemOpNodeSetParams(node, &params));
	launch_and_wait(exec_new(graph), stream);
	check(device_word(x) == 10 && device_word(x + 12) == 3);
	/* A batch of another shape. */
	params.count = 2;
	check_cu(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.count = 0;
	check_cu(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.count = 3;
	ops[1].waitValue.address = 64;
	check_cu(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(captured_words_are_written_at_each_launch)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(16);
	CUstreamBatchMemOpParams ops[3];
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuCtxSetCurrent(fixture.context));
	word_writes(ops, x, 5);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(cuStreamBatchMemOp(stream, 3, ops, 0));
	check_ok(cuStreamWriteValue32(stream, x + 4, 9, 0));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 2);
	exec = exec_new(graph);
	for (int i = 0; i < 3; i++) {
		check_ok(cuMemsetD8(x, 0, 16));
		launch_and_wait(exec, stream);
		check(device_word(x) == 5 && device_word(x + 4) == 9);
		check(device_word(x + 8) == 7 && device_word(x + 12) == 5);
	}
}
