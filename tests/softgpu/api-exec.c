/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: executable graphs that are changed, launched in many streams, and destroyed
 */

#include <pthread.h>

#include "graph.h"

/* A kernel that waits for *word, then adds one to *counter. */
static CUgraphNode add_gate(
	CUgraph graph, volatile unsigned int *word, CUdeviceptr counter)
{
	CUdeviceptr address = (uintptr_t)word;
	void *params[] = { &address, &counter };
	const CUDA_KERNEL_NODE_PARAMS node_params = one_thread(kernel("gate"), params);
	CUgraphNode node;

	check_ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
	return node;
}

static void set_store(
	CUgraphExec exec, CUgraphNode node, CUdeviceptr address, unsigned int value)
{
	void *params[] = { &address, &value };
	CUDA_KERNEL_NODE_PARAMS node_params;

	check_ok(cuGraphKernelNodeGetParams(node, &node_params));
	node_params.kernelParams = params;
	check_ok(cuGraphExecKernelNodeSetParams(exec, node, &node_params));
}

TEST(launches_of_one_graph_run_one_after_the_other)
{
	volatile unsigned int *word;
	CUdeviceptr counter;
	CUstream one, two;
	CUgraphNode gate;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(64);
	one = stream_new();
	two = stream_new();
	graph = graph_new();
	gate = add_gate(graph, word, counter);
	add_copy(graph, &gate, 1, counter + 4, counter);
	exec = exec_new(graph);
	check_ok(cuGraphLaunch(exec, one));
	check_ok(cuGraphLaunch(exec, two));
	check_ok(cuGraphLaunch(exec, one));
	check_cu(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuStreamSynchronize(one));
	check_ok(cuStreamQuery(two));
	check_eq(device_word(counter), 3);
	check_eq(device_word(counter + 4), 3);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

/* The second launch waits for the first, which has not begun because of its stream. */
TEST(a_launch_waits_for_one_that_was_submitted_before_it)
{
	volatile unsigned int *word;
	CUdeviceptr counter;
	CUstream one, two;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(64);
	one = stream_new();
	two = stream_new();
	graph = graph_new();
	add_copy(graph, NULL, 0, counter + 4, counter);
	exec = exec_new(graph);
	check_ok(launch_gate(word, counter, one));
	check_ok(cuGraphLaunch(exec, one));
	check_ok(cuGraphLaunch(exec, two));
	check_cu(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuStreamSynchronize(two));
	check_eq(device_word(counter + 4), 1);
	check_ok(cuStreamSynchronize(one));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_graph_in_the_legacy_stream_follows_its_rule)
{
	volatile unsigned int *word;
	CUdeviceptr counter;
	CUstream blocking;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(64);
	check_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	graph = graph_new();
	add_copy(graph, NULL, 0, counter + 4, counter);
	exec = exec_new(graph);
	check_ok(launch_gate(word, counter, blocking));
	check_ok(cuGraphLaunch(exec, NULL));
	check_ok(launch_store(counter + 8, 1, blocking));
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuCtxSynchronize());
	check_eq(device_word(counter + 4), 1);
	check_eq(device_word(counter + 8), 1);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(branches_of_a_graph_run_side_by_side)
{
	volatile unsigned int *word;
	CUdeviceptr counter;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(64);
	graph = graph_new();
	add_gate(graph, word, counter);
	/* Another branch opens the gate. */
	check_ok(cuMemsetD32(counter + 8, 1, 1));
	add_copy(graph, NULL, 0, (uintptr_t)word, counter + 8);
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_eq(device_word(counter), 1);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_change_is_for_launches_to_come)
{
	volatile unsigned int *word;
	CUgraphNode gate, store;
	CUdeviceptr words;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	context_new();
	word = pinned_memory(4096);
	words = device_memory(64);
	stream = stream_new();
	graph = graph_new();
	gate = add_gate(graph, word, words);
	store = add_store(graph, &gate, 1, words + 4, 1);
	exec = exec_new(graph);
	check_ok(cuGraphLaunch(exec, stream));
	set_store(exec, store, words + 8, 2);
	check_ok(cuGraphLaunch(exec, stream));
	set_store(exec, store, words + 12, 3);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	open_gate(word);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(words), 2);
	check_eq(device_word(words + 4), 1);
	check_eq(device_word(words + 8), 2);
	check_eq(device_word(words + 12), 0);
}

TEST(nodes_of_an_executable_graph_are_changed_within_limits)
{
	CUDA_MEMSET_NODE_PARAMS fill = { .elementSize = 4, .width = 1, .height = 1 };
	CUDA_KERNEL_NODE_PARAMS kernel_params;
	CUgraphNode store, copy, set, foreign;
	CUdeviceptr words;
	CUDA_MEMCPY3D box;
	CUcontext context;
	CUgraphExec exec;
	CUgraph graph;

	context = context_new();
	words = device_memory(256);
	graph = graph_new();
	store = add_store(graph, NULL, 0, words, 1);
	copy = add_copy(graph, &store, 1, words + 4, words);
	fill.dst = words + 32;
	check_ok(cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, context));
	exec = exec_new(graph);
	set_store(exec, store, words, 5);
	box = word_copy(words + 8, words, 1);
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, copy, &box, context));
	fill.value = 6;
	fill.width = 2;
	check_ok(cuGraphExecMemsetNodeSetParams(exec, set, &fill, context));
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 4), 0);
	check_eq(device_word(words + 8), 5);
	check_eq(device_word(words + 36), 6);

	fill.height = 2;
	fill.pitch = 16;
	check_cu(cuGraphExecMemsetNodeSetParams(exec, set, &fill, context),
		CUDA_ERROR_INVALID_VALUE);
	box.Height = 2;
	box.dstPitch = box.srcPitch = 16;
	check_cu(cuGraphExecMemcpyNodeSetParams(exec, copy, &box, context),
		CUDA_ERROR_INVALID_VALUE);
	box = word_copy(words + 8, words, 1);
	box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	check_cu(cuGraphExecMemcpyNodeSetParams(exec, copy, &box, context),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphKernelNodeGetParams(store, &kernel_params));
	check_cu(cuGraphExecKernelNodeSetParams(exec, copy, &kernel_params),
		CUDA_ERROR_INVALID_VALUE);
	/* A node of another graph, also one that was added later. */
	foreign = add_store(graph, NULL, 0, words, 1);
	check_ok(cuGraphKernelNodeGetParams(foreign, &kernel_params));
	check_cu(cuGraphExecKernelNodeSetParams(exec, foreign, &kernel_params),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_node_that_is_switched_off_does_nothing)
{
	unsigned int is_on = 9;
	CUgraphNode store, empty;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	words = device_memory(64);
	graph = graph_new();
	store = add_store(graph, NULL, 0, words, 1);
	check_ok(cuGraphAddEmptyNode(&empty, graph, &store, 1));
	add_copy(graph, &empty, 1, words + 4, words);
	exec = exec_new(graph);
	check_ok(cuGraphNodeGetEnabled(exec, store, &is_on));
	check_eq(is_on, 1);
	check_ok(cuGraphNodeSetEnabled(exec, store, 0));
	check_ok(cuGraphNodeGetEnabled(exec, store, &is_on));
	check_eq(is_on, 0);
	check_ok(cuMemsetD32(words, 7, 1));
	launch_and_wait(exec, NULL);
	check_eq(device_word(words), 7);
	check_eq(device_word(words + 4), 7);
	check_ok(cuGraphNodeSetEnabled(exec, store, 1));
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 4), 1);
	check_cu(cuGraphNodeSetEnabled(exec, empty, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphNodeGetEnabled(exec, empty, &is_on), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

/* first -> (left, right) -> last; the order of creation is another if backwards. */
static CUgraph diamond(CUdeviceptr words, unsigned int value, bool backwards)
{
	CUgraph graph = graph_new();
	CUgraphNode first, last, sides[2];

	if (backwards) {
		last = add_copy(graph, NULL, 0, words + 12, words + 8);
		sides[0] = add_copy(graph, NULL, 0, words + 4, words);
		sides[1] = add_copy(graph, NULL, 0, words + 8, words);
		first = add_store(graph, NULL, 0, words, value);
		check_ok(cuGraphAddDependencies(
			graph, (CUgraphNode[]){ first, first }, sides, NULL, 2));
		check_ok(cuGraphAddDependencies(
			graph, sides, (CUgraphNode[]){ last, last }, NULL, 2));
		return graph;
	}
	first = add_store(graph, NULL, 0, words, value);
	sides[0] = add_copy(graph, &first, 1, words + 4, words);
	sides[1] = add_copy(graph, &first, 1, words + 8, words);
	add_copy(graph, sides, 2, words + 12, words + 8);
	return graph;
}

TEST(a_whole_graph_takes_the_place_of_one_of_the_same_shape)
{
	CUgraphExecUpdateResultInfo info;
	CUdeviceptr words, others;
	CUgraph graph, next;
	CUgraphExec exec;

	context_new();
	words = device_memory(64);
	others = device_memory(64);
	graph = diamond(words, 1, false);
	exec = exec_new(graph);
	for (unsigned int i = 2; i < 6; i++) {
		next = diamond(i % 2 ? words : others, i, i > 3);
		check_ok(cuGraphExecUpdate(exec, next, &info));
		check_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
		check_ok(cuGraphDestroy(next));
		launch_and_wait(exec, NULL);
		check_eq(device_word((i % 2 ? words : others) + 12), i);
	}
	check_cu(cuGraphExecUpdate(exec, NULL, &info), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphExecUpdate(exec, graph, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphExecDestroy(exec));
}

/* A copy of two rows; the bytes after them differ. */
static CUgraph rows(CUgraphNode *nodep, CUdeviceptr to, CUdeviceptr from, size_t pitch)
{
	CUDA_MEMCPY3D box = word_copy(to, from, 1);
	CUgraph graph = graph_new();
	CUcontext context;

	box.Height = 2;
	box.srcPitch = box.dstPitch = pitch;
	check_ok(cuCtxGetCurrent(&context));
	check_ok(cuGraphAddMemcpyNode(nodep, graph, NULL, 0, &box, context));
	return graph;
}

/* cuGraphExecUpdate() takes copies of any shape that stays, unlike the call for one. */
TEST(a_copy_of_rows_is_updated_with_its_graph_alone)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode copy, other;
	CUDA_MEMCPY3D box;
	CUgraph graph, next;
	CUdeviceptr words;
	CUcontext context;
	CUgraphExec exec;

	context = context_new();
	words = device_memory(256);
	check_ok(cuMemsetD32(words, 7, 16));
	graph = rows(&copy, words + 64, words, 16);
	exec = exec_new(graph);
	next = rows(&other, words + 128, words, 32);
	check_ok(cuGraphMemcpyNodeGetParams(other, &box));
	check_cu(cuGraphExecMemcpyNodeSetParams(exec, copy, &box, context),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecUpdate(exec, next, &info));
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 64), 0);
	check_eq(device_word(words + 128), 7);
	check_eq(device_word(words + 160), 7);
	box.Height = 1;
	check_ok(cuGraphMemcpyNodeSetParams(other, &box));
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	check(info.errorNode == other);
	check_ok(cuGraphDestroy(next));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphExecDestroy(exec));
}

TEST(a_graph_of_another_shape_changes_nothing)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode nodes[2], last, store;
	CUDA_MEMCPY3D box;
	CUgraph graph, next;
	CUdeviceptr words;
	CUgraphExec exec;

	context_new();
	words = device_memory(64);
	graph = graph_new();
	nodes[0] = add_store(graph, NULL, 0, words, 1);
	nodes[1] = add_copy(graph, nodes, 1, words + 4, words);
	add_copy(graph, nodes, 2, words + 8, words + 4);
	exec = exec_new(graph);

	/* One node less. */
	next = graph_new();
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	check(!info.errorNode);
	/* One more end. */
	nodes[0] = add_store(next, NULL, 0, words, 2);
	nodes[1] = add_copy(next, nodes, 1, words + 4, words);
	last = add_copy(next, nodes, 1, words + 8, words);
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	check(info.errorNode == last);
	/* One edge less. */
	check_ok(cuGraphRemoveDependencies(next, nodes, &last, NULL, 1));
	check_ok(cuGraphAddDependencies(next, &nodes[1], &last, NULL, 1));
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	check(info.errorNode == last);
	/* Another kind of node. */
	check_ok(cuGraphDestroyNode(last));
	store = add_store(next, nodes, 2, words + 8, 1);
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	check(info.errorNode == store);
	/* A copy that cannot become another: it is of two rows. */
	check_ok(cuGraphDestroyNode(store));
	last = add_copy(next, nodes, 2, words + 8, words + 4);
	box = word_copy(words + 8, words, 1);
	box.Height = 2;
	box.dstPitch = box.srcPitch = 16;
	check_ok(cuGraphMemcpyNodeSetParams(last, &box));
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	check(info.errorNode == last);

	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 8), 1);
	check_ok(cuGraphDestroy(next));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphExecDestroy(exec));
}

TEST(children_are_updated_with_their_graph)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, child, next, other;
	CUgraphNode node, wrong;
	CUdeviceptr words;
	CUgraphExec exec;

	context_new();
	words = device_memory(64);
	child = diamond(words, 3, false);
	graph = graph_new();
	check_ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	exec = exec_new(graph);
	other = diamond(words, 4, true);
	check_ok(cuGraphExecChildGraphNodeSetParams(exec, node, other));
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 12), 4);
	next = graph_new();
	check_ok(cuGraphAddChildGraphNode(&wrong, next, NULL, 0, child));
	check_ok(cuGraphExecUpdate(exec, next, &info));
	launch_and_wait(exec, NULL);
	check_eq(device_word(words + 12), 3);
	check_cu(cuGraphExecChildGraphNodeSetParams(exec, node, graph),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphExecChildGraphNodeSetParams(exec, wrong, child),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphDestroy(child));
	check_ok(cuGraphDestroy(next));
	check_ok(cuGraphDestroy(other));
}

TEST(a_launch_detects_destroyed_objects_of_its_graph)
{
	CUmodule module;
	CUfunction store;
	CUdeviceptr words, gone;
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphExec exec, kernels;
	CUgraphNode node;
	CUgraph graph;

	context_new();
	words = device_memory(64);
	check_ok(cuMemAlloc(&gone, 1 << 20));
	graph = graph_new();
	add_copy(graph, NULL, 0, gone, words);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, NULL);
	check_ok(cuMemFree(gone));
	check_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));

	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&store, module, "store"));
	graph = graph_new();
	node = add_store(graph, NULL, 0, words, 1);
	check_ok(cuGraphKernelNodeGetParams(node, &params));
	params.func = store;
	check_ok(cuGraphKernelNodeSetParams(node, &params));
	kernels = exec_new(graph);
	launch_and_wait(kernels, NULL);
	check_ok(cuModuleUnload(module));
	check_cu(cuGraphLaunch(kernels, NULL), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_HANDLE);
	/* Queries still return the original. */
	check_ok(cuGraphKernelNodeGetParams(node, &params));
	check_eq(*(unsigned int *)params.kernelParams[1], 1);
	check_ok(cuGraphExecDestroy(kernels));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_graph_outlives_its_context_and_cannot_be_launched_then)
{
	CUcontext context, other;
	CUdeviceptr words;
	CUDA_KERNEL_NODE_PARAMS node_params;
	unsigned int value = 1;
	void *params[] = { &words, &value };
	CUgraphExec exec;
	CUmodule module;
	CUfunction store;
	CUgraphNode node;
	CUgraph graph;

	context = context_new();
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	words = device_memory(64);
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&store, module, "store"));
	node_params = one_thread(store, params);
	graph = graph_new();
	check_ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
	exec = exec_new(graph);
	launch_and_wait(exec, NULL);
	check_ok(cuCtxSetCurrent(context));
	check_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxDestroy(other));
	check_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuGraphInstantiateWithFlags(&exec, graph, 0),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_fault_in_a_graph_is_sticky)
{
	CUcontext context;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraphNode node;
	CUstream stream;
	CUgraph graph;
	CUevent event;

	setenv("VGPU_LOG", "none", 1);
	context = context_new();
	words = device_memory(64);
	stream = stream_new();
	check_ok(cuEventCreate(&event, 0));
	graph = graph_new();
	node = add_store(graph, NULL, 0, 4096, 1);
	for (int i = 0; i < 10; i++)
		node = add_store(graph, &node, 1, words, 1);
	check_ok(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
	add_store(graph, NULL, 0, words + 4, 1);
	exec = exec_new(graph);
	check_ok(cuGraphLaunch(exec, stream));
	cuGraphLaunch(exec, stream);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuDevicePrimaryCtxReset(0));
	check_ok(cuCtxSetCurrent(context));
}

enum { MANY = 10000 };

TEST(a_chain_of_many_nodes_runs_to_its_end)
{
	CUgraphNode node = NULL;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	words = device_memory(4 * (MANY + 1));
	check_ok(cuMemsetD32(words, 5, 1));
	graph = graph_new();
	for (size_t i = 0; i < MANY; i++)
		node = add_copy(graph, &node, i > 0, words + 4 * (i + 1), words + 4 * i);
	exec = exec_new(graph);
	for (int i = 0; i < 3; i++)
		launch_and_wait(exec, NULL);
	check_eq(device_word(words + 4ull * MANY), 5);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(many_nodes_side_by_side_all_run)
{
	static unsigned int values[MANY];
	CUgraphNode first;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	words = device_memory(4 * MANY);
	graph = graph_new();
	first = add_store(graph, NULL, 0, words, 1);
	for (unsigned int i = 1; i < MANY; i++)
		add_store(graph, &first, 1, words + 4 * i, i + 1);
	exec = exec_new(graph);
	for (int i = 0; i < 2; i++) {
		check_ok(cuMemsetD32(words, 0, MANY));
		launch_and_wait(exec, NULL);
		check_ok(cuMemcpyDtoH(values, words, sizeof(values)));
		for (unsigned int j = 0; j < MANY; j++)
			if (values[j] != j + 1)
				test_fail(__FILE__, __LINE__, "%u is %u", j, values[j]);
	}
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

struct launcher {
	CUgraphExec exec;
	CUgraphNode node;
	CUdeviceptr words;
	const char *failure;
};

static void *launch_many(void *argument)
{
	struct launcher *launcher = argument;
	CUDA_MEMCPY3D copy = word_copy(launcher->words + 8, launcher->words, 1);
	CUcontext context;
	CUstream stream;

	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) {
		launcher->failure = "no stream";
		return NULL;
	}
	for (int i = 0; i < 300 && !launcher->failure; i++) {
		if (cuGraphLaunch(launcher->exec, stream))
			launcher->failure = "a launch was refused";
		if (i % 10 == 0 && cuGraphExecMemcpyNodeSetParams(launcher->exec,
					   launcher->node, &copy, context))
			launcher->failure = "a change was refused";
	}
	if (cuStreamSynchronize(stream))
		launcher->failure = "not done";
	cuStreamDestroy(stream);
	return NULL;
}

TEST(threads_launch_and_change_one_graph)
{
	enum { N = 4 };
	struct launcher launchers[N];
	pthread_t threads[N];
	CUgraphNode node, copy;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph;

	context_new();
	words = device_memory(64);
	graph = graph_new();
	node = add_store(graph, NULL, 0, words, 8);
	copy = add_copy(graph, &node, 1, words + 4, words);
	exec = exec_new(graph);
	for (int i = 0; i < N; i++) {
		launchers[i] = (struct launcher){ exec, copy, words, NULL };
		check_eq(
			pthread_create(&threads[i], NULL, launch_many, &launchers[i]), 0);
	}
	for (int i = 0; i < N; i++) {
		check_eq(pthread_join(threads[i], NULL), 0);
		check_str(launchers[i].failure ? launchers[i].failure : "", "");
	}
	check_eq(device_word(words + 8), 8);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}
