/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: graphs, their nodes and edges, and launches
 */

#include "graph.h"

/* x = 1; b = x and c = x side by side; then d = b, which waits for both. */
TEST(nodes_run_when_those_before_them_have_ended)
{
	CUgraphNode first, sides[2], last;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph;
	CUstream stream;

	context_new();
	words = device_memory(64);
	stream = stream_new();
	graph = graph_new();
	first = add_store(graph, NULL, 0, words, 1);
	sides[0] = add_copy(graph, &first, 1, words + 4, words);
	sides[1] = add_copy(graph, &first, 1, words + 8, words);
	last = add_copy(graph, sides, 2, words + 12, words + 4);
	add_store(graph, &last, 1, words, 2);
	exec = exec_new(graph);
	for (int i = 0; i < 50; i++) {
		check_ok(cuMemsetD32(words, 9, 4));
		launch_and_wait(exec, stream);
		check_eq(device_word(words), 2);
		check_eq(device_word(words + 4), 1);
		check_eq(device_word(words + 8), 1);
		check_eq(device_word(words + 12), 1);
	}
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_cu(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_graph_tells_its_nodes_and_edges)
{
	CUgraphNode nodes[4], from[4], to[4], found[4];
	CUgraphEdgeData data[4];
	CUgraphNodeType type;
	size_t n = 0;
	CUgraph graph;

	context_new();
	graph = graph_new();
	check_ok(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
	check_ok(cuGraphAddEmptyNode(&nodes[1], graph, nodes, 1));
	check_ok(cuGraphAddEmptyNode(&nodes[2], graph, nodes, 2));
	check_eq(count_nodes(graph), 3);
	n = 4;
	check_ok(cuGraphGetNodes(graph, found, &n));
	check(n == 3 && found[0] == nodes[0] && found[2] == nodes[2] && !found[3]);
	n = 2;
	check_ok(cuGraphGetNodes(graph, found, &n));
	check_eq(n, 2);
	n = 4;
	check_ok(cuGraphGetRootNodes(graph, found, &n));
	check(n == 1 && found[0] == nodes[0]);
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 3);
	n = 4;
	memset(data, 1, sizeof(data));
	check_ok(cuGraphGetEdges(graph, from, to, data, &n));
	check(n == 3 && from[0] == nodes[0] && to[0] == nodes[1]);
	check(from[2] == nodes[1] && to[2] == nodes[2] && !data[2].type && !from[3]);
	n = 4;
	check_ok(cuGraphNodeGetDependencies(nodes[2], found, NULL, &n));
	check(n == 2 && found[0] == nodes[0] && found[1] == nodes[1]);
	check_ok(cuGraphNodeGetDependentNodes(nodes[0], NULL, NULL, &n));
	check_eq(n, 2);
	check_ok(cuGraphNodeGetType(nodes[0], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_EMPTY);
	check_cu(cuGraphNodeGetType((CUgraphNode)graph, &type), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphGetNodes(graph, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphGetEdges(graph, from, NULL, NULL, &n), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroyNode(nodes[1]));
	check_cu(cuGraphDestroyNode(nodes[1]), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 1);
	check_ok(cuGraphDestroy(graph));
	check_cu(cuGraphNodeGetType(nodes[0], &type), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(edges_are_added_once_and_between_nodes_of_a_graph)
{
	CUgraphEdgeData early = { .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
	CUgraphNode a, b, other, twice[2];
	CUgraph graph, foreign;
	size_t n;

	context_new();
	graph = graph_new();
	foreign = graph_new();
	check_ok(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	check_ok(cuGraphAddEmptyNode(&b, graph, NULL, 0));
	check_ok(cuGraphAddEmptyNode(&other, foreign, NULL, 0));
	check_ok(cuGraphAddDependencies(graph, &a, &b, NULL, 1));
	check_cu(
		cuGraphAddDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuGraphAddDependencies(graph, &a, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddDependencies(graph, &a, &other, NULL, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddDependencies(graph, &b, &a, &early, 1),
		CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuGraphAddDependencies(graph, NULL, NULL, NULL, 0));
	check_ok(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
	check_cu(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1),
		CUDA_ERROR_INVALID_VALUE);
	/* All or none. */
	twice[0] = a;
	twice[1] = other;
	check_cu(cuGraphAddDependencies(graph, twice, (CUgraphNode[]){ b, b }, NULL, 2),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 0);
	twice[1] = a;
	check_cu(cuGraphAddEmptyNode(&other, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
	check_eq(count_nodes(graph), 2);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphDestroy(foreign));
}

TEST(a_graph_with_a_cycle_cannot_be_made_executable)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { 0 };
	CUgraphNode nodes[3], error = NULL;
	CUgraphExec exec;
	char text[8] = "junk";
	CUgraph graph;

	context_new();
	graph = graph_new();
	check_ok(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
	check_ok(cuGraphAddEmptyNode(&nodes[1], graph, nodes, 1));
	check_ok(cuGraphAddEmptyNode(&nodes[2], graph, &nodes[1], 1));
	check_ok(cuGraphAddDependencies(graph, &nodes[2], &nodes[1], NULL, 1));
	check_cu(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphInstantiateWithParams(&exec, graph, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
	check(params.hErrNode_out == nodes[1]);
	check_cu(cuGraphInstantiate_v2(&exec, graph, &error, text, sizeof(text)),
		CUDA_ERROR_INVALID_VALUE);
	check(error == nodes[1]);
	check_str(text, "");
	check_ok(cuGraphRemoveDependencies(graph, &nodes[2], &nodes[1], NULL, 1));
	check_ok(cuGraphInstantiateWithParams(&exec, graph, &params));
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
	check_ok(cuGraphExecDestroy(exec));
	check_cu(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
}

TEST(flags_of_an_executable_graph_are_kept_or_refused)
{
	cuuint64_t flags = 99;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	graph = graph_new();
	check_ok(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	check_ok(cuGraphExecGetFlags(exec, &flags));
	check_eq(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	check_ok(cuGraphUpload(exec, NULL));
	/* An empty graph is complete at once. */
	check_ok(cuGraphLaunch(exec, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(cuGraphExecDestroy(exec));
	check_cu(cuGraphExecGetFlags(exec, &flags), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphUpload(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphInstantiateWithFlags(&exec, graph, 0x1000),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphInstantiateWithFlags(
			 &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphInstantiateWithFlags(NULL, graph, 0), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
}

TEST(a_clone_is_an_independent_graph)
{
	CUgraphNode first, second, found;
	CUgraph graph, clone, child;
	CUdeviceptr words;
	CUgraphExec exec;

	context_new();
	words = device_memory(8);
	graph = graph_new();
	first = add_store(graph, NULL, 0, words, 1);
	second = add_store(graph, &first, 1, words + 4, 2);
	check_ok(cuGraphClone(&clone, graph));
	check_ok(cuGraphNodeFindInClone(&found, second, clone));
	check(found != second);
	check_cu(cuGraphNodeFindInClone(&found, found, graph), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphAddChildGraphNode(&found, clone, NULL, 0, graph));
	check_ok(cuGraphChildGraphNodeGetGraph(found, &child));
	check_eq(count_nodes(child), 2);
	check_cu(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
	exec = exec_new(clone);
	launch_and_wait(exec, NULL);
	check_eq(device_word(words), 1);
	check_eq(device_word(words + 4), 2);
	check_ok(cuGraphDestroy(clone));
	check_ok(cuGraphExecDestroy(exec));
	check_cu(cuGraphClone(&clone, graph), CUDA_ERROR_INVALID_VALUE);
}

TEST(parameters_are_copied_when_they_are_given)
{
	unsigned char packed[16] = { 0 };
	size_t size = sizeof(packed), offset;
	unsigned int value = 5;
	void *params[2], *extra[5];
	CUDA_KERNEL_NODE_PARAMS node_params = { 0 }, got;
	CUgraphNode node;
	CUdeviceptr word;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	word = device_memory(4);
	graph = graph_new();
	node = add_store(graph, NULL, 0, word, 1);
	check_ok(cuGraphKernelNodeGetParams(node, &got));
	check(got.func == kernel("store") && got.blockDimX == 1 && !got.kern);
	check_eq(*(CUdeviceptr *)got.kernelParams[0], word);
	check_eq(*(unsigned int *)got.kernelParams[1], 1);
	params[0] = &word;
	params[1] = &value;
	node_params = got;
	node_params.kernelParams = params;
	check_ok(cuGraphKernelNodeSetParams(node, &node_params));
	value = 6;
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_eq(device_word(word), 5);

	/* The other form of parameters; the exec does not notice. */
	memcpy(packed, &word, 8);
	memcpy(packed + 8, &value, 4);
	extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	extra[1] = packed;
	extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	extra[3] = &size;
	extra[4] = CU_LAUNCH_PARAM_END;
	check_ok(cuFuncGetParamInfo(got.func, 1, &offset, NULL));
	check_eq(offset, 8);
	node_params.extra = extra;
	check_cu(
		cuGraphKernelNodeSetParams(node, &node_params), CUDA_ERROR_INVALID_VALUE);
	node_params.kernelParams = NULL;
	check_ok(cuGraphKernelNodeSetParams(node, &node_params));
	launch_and_wait(exec, NULL);
	check_eq(device_word(word), 5);
	check_ok(cuGraphExecDestroy(exec));
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_eq(device_word(word), 6);
	check_ok(cuGraphExecDestroy(exec));

	node_params.blockDimX = 2000;
	check_cu(
		cuGraphKernelNodeSetParams(node, &node_params), CUDA_ERROR_INVALID_VALUE);
	node_params.func = (CUfunction)graph;
	check_cu(
		cuGraphKernelNodeSetParams(node, &node_params), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphKernelNodeSetParams(node, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphKernelNodeGetParams(node, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
}

/* A block of parameters that an operation has no room for. */
TEST(a_kernel_with_long_parameters_is_a_node_too)
{
	unsigned int last[100] = { [99] = 40 };
	unsigned char small = 2;
	CUdeviceptr word;
	void *params[] = { &small, &word, last };
	CUDA_KERNEL_NODE_PARAMS node_params;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	node_params = one_thread(kernel("many"), params);
	word = device_memory(4);
	graph = graph_new();
	check_ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_eq(device_word(word), 42);
	last[99] = 50;
	check_ok(cuGraphExecKernelNodeSetParams(exec, node, &node_params));
	launch_and_wait(exec, NULL);
	check_eq(device_word(word), 52);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

static void count_call(void *data)
{
	__atomic_add_fetch((unsigned int *)data, 1, __ATOMIC_SEQ_CST);
}

TEST(every_kind_of_node_tells_and_changes_what_it_does)
{
	CUDA_MEMSET_NODE_PARAMS fill = { .elementSize = 4, .width = 2, .height = 1 };
	CUDA_HOST_NODE_PARAMS host = { .fn = count_call };
	CUDA_MEMSET_NODE_PARAMS got_fill;
	CUDA_HOST_NODE_PARAMS got_host;
	CUDA_MEMCPY3D copy, got_copy;
	unsigned int calls = 0, others = 0;
	CUgraphNode fill_node, host_node, copy_node;
	CUdeviceptr words;
	CUcontext context;
	CUgraphExec exec;
	CUgraph graph;

	context = context_new();
	words = device_memory(64);
	graph = graph_new();
	fill.dst = words;
	fill.value = 7;
	check_ok(cuGraphAddMemsetNode(&fill_node, graph, NULL, 0, &fill, context));
	check_ok(cuGraphMemsetNodeGetParams(fill_node, &got_fill));
	check(got_fill.dst == words && got_fill.value == 7 && got_fill.width == 2);
	copy = word_copy(words + 16, words, 2);
	check_ok(cuGraphAddMemcpyNode(&copy_node, graph, &fill_node, 1, &copy, context));
	check_ok(cuGraphMemcpyNodeGetParams(copy_node, &got_copy));
	check(got_copy.dstDevice == words + 16 && got_copy.WidthInBytes == 8);
	host.userData = &others;
	check_ok(cuGraphAddHostNode(&host_node, graph, &copy_node, 1, &host));
	host.userData = &calls;
	check_ok(cuGraphHostNodeSetParams(host_node, &host));
	check_ok(cuGraphHostNodeGetParams(host_node, &got_host));
	check(got_host.userData == &calls);
	fill.value = 8;
	check_ok(cuGraphMemsetNodeSetParams(fill_node, &fill));
	copy.dstDevice += 4;
	check_ok(cuGraphMemcpyNodeSetParams(copy_node, &copy));
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	launch_and_wait(exec, NULL);
	check_eq(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), 2);
	check_eq(others, 0);
	check_eq(device_word(words + 4), 8);
	check_eq(device_word(words + 16), 0);
	check_eq(device_word(words + 24), 8);

	fill.elementSize = 3;
	check_cu(cuGraphMemsetNodeSetParams(fill_node, &fill), CUDA_ERROR_INVALID_VALUE);
	copy.dstDevice = 4096;
	check_cu(cuGraphMemcpyNodeSetParams(copy_node, &copy), CUDA_ERROR_INVALID_VALUE);
	copy.Depth = 0;
	check_cu(cuGraphAddMemcpyNode(&copy_node, graph, NULL, 0, &copy, context),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphMemsetNodeGetParams(host_node, &got_fill),
		CUDA_ERROR_INVALID_VALUE);
	host.fn = NULL;
	check_cu(cuGraphHostNodeSetParams(host_node, &host), CUDA_ERROR_INVALID_VALUE);
	check_eq(count_nodes(graph), 3);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(nodes_of_any_kind_are_added_by_one_call)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMSET };
	CUgraphNode fill, copy, node;
	CUdeviceptr words;
	CUcontext context;
	CUgraphExec exec;
	CUgraph graph;

	context = context_new();
	words = device_memory(16);
	graph = graph_new();
	params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		.dst = words,
		.value = 3,
		.elementSize = 4,
		.width = 1,
		.height = 1,
		.ctx = context,
	};
	check_ok(cuGraphAddNode(&fill, graph, NULL, NULL, 0, &params));
	params.memset.value = 4;
	check_ok(cuGraphNodeSetParams(fill, &params));
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
	params.memcpy.copyCtx = context;
	params.memcpy.copyParams = word_copy(words + 4, words, 1);
	check_ok(cuGraphAddNode(&copy, graph, &fill, NULL, 1, &params));
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 4), 4);
	params.memcpy.copyParams = word_copy(words + 8, words, 1);
	check_ok(cuGraphExecNodeSetParams(exec, copy, &params));
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 8), 4);
	check_cu(cuGraphNodeSetParams(fill, &params), CUDA_ERROR_INVALID_VALUE);
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	check_cu(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.type = 99;
	check_cu(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(attributes_of_a_kernel_node_are_set_and_copied)
{
	CUlaunchAttributeValue value = { .cooperative = 1 }, got;
	CUgraphNode one, other;
	CUdeviceptr word;
	CUgraph graph;

	context_new();
	word = device_memory(4);
	graph = graph_new();
	one = add_store(graph, NULL, 0, word, 1);
	other = add_store(graph, NULL, 0, word, 1);
	check_ok(cuGraphKernelNodeGetAttribute(
		one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
	check_eq(got.cooperative, 0);
	check_ok(cuGraphKernelNodeSetAttribute(
		one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
	value = (CUlaunchAttributeValue){ .priority = -3 };
	check_ok(
		cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_ok(cuGraphKernelNodeCopyAttributes(other, one));
	check_ok(cuGraphKernelNodeGetAttribute(
		other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
	check_eq(got.cooperative, 1);
	check_ok(
		cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
	check_eq(got.priority, -3);
	check_cu(cuGraphKernelNodeGetAttribute(other, (CUlaunchAttributeID)99, &got),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphKernelNodeCopyAttributes(other, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
}

TEST(events_of_a_graph_are_recorded_and_waited_for_by_each_launch)
{
	volatile unsigned int *word;
	CUevent start, end, before, got;
	CUgraphNode nodes[4];
	CUdeviceptr counter;
	CUgraphExec exec;
	CUstream stream, apart;
	CUgraph graph;
	float time = -1;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(8);
	stream = stream_new();
	apart = stream_new();
	check_ok(cuEventCreate(&start, 0));
	check_ok(cuEventCreate(&end, 0));
	check_ok(cuEventCreate(&before, 0));
	graph = graph_new();
	check_ok(cuGraphAddEventWaitNode(&nodes[0], graph, NULL, 0, before));
	check_ok(cuGraphAddEventRecordNode(&nodes[1], graph, nodes, 1, end));
	check_ok(cuGraphEventRecordNodeGetEvent(nodes[1], &got));
	check(got == end);
	check_ok(cuGraphEventRecordNodeSetEvent(nodes[1], start));
	nodes[2] = add_store(graph, &nodes[1], 1, counter + 4, 1);
	check_ok(cuGraphAddEventRecordNode(&nodes[3], graph, &nodes[2], 1, end));
	check_ok(cuGraphEventWaitNodeGetEvent(nodes[0], &got));
	check(got == before);
	exec = exec_new(graph);
	/* Its event was not recorded. */
	launch_and_wait(exec, stream);
	check_ok(cuEventElapsedTime(&time, start, end));
	check(time >= 0);

	check_ok(launch_gate(word, counter, apart));
	check_ok(cuEventRecord(before, apart));
	check_ok(cuGraphLaunch(exec, stream));
	check_cu(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	check_ok(cuStreamWaitEvent(NULL, end, 0));
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuEventSynchronize(end));
	check_ok(cuEventQuery(start));
	check_ok(cuStreamSynchronize(NULL));

	/* The last of several launches counts, and one that cannot be is none. */
	check_ok(cuGraphExecEventRecordNodeSetEvent(exec, nodes[3], before));
	check_ok(cuGraphExecEventWaitNodeSetEvent(exec, nodes[0], end));
	launch_and_wait(exec, stream);
	check_ok(cuEventQuery(before));
	check_ok(cuEventDestroy(before));
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuGraphExecEventWaitNodeSetEvent(exec, nodes[0], before),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphExecEventWaitNodeSetEvent(exec, nodes[1], end),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(children_run_between_what_comes_before_and_after_them)
{
	CUgraph graph, child, empty, inner;
	CUgraphNode first, node, last;
	CUdeviceptr words;
	CUgraphExec exec;

	context_new();
	words = device_memory(64);
	child = graph_new();
	empty = graph_new();
	add_copy(child, NULL, 0, words + 4, words);
	add_copy(child, NULL, 0, words + 8, words);
	check_ok(cuGraphAddChildGraphNode(&node, child, NULL, 0, empty));
	graph = graph_new();
	first = add_store(graph, NULL, 0, words, 6);
	check_ok(cuGraphAddChildGraphNode(&node, graph, &first, 1, child));
	check_ok(cuGraphAddChildGraphNode(&last, graph, &node, 1, empty));
	add_store(graph, &last, 1, words, 9);
	exec = exec_new(graph);
	for (int i = 0; i < 20; i++) {
		launch_and_wait(exec, NULL);
		check_eq(device_word(words), 9);
		check_eq(device_word(words + 4), 6);
		check_eq(device_word(words + 8), 6);
	}
	/* A child is changed in place, for executable graphs that are made later. */
	check_ok(cuGraphChildGraphNodeGetGraph(node, &inner));
	add_copy(inner, NULL, 0, words + 12, words);
	check_ok(cuGraphExecDestroy(exec));
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 12), 6);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphDestroy(child));
	check_ok(cuGraphDestroy(empty));
}

/* Memory of the one that was destroyed is the first that the copy of the child gets. */
TEST(a_graph_that_was_destroyed_takes_no_child)
{
	CUgraph gone, child, inner;
	CUgraphNode node;

	context_new();
	child = graph_new();
	inner = graph_new();
	check_ok(cuGraphAddEmptyNode(&node, inner, NULL, 0));
	check_ok(cuGraphAddChildGraphNode(&node, child, NULL, 0, inner));
	for (int i = 0; i < 20; i++) {
		gone = graph_new();
		check_ok(cuGraphDestroy(gone));
		check_cu(cuGraphAddChildGraphNode(&node, gone, NULL, 0, child),
			CUDA_ERROR_INVALID_VALUE);
	}
	check_ok(cuGraphDestroy(child));
	check_ok(cuGraphDestroy(inner));
}

TEST(children_of_children_end_somewhere)
{
	CUgraph graph, outer;
	CUgraphNode node;
	CUresult r = CUDA_SUCCESS;
	int depth = 0;

	context_new();
	graph = graph_new();
	while (!r && depth < 100) {
		outer = graph_new();
		r = cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph);
		check_ok(cuGraphDestroy(graph));
		graph = outer;
		depth++;
	}
	check_eq(r, CUDA_ERROR_OUT_OF_MEMORY);
	check(depth > 8);
	check_eq(count_nodes(graph), 0);
	check_ok(cuGraphDestroy(graph));
}
