/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: graphs made node by node, and executable graphs
 */

#include <pthread.h>

#include "graph.h"

/* A node that does `rounds` steps. The parameters are copied when it is made. */
static CUgraphNode add_step(CUgraph graph, const CUgraphNode *before, size_t n,
	CUfunction step, CUdeviceptr x, int rounds)
{
	void *params[] = { &x, &rounds };
	CUDA_KERNEL_NODE_PARAMS node_params = step_params(step, params);
	CUgraphNode node = NULL;

	check_ok(cuGraphAddKernelNode(&node, graph, before, n, &node_params));
	check((uintptr_t)node > 0xffff);
	return node;
}

/* A copy of one word. */
static CUDA_MEMCPY3D word_copy(CUdeviceptr to, CUdeviceptr from)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
}

static CUDA_MEMSET_NODE_PARAMS word_fill(CUdeviceptr to, unsigned int value)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = to,
		.value = value,
		.elementSize = 4,
		.width = 1,
		.height = 1,
	};
}

static CUgraph graph_new(void)
{
	CUgraph graph = NULL;

	check_ok(cuGraphCreate(&graph, 0));
	check((uintptr_t)graph > 0xffff);
	return graph;
}

TEST(nodes_run_in_the_order_of_their_edges)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(16);
	CUDA_MEMSET_NODE_PARAMS fill = word_fill(x, 5);
	CUDA_MEMCPY3D copy = word_copy(x + 4, x);
	CUgraphNode nodes[5], found[8];
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	CUgraphNodeType type;
	CUgraphExec exec;
	size_t n = 8;

	check_ok(cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill, fixture.context));
	nodes[1] = add_step(graph, &nodes[0], 1, step, x, 3);
	check_ok(cuGraphAddMemcpyNode(
		&nodes[2], graph, &nodes[1], 1, &copy, fixture.context));
	nodes[3] = add_step(graph, &nodes[1], 1, step, x + 8, 2);
	check_ok(cuGraphAddEmptyNode(&nodes[4], graph, &nodes[2], 2));
	check_ok(cuGraphGetNodes(graph, found, &n));
	check_eq(n, 5);
	check(!found[5] && !found[7]);
	check(!memcmp(found, nodes, sizeof(nodes)));
	/* No room is not the question of how many there are. */
	n = 0;
	check_ok(cuGraphGetNodes(graph, found, &n));
	check_eq(n, 0);
	n = 8;
	check_ok(cuGraphGetRootNodes(graph, found, &n));
	check_eq(n, 1);
	check(found[0] == nodes[0]);
	check_ok(cuGraphNodeGetType(nodes[0], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEMSET);
	check_ok(cuGraphNodeGetType(nodes[1], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_KERNEL);
	check_ok(cuGraphNodeGetType(nodes[2], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEMCPY);
	check_ok(cuGraphNodeGetType(nodes[4], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_EMPTY);
	check_ok(cuGraphInstantiate(&exec, graph, 0));
	check_ok(cuGraphUpload(exec, stream));
	for (int i = 0; i < 3; i++) {
		check_ok(cuMemsetD32(x, 0, 4));
		launch_and_wait(exec, stream);
		check_eq(device_word(x), stepped(5, 3));
		check_eq(device_word(x + 4), stepped(5, 3));
		check_eq(device_word(x + 8), stepped(0, 2));
	}
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_cu(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

TEST(edges_are_listed_added_and_removed)
{
	CUgraphNode nodes[3], from[4], to[4];
	CUgraphEdgeData data[4];
	size_t n = 0;
	CUgraph graph;

	fixture_new();
	graph = graph_new();
	for (int i = 0; i < 3; i++)
		check_ok(cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
	check_ok(cuGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
	check_ok(cuGraphAddDependencies_v2(graph, &nodes[1], &nodes[2], NULL, 1));
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 2);
	n = 4;
	check_ok(cuGraphGetEdges_v2(graph, from, to, data, &n));
	check_eq(n, 2);
	check(!from[3] && !to[3] && !data[0].type);
	for (size_t i = 0; i < n; i++)
		check((from[i] == nodes[0] && to[i] == nodes[1]) ||
			(from[i] == nodes[1] && to[i] == nodes[2]));
	n = 4;
	check_ok(CALL("cuGraphGetEdges", 10000,
		(CUgraph, CUgraphNode *, CUgraphNode *, size_t *), graph, from, to, &n));
	check_eq(n, 2);
	n = 4;
	check_ok(cuGraphNodeGetDependencies(nodes[2], from, data, &n));
	check(n == 1 && from[0] == nodes[1]);
	n = 4;
	check_ok(CALL("cuGraphNodeGetDependencies", 10000,
		(CUgraphNode, CUgraphNode *, size_t *), nodes[1], from, &n));
	check(n == 1 && from[0] == nodes[0]);
	n = 4;
	check_ok(cuGraphNodeGetDependentNodes(nodes[1], to, data, &n));
	check(n == 1 && to[0] == nodes[2]);
	n = 4;
	check_ok(CALL("cuGraphNodeGetDependentNodes", 10000,
		(CUgraphNode, CUgraphNode *, size_t *), nodes[0], to, &n));
	check(n == 1 && to[0] == nodes[1]);
	check_ok(cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
	check_ok(CALL("cuGraphAddDependencies", 10000,
		(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t), graph,
		&nodes[0], &nodes[2], 1));
	check_ok(CALL("cuGraphRemoveDependencies", 10000,
		(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t), graph,
		&nodes[1], &nodes[2], 1));
	n = 4;
	check_ok(cuGraphGetEdges(graph, from, to, data, &n));
	check(n == 1 && from[0] == nodes[0] && to[0] == nodes[2]);
	check_ok(cuGraphDestroyNode(nodes[0]));
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 0);
	check_eq(count_nodes(graph), 2);
	check_cu(cuGraphDestroyNode(nodes[0]), CUDA_ERROR_INVALID_VALUE);
}

TEST(long_lists_come_whole)
{
	CUgraphNode *nodes = calloc(1300, sizeof(*nodes)), last, *found;
	CUgraphNode *to = calloc(1300, sizeof(*to));
	size_t n = 1300;
	CUgraph graph;

	fixture_new();
	graph = graph_new();
	for (int i = 0; i < 1200; i++)
		check_ok(cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
	check_ok(cuGraphAddEmptyNode(&last, graph, nodes, 1200));
	found = calloc(1300, sizeof(*found));
	check(found && to);
	check_ok(cuGraphGetNodes(graph, found, &n));
	check_eq(n, 1201);
	check(!memcmp(found, nodes, 1200 * sizeof(*nodes)));
	check(found[1200] == last && !found[1201]);
	n = 1300;
	check_ok(cuGraphNodeGetDependencies(last, found, NULL, &n));
	check_eq(n, 1200);
	check(found[1100] && found[0] != found[1199]);
	n = 100;
	check_ok(cuGraphGetEdges(graph, found, to, NULL, &n));
	check_eq(n, 100);
	check(found[99] && to[99] == last);
	for (int i = 0; i < 1200; i++)
		to[i] = last;
	check_ok(cuGraphRemoveDependencies(graph, nodes, to, NULL, 1200));
	check_ok(cuGraphAddDependencies(graph, nodes, to, NULL, 1200));
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 1200);
	check_ok(cuGraphDestroy(graph));
	free(nodes);
	free(found);
	free(to);
}

TEST(parameters_of_kernels_are_returned_and_set)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(8), told;
	CUDA_KERNEL_NODE_PARAMS params, params_told;
	CUDA_KERNEL_NODE_PARAMS_v1 old;
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	int rounds = 5;
	void *pointers[] = { &x, &rounds };
	size_t size = 12;
	uint8_t block[12];
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, block,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };
	CUgraphNode node, second;
	CUgraphExec exec;

	node = add_step(graph, NULL, 0, step, x + 4, 1);
	check_ok(cuGraphKernelNodeGetParams(node, &params_told));
	check(params_told.func == step && !params_told.kern && !params_told.extra);
	check_eq(params_told.blockDimX, 1);
	memcpy(&told, params_told.kernelParams[0], sizeof(told));
	check_eq(told, x + 4);
	check_eq(*(int *)params_told.kernelParams[1], 1);
	params = step_params(step, pointers);
	params.gridDimX = 2;
	check_ok(cuGraphKernelNodeSetParams(node, &params));
	check_ok(cuGraphKernelNodeGetParams_v2(node, &params_told));
	check_eq(params_told.gridDimX, 2);
	check_eq(*(int *)params_told.kernelParams[1], 5);
	/* The returned parameters can be passed in again. */
	params_told.gridDimX = 1;
	check_ok(cuGraphKernelNodeSetParams_v2(node, &params_told));
	check_ok(CALL("cuGraphKernelNodeGetParams", 10000,
		(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *), node, &old));
	check(old.func == step && old.gridDimX == 1);
	/* As one block. */
	memcpy(block, &x, 8);
	rounds = 4;
	memcpy(block + 8, &rounds, 4);
	old.kernelParams = NULL;
	old.extra = extra;
	check_ok(CALL("cuGraphKernelNodeSetParams", 10000,
		(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *), node, &old));
	check_ok(cuGraphKernelNodeGetParams(node, &params_told));
	check_eq(*(int *)params_told.kernelParams[1], 4);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(x), stepped(0, 4));
	rounds = 6;
	memcpy(block + 8, &rounds, 4);
	check_ok(CALL("cuGraphExecKernelNodeSetParams", 10010,
		(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *), exec,
		node, &old));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), stepped(0, 10));
	check_ok(CALL("cuGraphAddKernelNode", 10000,
		(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			const CUDA_KERNEL_NODE_PARAMS_v1 *),
		&second, graph, &node, 1, &old));
	launch_and_wait(exec_new(graph), stream);
	check_eq(device_word(x), stepped(0, 20));
}

TEST(parameters_of_copies_and_fills_are_returned_and_set)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(16);
	CUDA_MEMSET_NODE_PARAMS fill = word_fill(x, 1), fill_told;
	CUDA_MEMCPY3D copy = word_copy(x + 4, x), copy_told;
	CUDA_KERNEL_NODE_PARAMS kernel_told;
	CUgraphNode filling, copying;
	CUgraph graph = graph_new();

	check_ok(cuGraphAddMemsetNode(&filling, graph, NULL, 0, &fill, fixture.context));
	check_ok(cuGraphMemsetNodeGetParams(filling, &fill_told));
	check(fill_told.dst == x && fill_told.value == 1 && fill_told.width == 1);
	fill.value = 3;
	check_ok(cuGraphMemsetNodeSetParams(filling, &fill));
	check_ok(cuGraphAddMemcpyNode(
		&copying, graph, &filling, 1, &copy, fixture.context));
	copy.dstDevice = x + 12;
	check_ok(cuGraphMemcpyNodeSetParams(copying, &copy));
	check_ok(cuGraphMemcpyNodeGetParams(copying, &copy_told));
	check(copy_told.srcDevice == x && copy_told.dstDevice == x + 12);
	check_eq(copy_told.WidthInBytes, 4);
	/* A node is of one kind. */
	check_cu(cuGraphMemsetNodeGetParams(copying, &fill_told),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphKernelNodeGetParams(filling, &kernel_told),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphMemcpyNodeSetParams(filling, &copy), CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec_new(graph), stream_new());
	check_eq(device_word(x), 3);
	check_eq(device_word(x + 4), 0);
	check_eq(device_word(x + 12), 3);
}

TEST(events_of_nodes_are_returned_and_set)
{
	CUevent first, second, told = NULL;
	CUgraphNode record, wait;
	CUgraph graph;

	fixture_new();
	graph = graph_new();
	check_ok(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
	check_ok(cuGraphAddEventRecordNode(&record, graph, NULL, 0, first));
	check_ok(cuGraphEventRecordNodeGetEvent(record, &told));
	check(told == first);
	check_ok(cuGraphEventRecordNodeSetEvent(record, second));
	check_ok(cuGraphEventRecordNodeGetEvent(record, &told));
	check(told == second);
	check_ok(cuGraphAddEventWaitNode(&wait, graph, &record, 1, first));
	check_ok(cuGraphEventWaitNodeSetEvent(wait, second));
	check_ok(cuGraphEventWaitNodeGetEvent(wait, &told));
	check(told == second);
	check_cu(cuGraphEventRecordNodeGetEvent(wait, &told), CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec_new(graph), stream_new());
	check_ok(cuEventQuery(second));
}

TEST(nodes_are_added_by_one_call_for_all)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(16);
	int rounds = 2;
	void *params[] = { &x, &rounds };
	CUgraphNodeParams kernel = {
		.type = CU_GRAPH_NODE_TYPE_KERNEL,
		.kernel = {
			.func = fixture_function(&fixture, "step"),
			.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
			.blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
			.kernelParams = params,
		},
	};
	CUgraphNodeParams copy = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
	CUgraphNodeParams nothing = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraphNode nodes[3];
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	CUgraphExec exec;

	copy.memcpy.copyCtx = fixture.context;
	copy.memcpy.copyParams = word_copy(x + 4, x);
	check_ok(cuGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &kernel));
	check_ok(cuGraphAddNode_v2(&nodes[1], graph, &nodes[0], NULL, 1, &copy));
	check_ok(CALL("cuGraphAddNode", 12020,
		(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			CUgraphNodeParams *),
		&nodes[2], graph, nodes, 2, &nothing));
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 4), stepped(0, 2));
	rounds = 3;
	check_ok(cuGraphNodeSetParams(nodes[0], &kernel));
	check_ok(cuMemsetD32(x, 0, 2));
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 4), stepped(0, 2));
	check_ok(cuMemsetD32(x, 0, 2));
	check_ok(cuGraphExecNodeSetParams(exec, nodes[0], &kernel));
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 4), stepped(0, 3));
}

TEST(an_executable_graph_is_changed_and_launched_anew)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(32);
	CUDA_MEMSET_NODE_PARAMS fill = word_fill(x, 5);
	CUDA_MEMCPY3D copy = word_copy(x + 4, x);
	CUgraphNode filling, stepping, copying;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	unsigned int enabled = 9;
	cuuint64_t flags = 9;
	int rounds = 7;
	void *params[] = { &x, &rounds };
	CUgraphExec exec;

	check_ok(cuGraphAddMemsetNode(&filling, graph, NULL, 0, &fill, fixture.context));
	stepping = add_step(graph, &filling, 1, step, x, 1);
	check_ok(cuGraphAddMemcpyNode(
		&copying, graph, &stepping, 1, &copy, fixture.context));
	exec = exec_new(graph);
	check_ok(cuGraphExecGetFlags(exec, &flags));
	check_eq(flags, 0);
	launch_and_wait(exec, stream);
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 4), stepped(5, 1));
	kernel = step_params(step, params);
	check_ok(cuGraphExecKernelNodeSetParams(exec, stepping, &kernel));
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 4), stepped(5, 7));
	fill.value = 2;
	check_ok(cuGraphExecMemsetNodeSetParams(exec, filling, &fill, fixture.context));
	copy.dstDevice = x + 8;
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, copying, &copy, fixture.context));
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 8), stepped(2, 7));
	check_ok(cuGraphNodeGetEnabled(exec, stepping, &enabled));
	check_eq(enabled, 1);
	check_ok(cuGraphNodeSetEnabled(exec, stepping, 0));
	check_ok(cuGraphNodeGetEnabled(exec, stepping, &enabled));
	check_eq(enabled, 0);
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 8), 2);
	check_ok(cuGraphNodeSetEnabled(exec, stepping, 1));
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 8), stepped(2, 7));
	/* A refused launch is reported to the program, also after accepted ones. */
	kernel.blockDimX = 1 << 20;
	check(cuGraphExecKernelNodeSetParams_v2(exec, stepping, &kernel) != CUDA_SUCCESS);
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 8), stepped(2, 7));
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, stream);
	check_eq(device_word(x + 8), stepped(2, 7));
	check_ok(cuGraphExecDestroy(exec));
}

TEST(an_executable_graph_is_updated_from_one_of_its_shape)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUgraph graph = graph_new(), same = graph_new(), other = graph_new();
	CUgraphExecUpdateResultInfo info = { .result = 99 };
	CUgraphExecUpdateResult old_result = 99;
	CUdeviceptr x = memory_new(4);
	CUgraphNode node = NULL;
	CUstream stream = stream_new();
	CUgraphExec exec;

	add_step(graph, NULL, 0, step, x, 1);
	add_step(same, NULL, 0, step, x, 4);
	node = add_step(other, NULL, 0, step, x, 4);
	add_step(other, &node, 1, step, x, 5);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(x), stepped(0, 1));
	check_ok(cuGraphExecUpdate(exec, same, &info));
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	check_ok(cuMemsetD32(x, 0, 1));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), stepped(0, 4));
	check_cu(cuGraphExecUpdate_v2(exec, other, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	check_ok(CALL("cuGraphExecUpdate", 10020,
		(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *), exec,
		graph, &node, &old_result));
	check_eq(old_result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	check_ok(cuMemsetD32(x, 0, 1));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), stepped(0, 1));
}

TEST(a_clone_knows_the_nodes_it_came_from)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUgraph graph = graph_new(), clone = NULL;
	CUdeviceptr x = memory_new(4);
	CUgraphNode node, twin = NULL, listed = NULL;
	CUstream stream = stream_new();
	size_t n = 1;

	node = add_step(graph, NULL, 0, step, x, 6);
	check_ok(cuGraphClone(&clone, graph));
	check(clone != graph);
	check_ok(cuGraphNodeFindInClone(&twin, node, clone));
	check(twin && twin != node);
	check_ok(cuGraphGetNodes(clone, &listed, &n));
	check(n == 1 && listed == twin);
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec_new(clone), stream);
	check_eq(device_word(x), stepped(0, 6));
}

TEST(kernel_nodes_have_attributes)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUkernelNodeAttrValue value = {}, told = {};
	CUdeviceptr x = memory_new(4);
	CUgraph graph = graph_new();
	CUgraphNode node, other;

	node = add_step(graph, NULL, 0, step, x, 1);
	other = add_step(graph, NULL, 0, step, x, 1);
	value.cooperative = 1;
	check_ok(cuGraphKernelNodeSetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
	check_ok(cuGraphKernelNodeGetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told));
	check_eq(told.cooperative, 1);
	check_ok(cuGraphKernelNodeGetAttribute(
		other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told));
	check_eq(told.cooperative, 0);
	check_ok(cuGraphKernelNodeCopyAttributes(other, node));
	check_ok(cuGraphKernelNodeGetAttribute(
		other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told));
	check_eq(told.cooperative, 1);
}

static int priority_of(CUgraphNode node)
{
	CUkernelNodeAttrValue value = { .priority = 99 };

	check_ok(cuGraphKernelNodeGetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return value.priority;
}

TEST(kernel_nodes_have_priorities)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUkernelNodeAttrValue value = { .priority = -1 };
	CUgraphExecUpdateResultInfo info;
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	int rounds = 1;
	void *params[] = { &x, &rounds };
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY };
	const CUlaunchConfig config = { 1, 1, 1, 1, 1, 1, 0, stream, &attribute, 1 };
	CUgraph graph = graph_new(), captured, ordinary = graph_new();
	CUgraphNode node, other;
	cuuint64_t flags = 0;
	CUgraphExec exec;

	node = add_step(graph, NULL, 0, step, x, 1);
	other = add_step(ordinary, NULL, 0, step, x, 1);
	check_eq(priority_of(node), 0);
	check_ok(cuGraphKernelNodeSetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_eq(priority_of(node), -1);
	/* That of a captured launch is its node's. */
	attribute.value.priority = -1;
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(cuLaunchKernelEx(&config, step, params, NULL));
	captured = capture_end(stream);
	check_ok(cuGraphGetNodes(captured, &node, &(size_t){ 1 }));
	check_eq(priority_of(node), -1);
	/* It does not change where it counts. */
	check_ok(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	check_ok(cuGraphExecGetFlags(exec, &flags));
	check_eq(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	check_ok(cuGraphExecUpdate(exec, captured, &info));
	check_cu(cuGraphExecUpdate(exec, ordinary, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
	check(info.errorNode == other);
	check_ok(cuGraphKernelNodeCopyAttributes(other, node));
	check_eq(priority_of(other), -1);
	check_ok(cuGraphExecUpdate(exec, ordinary, &info));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 1);
	/* Of a call that never came to the graphs. */
	check_cu(cuGraphExecUpdate(exec, NULL, &info), CUDA_ERROR_INVALID_VALUE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
}

TEST(graphs_record_and_wait_for_events)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUstream stream = stream_new(), other = stream_new();
	CUdeviceptr x = memory_new(8);
	CUgraph graph = graph_new(), waiting = graph_new();
	CUgraphNode node, record, wait;
	CUgraphExec exec, waiting_exec;
	CUevent event, second;

	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
	node = add_step(graph, NULL, 0, step, x, 1 << 16);
	check_ok(cuGraphAddEventRecordNode(&record, graph, &node, 1, event));
	check_ok(cuGraphAddEventWaitNode(&wait, waiting, NULL, 0, event));
	add_step(waiting, &wait, 1, step, x, 1);
	exec = exec_new(graph);
	waiting_exec = exec_new(waiting);
	for (int i = 0; i < 5; i++) {
		check_ok(cuMemsetD32(x, 0, 2));
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuGraphLaunch(waiting_exec, other));
		check_ok(cuStreamSynchronize(other));
		check_eq(device_word(x), stepped(0, (1 << 16) + 1));
		check_ok(cuEventQuery(event));
	}
	check_ok(cuGraphExecEventRecordNodeSetEvent(exec, record, second));
	check_ok(cuGraphExecEventWaitNodeSetEvent(waiting_exec, wait, second));
	check_ok(cuMemsetD32(x, 0, 2));
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuEventSynchronize(second));
	check_eq(device_word(x), stepped(0, 1 << 16));
	check_ok(cuGraphLaunch(waiting_exec, other));
	check_ok(cuStreamSynchronize(other));
	check_eq(device_word(x), stepped(0, (1 << 16) + 1));
}

TEST(executable_graphs_are_made_in_every_form)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .result_out = 99 };
	CUgraph graph = graph_new();
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	CUgraphNode node;
	CUgraphExec exec;
	char log[64] = "x";

	add_step(graph, NULL, 0, step, x, 1);
	params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	params.hUploadStream = stream;
	check_ok(cuGraphInstantiateWithParams(&exec, graph, &params));
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
	launch_and_wait(exec, stream);
	check_ok(CALL("cuGraphInstantiate", 11000,
		(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t), &exec, graph,
		&node, log, sizeof(log)));
	check(!log[0]);
	launch_and_wait(exec, stream);
	check_ok(CALL("cuGraphInstantiate", 10000,
		(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t), &exec, graph,
		&node, log, sizeof(log)));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), stepped(0, 3));
	check_cu(cuGraphInstantiateWithFlags(&exec, graph, 1ull << 40),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(wrong_arguments_are_refused)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(64);
	CUDA_MEMSET_NODE_PARAMS fill = word_fill(x + 64, 1);
	CUDA_MEMCPY3D copy = word_copy(x + 64, x);
	CUgraph graph = graph_new(), other = graph_new();
	CUgraphNode node, foreign;
	CUgraphExec exec = NULL;
	CUstream stream = stream_new();
	size_t n = 0;

	check_ok(cuGraphAddEmptyNode(&foreign, other, NULL, 0));
	check_cu(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, fixture.context),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, fixture.context),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuGraphAddEmptyNode(&node, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddEmptyNode(&node, graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddEmptyNode(&node, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphGetNodes((CUgraph)0x123456789abull, NULL, &n),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphGetNodes(graph, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(other));
	check(cuGraphNodeGetType(foreign, (CUgraphNodeType *)&n) != CUDA_SUCCESS);
	check_eq(count_nodes(graph), 0);
}

TEST(many_graphs_come_and_go)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	CUgraph graph;

	for (int i = 0; i < 1000; i++) {
		CUgraphNode node;
		CUgraphExec exec;

		graph = graph_new();
		node = add_step(graph, NULL, 0, step, x, 1);
		add_step(graph, &node, 1, step, x, 1);
		exec = exec_new(graph);
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuGraphDestroy(graph));
		check_ok(cuGraphExecDestroy(exec));
	}
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(x), stepped(0, 2000));
}

struct launcher {
	struct fixture *fixture;
	CUdeviceptr x;
	CUgraphExec exec;
};

static void *launch_many(void *data)
{
	struct launcher *launcher = data;
	CUstream stream;

	check_ok(cuCtxSetCurrent(launcher->fixture->context));
	stream = stream_new();
	for (int i = 0; i < 500; i++)
		check_ok(cuGraphLaunch(launcher->exec, stream));
	check_ok(cuStreamSynchronize(stream));
	return NULL;
}

TEST(several_threads_launch_graphs)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	struct launcher launchers[4];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		CUgraph graph = graph_new();
		CUgraphNode node;

		launchers[i] = (struct launcher){ &fixture, memory_new(4), NULL };
		node = add_step(graph, NULL, 0, step, launchers[i].x, 1);
		for (int j = 0; j < 3 * i; j++)
			node = add_step(graph, &node, 1, step, launchers[i].x, 1);
		launchers[i].exec = exec_new(graph);
		check(!pthread_create(&threads[i], NULL, launch_many, &launchers[i]));
	}
	for (int i = 0; i < 4; i++) {
		check(!pthread_join(threads[i], NULL));
		check_eq(device_word(launchers[i].x), stepped(0, 500 * (1 + 3 * i)));
	}
}
