/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: conditional nodes of graphs
 */

#include <stdlib.h>

#include "graph.h"

/* nvcc compiles a call of cudaGraphSetConditional() to one of a function of this name,
 * which the driver has. */
static const char conditions_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	".extern .func cudaGraphSetConditional\n"
	"(.param .b64 handle, .param .b32 value);\n"
	/* *x += n; the condition is *x */
	".visible .entry decide(.param .u64 handle, .param .u64 x, .param .u32 n)\n"
	"{\n"
	"	.reg .b64 %rd<3>;\n"
	"	.reg .b32 %r<4>;\n"
	"	ld.param.u64 %rd1, [handle];\n"
	"	ld.param.u64 %rd2, [x];\n"
	"	ld.param.u32 %r1, [n];\n"
	"	ld.global.u32 %r2, [%rd2];\n"
	"	add.s32 %r3, %r2, %r1;\n"
	"	st.global.u32 [%rd2], %r3;\n"
	"	{\n"
	"		.param .b64 param0;\n"
	"		st.param.b64 [param0], %rd1;\n"
	"		.param .b32 param1;\n"
	"		st.param.b32 [param1], %r3;\n"
	"		call.uni cudaGraphSetConditional, (param0, param1);\n"
	"	}\n"
	"	ret;\n"
	"}\n"
	/* *x += n */
	".visible .entry count(.param .u64 x, .param .u32 n)\n"
	"{\n"
	"	.reg .b64 %rd<2>;\n"
	"	.reg .b32 %r<4>;\n"
	"	ld.param.u64 %rd1, [x];\n"
	"	ld.param.u32 %r1, [n];\n"
	"	ld.global.u32 %r2, [%rd1];\n"
	"	add.s32 %r3, %r2, %r1;\n"
	"	st.global.u32 [%rd1], %r3;\n"
	"	ret;\n"
	"}\n";

static CUcontext context;
static CUfunction decide, count;
static CUstream stream;
static CUdeviceptr words; /* of 4 bytes */

static void setup(void)
{
	struct fixture fixture = fixture_new();
	CUmodule module;

	context = fixture.context;
	check_ok(cuModuleLoadData(&module, conditions_ptx));
	check_ok(cuModuleGetFunction(&decide, module, "decide"));
	check_ok(cuModuleGetFunction(&count, module, "count"));
	stream = stream_new();
	words = memory_new(4096);
}

static CUdeviceptr word(int i)
{
	return words + 4 * i;
}

static unsigned int value_of(int i)
{
	return device_word(word(i));
}

static void set_word(int i, unsigned int value)
{
	check_ok(cuMemsetD32(word(i), value, 1));
}

static CUgraph graph_new(void)
{
	CUgraph graph = NULL;

	check_ok(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphConditionalHandle handle_new(CUgraph graph, unsigned int value, bool first)
{
	CUgraphConditionalHandle handle = 0;

	check_ok(cuGraphConditionalHandleCreate(&handle, graph, context, value,
		first ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0));
	check(handle);
	return handle;
}

static CUgraphNodeParams conditional_params(
	CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned int n)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };

	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = n;
	params.conditional.ctx = context;
	return params;
}

static CUgraphNode conditional_new(CUgraph graph, const CUgraphNode *before,
	CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned int n,
	CUgraph *bodies)
{
	CUgraphNodeParams params = conditional_params(handle, type, n);
	CUgraphNode node = NULL;
	CUgraphNodeType told;

	check_ok(cuGraphAddNode(&node, graph, before, NULL, before ? 1 : 0, &params));
	check(node && params.conditional.phGraph_out);
	for (unsigned int i = 0; i < n; i++) {
		bodies[i] = params.conditional.phGraph_out[i];
		check(bodies[i] && count_nodes(bodies[i]) == 0);
	}
	check_ok(cuGraphNodeGetType(node, &told));
	check_eq(told, CU_GRAPH_NODE_TYPE_CONDITIONAL);
	return node;
}

static CUgraphNode add_kernel(
	CUgraph graph, const CUgraphNode *before, CUfunction function, void **params)
{
	CUDA_KERNEL_NODE_PARAMS node_params = step_params(function, params);
	CUgraphNode node = NULL;

	check_ok(
		cuGraphAddKernelNode(&node, graph, before, before ? 1 : 0, &node_params));
	return node;
}

static CUgraphNode add_count(CUgraph graph, const CUgraphNode *before, int i, int n)
{
	CUdeviceptr x = word(i);
	void *params[] = { &x, &n };

	return add_kernel(graph, before, count, params);
}

static CUgraphNode add_decide(CUgraph graph, const CUgraphNode *before,
	CUgraphConditionalHandle handle, int i, int n)
{
	CUdeviceptr x = word(i);
	void *params[] = { &handle, &x, &n };

	return add_kernel(graph, before, decide, params);
}

static CUresult launch_decide(CUgraphConditionalHandle handle, int i, int n)
{
	CUdeviceptr x = word(i);
	void *params[] = { &handle, &x, &n };

	return cuLaunchKernel(decide, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

TEST(a_body_runs_if_the_condition_is_not_zero)
{
	CUgraphConditionalHandle handle;
	CUgraphNode first, node;
	CUgraphExec exec;
	CUgraph graph, bodies[2];

	setup();
	graph = graph_new();
	handle = handle_new(graph, 0, false);
	first = add_decide(graph, NULL, handle, 0, 0);
	node = conditional_new(graph, &first, handle, CU_GRAPH_COND_TYPE_IF, 1, bodies);
	add_count(bodies[0], NULL, 1, 1);
	add_count(graph, &node, 2, 1);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 0);
	check_eq(value_of(2), 1);
	set_word(0, 7);
	launch_and_wait(exec, stream);
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 2);
	check_eq(value_of(2), 3);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));

	graph = graph_new();
	handle = handle_new(graph, 0, false);
	first = add_decide(graph, NULL, handle, 0, 0);
	conditional_new(graph, &first, handle, CU_GRAPH_COND_TYPE_IF, 2, bodies);
	add_count(bodies[0], NULL, 3, 1);
	add_count(bodies[1], NULL, 3, 100);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(value_of(3), 1);
	set_word(0, 0);
	launch_and_wait(exec, stream);
	check_eq(value_of(3), 101);
}

TEST(a_body_runs_while_the_condition_is_not_zero)
{
	CUgraphConditionalHandle handle;
	CUgraphNode first, node, fill;
	CUdeviceptr x;
	CUgraphExec exec;
	CUgraph graph, body;

	setup();
	x = word(4);
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	first = add_count(graph, NULL, 0, 5);
	node = conditional_new(graph, &first, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	/* Two branches, which meet. */
	first = add_decide(body, NULL, handle, 0, -1);
	add_count(body, &first, 1, 1);
	add_count(body, NULL, 2, 2);
	check_ok(cuGraphAddMemsetNode(&fill, body, &first, 1,
		&(CUDA_MEMSET_NODE_PARAMS){
			.dst = x, .value = 9, .elementSize = 4, .width = 1, .height = 1 },
		context));
	check_ok(cuGraphAddMemcpyNode(&first, body, &fill, 1,
		&(CUDA_MEMCPY3D){
			.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = x,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = x + 4,
			.WidthInBytes = 4,
			.Height = 1,
			.Depth = 1,
		},
		context));
	add_count(body, &first, 5, 1);
	add_count(graph, &node, 3, 1);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(value_of(0), 0);
	check_eq(value_of(1), 5);
	check_eq(value_of(2), 10);
	check_eq(value_of(3), 1);
	check_eq(value_of(4), 9);
	check_eq(value_of(5), 10);
	/* Each launch begins with the default value; launches do not overlap. */
	for (int i = 0; i < 40; i++)
		check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(value_of(1), 41 * 5);
	check_eq(value_of(3), 41);
	/* An executable graph outlives its graph, with the condition. */
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 42 * 5);
	check_ok(cuGraphExecDestroy(exec));
}

TEST(one_of_several_bodies_is_chosen_by_its_number)
{
	CUgraphConditionalHandle handle;
	CUgraph graph, bodies[128];
	CUgraphNode first;
	CUgraphExec exec;

	setup();
	graph = graph_new();
	handle = handle_new(graph, 0, false);
	first = add_decide(graph, NULL, handle, 0, 0);
	conditional_new(graph, &first, handle, CU_GRAPH_COND_TYPE_SWITCH, 128, bodies);
	for (int i = 0; i < 128; i++)
		add_count(bodies[i], NULL, 1, i + 1);
	exec = exec_new(graph);
	for (unsigned int i = 0; i < 128; i += 9) {
		set_word(0, i);
		set_word(1, 0);
		launch_and_wait(exec, stream);
		check_eq(value_of(1), i + 1);
	}
	/* There is no such body. */
	for (unsigned int value = 128; value; value *= 2) {
		set_word(0, value);
		set_word(1, 0);
		launch_and_wait(exec, stream);
		check_eq(value_of(1), 0);
	}
}

TEST(a_condition_keeps_its_value_without_a_default)
{
	CUgraphConditionalHandle handle;
	CUgraph graph, bodies[3];
	CUgraphExec exec;

	setup();
	graph = graph_new();
	handle = handle_new(graph, 2, false);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, bodies);
	add_count(bodies[2], NULL, 1, 1);
	exec = exec_new(graph);
	/* A kernel outside of any graph may set it, too. */
	set_word(0, 2);
	check_ok(launch_decide(handle, 0, 0));
	launch_and_wait(exec, stream);
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 2);
	check_ok(launch_decide(handle, 0, -1));
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 2);
}

TEST(conditional_nodes_are_nested)
{
	CUgraphConditionalHandle outer, middle, inner;
	CUgraph graph, body, branches[2], loop, child;
	CUgraphNode first, node;
	CUgraphExec exec;

	setup();
	graph = graph_new();
	outer = handle_new(graph, 1, true);
	middle = handle_new(graph, 1, true);
	first = add_count(graph, NULL, 0, 3);
	conditional_new(graph, &first, outer, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	/* A condition of the body itself. */
	inner = handle_new(body, 1, false);
	first = add_count(body, NULL, 1, 4);
	first = add_decide(body, &first, inner, 1, 0);
	node = conditional_new(body, &first, middle, CU_GRAPH_COND_TYPE_IF, 2, branches);
	conditional_new(branches[0], NULL, inner, CU_GRAPH_COND_TYPE_WHILE, 1, &loop);
	child = graph_new();
	first = add_count(child, NULL, 2, 1);
	add_decide(child, &first, inner, 1, -1);
	check_ok(cuGraphAddChildGraphNode(&first, loop, NULL, 0, child));
	check_ok(cuGraphDestroy(child));
	add_count(branches[1], NULL, 3, 1);
	add_decide(body, &node, outer, 0, -1);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(value_of(0), 0);
	check_eq(value_of(1), 0);
	check_eq(value_of(2), 12);
	check_eq(value_of(3), 0);
	launch_and_wait(exec, stream);
	check_eq(value_of(2), 24);
}

TEST(a_body_is_filled_by_a_capture)
{
	CUgraphConditionalHandle handle;
	CUdeviceptr x;
	CUgraph graph, body, ended = NULL;
	CUgraphNode node;
	CUgraphExec exec;
	int n = 1;

	setup();
	x = word(1);
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	node = conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	set_word(0, 6);
	check_ok(cuStreamBeginCaptureToGraph(
		stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_ok(launch_decide(handle, 0, -1));
	check_ok(cuLaunchKernel(
		count, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){ &x, &n }, NULL));
	/* Neither may go meanwhile. */
	check_cu(cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamEndCapture(stream, &ended));
	check(ended == body);
	check_eq(count_nodes(body), 2);
	/* The program has the graph, and need not ask for it. */
	check_ok(cuStreamBeginCaptureToGraph(
		stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_ok(cuStreamEndCapture(stream, NULL));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuStreamEndCapture(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(capture_end(stream)));
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 6);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroyNode(node));
	check_cu(cuGraphGetNodes(body, NULL, &(size_t){ 0 }), CUDA_ERROR_INVALID_VALUE);
}

TEST(nodes_in_bodies_are_changed_in_executable_graphs)
{
	CUgraphConditionalHandle handle;
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphNode added;
	CUdeviceptr x;
	CUgraphExec exec;
	CUgraph graph, body;
	unsigned int is_enabled = 9;
	int n = 10;

	setup();
	x = word(1);
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	added = add_count(body, NULL, 1, 1);
	exec = exec_new(graph);
	params = step_params(count, (void *[]){ &x, &n });
	check_ok(cuGraphExecKernelNodeSetParams(exec, added, &params));
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 10);
	check_ok(cuGraphNodeSetEnabled(exec, added, 0));
	check_ok(cuGraphNodeGetEnabled(exec, added, &is_enabled));
	check_eq(is_enabled, 0);
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 10);
}

TEST(an_update_brings_the_conditions_of_its_graph)
{
	CUgraphConditionalHandle handles[3];
	CUgraphExecUpdateResultInfo info = { 0 };
	CUgraph graphs[3], bodies[2];
	CUgraphExec exec;

	setup();
	for (int i = 0; i < 3; i++) {
		graphs[i] = graph_new();
		handles[i] = handle_new(graphs[i], 1, true);
		conditional_new(graphs[i], NULL, handles[i],
			i < 2 ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_SWITCH, 1,
			bodies);
		add_decide(bodies[0], NULL, handles[i], i, -1);
	}
	set_word(0, 3);
	set_word(1, 4);
	exec = exec_new(graphs[0]);
	launch_and_wait(exec, stream);
	check(value_of(0) == 0 && value_of(1) == 4);
	check_ok(cuGraphExecUpdate(exec, graphs[1], &info));
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	check_ok(cuGraphDestroy(graphs[1]));
	launch_and_wait(exec, stream);
	check_eq(value_of(1), 0);
	check_cu(cuGraphExecUpdate(exec, graphs[2], &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	check(info.errorNode);
}

static void check_refused(CUgraph graph, CUgraphNodeParams params, CUresult error)
{
	CUgraphNode node = NULL;

	check_cu(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), error);
	check(!node);
}

TEST(conditional_nodes_are_refused)
{
	CUgraphConditionalHandle handle, foreign, used;
	CUgraph graph, other, bodies[2];
	CUgraphNodeParams params;

	setup();
	graph = graph_new();
	other = graph_new();
	check_cu(cuGraphConditionalHandleCreate(&handle, NULL, context, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphConditionalHandleCreate(NULL, graph, context, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	handle = handle_new(graph, 0, false);
	foreign = handle_new(other, 0, false);
	used = handle_new(graph, 0, false);
	params = conditional_params(handle, CU_GRAPH_COND_TYPE_IF, 3);
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	params.conditional.size = 0;
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	params = conditional_params(handle, CU_GRAPH_COND_TYPE_WHILE, 2);
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	params = conditional_params(handle, CU_GRAPH_COND_TYPE_SWITCH, 1u << 31);
	check_refused(graph, params, CUDA_ERROR_OUT_OF_MEMORY);
	params = conditional_params(handle, 3, 1);
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	/* No handle, another graph's, and one that was made up. */
	params = conditional_params(0, CU_GRAPH_COND_TYPE_IF, 1);
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	params.conditional.handle = foreign;
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	params.conditional.handle = handle + (1ull << 40);
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	/* One node for each. */
	conditional_new(graph, NULL, used, CU_GRAPH_COND_TYPE_IF, 1, bodies);
	params.conditional.handle = used;
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	check_refused(bodies[0], params, CUDA_ERROR_INVALID_VALUE);
	/* A handle ends with its graph. */
	check_ok(cuGraphDestroy(other));
	params.conditional.handle = foreign;
	check_refused(graph, params, CUDA_ERROR_INVALID_VALUE);
	/* After all of these the graph is whole. */
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 2, bodies);
	launch_and_wait(exec_new(graph), stream);
}

TEST(bodies_have_only_some_kinds_of_nodes)
{
	CUgraphConditionalHandle handle;
	CUgraph graph, body, child;
	CUgraphNode node = NULL;
	CUevent event;

	setup();
	graph = graph_new();
	handle = handle_new(graph, 0, false);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	check_ok(cuEventCreate(&event, CU_EVENT_DEFAULT));
	check_cu(cuGraphAddEventRecordNode(&node, body, NULL, 0, event),
		CUDA_ERROR_NOT_SUPPORTED);
	child = graph_new();
	check_ok(cuGraphAddEventWaitNode(&node, child, NULL, 0, event));
	check_cu(cuGraphAddChildGraphNode(&node, body, NULL, 0, child),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphInstantiateWithFlags(&(CUgraphExec){ NULL }, body, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(count_nodes(body), 0);
	check_ok(cuGraphAddEmptyNode(&node, body, NULL, 0));
	check_eq(count_nodes(body), 1);
}

TEST(graphs_with_conditional_nodes_are_neither_copied_nor_doubled)
{
	CUgraphConditionalHandle handle;
	CUgraph graph, other, body, ended;
	CUgraphExec exec, second;
	CUgraphNode node, added;

	setup();
	graph = graph_new();
	other = graph_new();
	handle = handle_new(graph, 1, true);
	node = conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	add_count(body, NULL, 0, 1);
	check_cu(cuGraphClone(&other, graph), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphAddChildGraphNode(&added, other, NULL, 0, graph),
		CUDA_ERROR_NOT_SUPPORTED);
	/* Nor into itself. */
	check_cu(cuGraphAddChildGraphNode(&added, body, NULL, 0, graph),
		CUDA_ERROR_NOT_SUPPORTED);
	exec = exec_new(graph);
	check_cu(
		cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuStreamEndCapture(stream, &ended));
	check_eq(count_nodes(ended), 0);
	launch_and_wait(exec, stream);
	check_eq(value_of(0), 1);
	check_ok(cuGraphExecDestroy(exec));
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(value_of(0), 2);
	/* Its parameters stay as they are. */
	check_cu(cuGraphNodeSetParams(node,
			 &(CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_CONDITIONAL }),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphExecNodeSetParams(exec, node,
			 &(CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_CONDITIONAL }),
		CUDA_ERROR_NOT_SUPPORTED);
}

TEST(a_condition_without_a_node_is_reported)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .result_out = 99 };
	CUgraphConditionalHandle handle;
	CUgraphExec exec = NULL;
	CUgraph graph, body;
	CUgraphNode node;

	setup();
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	node = conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	add_count(body, NULL, 0, 1);
	check_ok(cuGraphDestroyNode(node));
	check_cu(cuGraphInstantiateWithParams(&exec, graph, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	check(!params.hErrNode_out && !exec);
	/* It may have another node. */
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	add_count(body, NULL, 0, 1);
	check_ok(cuGraphInstantiateWithParams(&exec, graph, &params));
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
	launch_and_wait(exec, stream);
	check_eq(value_of(0), 1);
}

/* A structure that is wrong inside a body. */
TEST(a_cycle_in_a_body_is_reported_with_its_node)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .result_out = 99 };
	CUgraphConditionalHandle handle;
	CUgraphNode nodes[2], found = NULL;
	CUgraphExec exec = NULL;
	CUgraph graph, body;

	setup();
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	nodes[0] = add_count(body, NULL, 0, 1);
	nodes[1] = add_count(body, &nodes[0], 0, 1);
	check_ok(cuGraphAddDependencies(body, &nodes[1], &nodes[0], NULL, 1));
	check_cu(cuGraphInstantiateWithParams(&exec, graph, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
	check(params.hErrNode_out == nodes[0] || params.hErrNode_out == nodes[1]);
	check_cu(CALL("cuGraphInstantiate", 11000,
			 (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t), &exec,
			 graph, &found, NULL, 0),
		CUDA_ERROR_INVALID_VALUE);
	check(found == params.hErrNode_out);
	check_ok(cuGraphRemoveDependencies(body, &nodes[1], &nodes[0], NULL, 1));
	check_ok(CALL("cuGraphInstantiate", 11000,
		(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t), &exec, graph,
		&found, NULL, 0));
	check(exec && !found);
}

/* The context, not the process, ends with a kernel that sets what no graph has. */
static void check_set_fails(CUgraphConditionalHandle handle)
{
	check_ok(launch_decide(handle, 0, 1));
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_kernel_that_sets_a_stale_condition_fails)
{
	CUgraphConditionalHandle handle;
	CUgraph graph, body;
	CUgraphExec exec;

	setup();
	graph = graph_new();
	handle = handle_new(graph, 0, true);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	check_ok(launch_decide(handle, 0, 1));
	launch_and_wait(exec, stream);
	check_ok(cuGraphExecDestroy(exec));
	/* The next one has its place, and another handle. */
	check(handle_new(graph_new(), 0, true) != handle);
	check_set_fails(handle);
}

TEST(a_kernel_that_sets_a_forged_condition_fails)
{
	setup();
	check_set_fails(0x123456789abcdef0ull);
}

/* A loop that never ends, with a kernel in its body or with nothing. Others proceed, and
 * it ends with its context. */
static void run_forever(bool is_empty)
{
	CUgraphConditionalHandle handle;
	CUgraph graph, body;
	CUgraphNode node;
	CUgraphExec exec;
	CUcontext mine;
	CUstream other;

	setup();
	check_ok(cuCtxPopCurrent(NULL));
	check_ok(cuCtxCreate(&mine, NULL, 0, 0));
	context = mine;
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	if (is_empty)
		check_ok(cuGraphAddEmptyNode(&node, body, NULL, 0));
	else
		check_ok(cuGraphAddMemsetNode(&node, body, NULL, 0,
			&(CUDA_MEMSET_NODE_PARAMS){ .dst = memory_new(4),
				.elementSize = 4,
				.width = 1,
				.height = 1 },
			mine));
	exec = exec_new(graph);
	stream = stream_new();
	other = stream_new();
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuMemsetD32Async(memory_new(4), 5, 1, other));
	check_ok(cuStreamSynchronize(other));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuCtxDestroy(mine));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	check_eq(value_of(0), 0);
}

TEST(a_loop_without_end_keeps_nobody_waiting)
{
	run_forever(false);
}

TEST(an_empty_loop_without_end_keeps_nobody_waiting)
{
	run_forever(true);
}

/*
 * Copies of the program's memory in bodies
 */

static CUDA_MEMCPY3D copy_in(int i, const unsigned int *from, size_t n)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = word(i),
		.WidthInBytes = 4 * n,
		.Height = 1,
		.Depth = 1,
	};
}

static CUDA_MEMCPY3D copy_out(unsigned int *to, int i, size_t n)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = word(i),
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.WidthInBytes = 4 * n,
		.Height = 1,
		.Depth = 1,
	};
}

static CUgraphNode add_copy(
	CUgraph graph, const CUgraphNode *before, const CUDA_MEMCPY3D *copy)
{
	CUgraphNode node = NULL;

	check_ok(cuGraphAddMemcpyNode(
		&node, graph, before, before ? 1 : 0, copy, context));
	return node;
}

static size_t count_edges(CUgraph graph)
{
	size_t n = 0;

	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	return n;
}

/* In, one more, out, five times: each turn finds what the one before has left. */
TEST(copies_in_a_loop_carry_memory_of_the_program)
{
	unsigned int x = 0, told = 0;
	CUDA_MEMCPY3D in, out, got;
	CUgraphConditionalHandle handle;
	CUgraph graph, body;
	CUgraphNodeType type;
	CUgraphNode node;
	CUgraphExec exec;

	setup();
	in = copy_in(1, &x, 1);
	out = copy_out(&x, 1, 1);
	graph = graph_new();
	handle = handle_new(graph, 1, true);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	node = add_copy(body, NULL, &in);
	check_ok(cuGraphNodeGetType(node, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEMCPY);
	node = add_count(body, &node, 1, 1);
	node = add_copy(body, &node, &out);
	check_ok(cuGraphMemcpyNodeGetParams(node, &got));
	check(got.dstHost == &x && got.srcDevice == word(1) && got.WidthInBytes == 4);
	add_decide(body, &node, handle, 0, -1);
	exec = exec_new(graph);
	check(count_nodes(graph) == 1 && !count_edges(graph) && count_nodes(body) == 4);
	for (unsigned int i = 0; i < 3; i++) {
		set_word(0, 5);
		x = 100 * i;
		launch_and_wait(exec, stream);
		check_eq(x, 100 * i + 5);
	}
	/* Elsewhere, by an update. */
	out = copy_out(&told, 1, 1);
	check_ok(cuGraphMemcpyNodeSetParams(node, &out));
	check_ok(cuGraphExecUpdate(exec, graph, &(CUgraphExecUpdateResultInfo){ 0 }));
	set_word(0, 5);
	launch_and_wait(exec, stream);
	check(x == 205 && told == 206);
	/* It is an ordinary copy again. */
	out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	out.dstHost = NULL;
	out.dstDevice = word(2);
	check_ok(cuGraphMemcpyNodeSetParams(node, &out));
	check_ok(cuGraphExecDestroy(exec));
	set_word(0, 5);
	x = 7;
	launch_and_wait(exec_new(graph), stream);
	check(x == 7 && told == 206 && value_of(2) == 8);
}

/* Functions of the program before and behind see the memory in order. */
struct watch {
	unsigned int *memory;
	unsigned int given, seen;
};

static void give(void *data)
{
	struct watch *watch = data;

	*watch->memory = watch->given;
}

static void see(void *data)
{
	struct watch *watch = data;

	watch->seen = *watch->memory;
}

TEST(functions_before_and_behind_a_body_see_its_copies)
{
	unsigned int x = 1;
	struct watch watch = { .memory = &x };
	const CUDA_HOST_NODE_PARAMS before = { give, &watch }, behind = { see, &watch };
	CUDA_MEMCPY3D in, out;
	CUgraphConditionalHandle handle;
	CUgraphNode first, node, last;
	CUgraph graph, body;
	CUgraphExec exec;

	setup();
	in = copy_in(1, &x, 1);
	out = copy_out(&x, 1, 1);
	graph = graph_new();
	check_ok(cuGraphAddHostNode(&first, graph, NULL, 0, &before));
	first = add_decide(graph, &first, handle = handle_new(graph, 0, true), 0, 0);
	node = conditional_new(graph, &first, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	check_ok(cuGraphAddHostNode(&last, graph, &node, 1, &behind));
	node = add_copy(body, NULL, &in);
	node = add_count(body, &node, 1, 1);
	add_copy(body, &node, &out);
	exec = exec_new(graph);
	check(count_nodes(graph) == 4 && count_edges(graph) == 3);
	for (unsigned int i = 0; i < 4; i++) {
		set_word(0, i & 1);
		watch.given = 10 * (i + 1);
		launch_and_wait(exec, stream);
		check_eq(watch.seen, watch.given + (i & 1));
	}
}

/* What a body that is not chosen would write, the program may write meanwhile. */
TEST(copies_of_a_body_that_is_not_chosen_change_nothing)
{
	unsigned int memory[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	CUgraphConditionalHandle handle;
	CUgraph graph, bodies[2];
	CUDA_MEMCPY3D out;
	CUgraphExec exec;

	setup();
	/* Two rows of one word, two words apart. */
	for (int i = 0; i < 4; i++)
		set_word(4 + i, 40 + (unsigned int)i);
	out = copy_out(memory, 4, 1);
	out.Height = 2;
	out.srcPitch = 4;
	out.dstPitch = 12;
	out.dstXInBytes = 4;
	graph = graph_new();
	handle = handle_new(graph, 0, false);
	conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 2, bodies);
	add_copy(bodies[0], NULL, &out);
	out = copy_out(memory + 6, 6, 2);
	add_copy(bodies[1], NULL, &out);
	exec = exec_new(graph);
	check_ok(launch_decide(handle, 0, 1));
	launch_and_wait(exec, stream);
	check(memory[0] == 1 && memory[1] == 40 && memory[2] == 3 && memory[3] == 4);
	check(memory[4] == 41 && memory[5] == 6 && memory[6] == 7 && memory[7] == 8);
	memory[1] = memory[4] = 9;
	check_ok(launch_decide(handle, 0, -1));
	launch_and_wait(exec, stream);
	check(memory[1] == 9 && memory[4] == 9 && memory[6] == 42 && memory[7] == 43);
}

TEST(copies_in_nested_bodies_are_captured_and_disabled)
{
	unsigned int *in = malloc(4096), *out = malloc(4096), is_enabled = 9;
	CUgraphConditionalHandle outer, inner;
	CUgraph graph, body, nested;
	CUgraphNode nodes[3];
	CUgraphExec exec;
	size_t n = 3;

	check(in && out);
	setup();
	graph = graph_new();
	outer = handle_new(graph, 1, true);
	inner = handle_new(graph, 1, true);
	conditional_new(graph, NULL, outer, CU_GRAPH_COND_TYPE_IF, 1, &body);
	conditional_new(body, NULL, inner, CU_GRAPH_COND_TYPE_IF, 1, &nested);
	check_ok(cuStreamBeginCaptureToGraph(
		stream, nested, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_ok(cuMemcpyHtoDAsync(word(0), in, 4096, stream));
	check_ok(cuMemcpyDtoHAsync(out, word(0), 4096, stream));
	/* From the end of what was written. */
	check_ok(cuMemcpyHtoDAsync(word(0), out + 1020, 4, stream));
	check_ok(cuStreamEndCapture(stream, NULL));
	check_ok(cuGraphGetNodes(nested, nodes, &n));
	check_eq(n, 3);
	exec = exec_new(graph);
	for (unsigned int i = 0; i < 8; i++) {
		memset(out, 0xee, 4096);
		for (unsigned int j = 0; j < 1024; j++)
			in[j] = i * j;
		check_ok(cuGraphNodeSetEnabled(exec, nodes[1], i & 1));
		check_ok(cuGraphNodeGetEnabled(exec, nodes[1], &is_enabled));
		check_eq(is_enabled, i & 1);
		launch_and_wait(exec, stream);
		check_eq(value_of(1023), 1023 * i);
		check_eq(value_of(0), i & 1 ? 1020 * i : 0xeeeeeeee);
		for (unsigned int j = 0; j < 1024; j++)
			check_eq(out[j], i & 1 ? i * j : 0xeeeeeeee);
	}
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	free(in);
	free(out);
}

/* The conditional node is added to a capture under way, and its body is another one. */
TEST(copies_are_captured_in_a_body_of_a_captured_graph)
{
	CUstream other;
	CUstreamCaptureStatus status;
	CUgraphConditionalHandle handle;
	CUgraph graph, body, ended = NULL;
	unsigned int in = 0, out = 0;
	CUgraphExec exec;
	CUgraphNode node;

	setup();
	other = stream_new();
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_ok(cuStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL));
	handle = handle_new(graph, 1, true);
	node = conditional_new(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	check_ok(cuStreamUpdateCaptureDependencies(
		stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	check_ok(cuStreamBeginCaptureToGraph(
		other, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_ok(cuMemcpyHtoDAsync(word(0), &in, 4, other));
	check_ok(cuMemcpyDtoHAsync(&out, word(0), 4, other));
	check_ok(cuStreamEndCapture(other, NULL));
	check_ok(cuMemcpyDtoDAsync(word(1), word(0), 4, stream));
	check_ok(cuStreamEndCapture(stream, &ended));
	check_eq(count_nodes(ended), 2);
	exec = exec_new(ended);
	for (in = 5; in < 8; in++) {
		launch_and_wait(exec, stream);
		check(out == in && value_of(1) == in);
	}
}
