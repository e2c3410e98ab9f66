/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: limits of conditional nodes, and what they leave
 */

#include "graph.h"
#include "softgpu.h"

/* Work that queues and threads may retain for their peak use. */
#define KEPT (32 << 10)
#define ROUNDS 400

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static const char setting_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func cudaGraphSetConditional (.param .b64 a, .param .b32 b);\n"
	".visible .entry set(.param .u64 handle, .param .u32 value)\n"
	"{\n"
	"	.reg .b64 %d;\n"
	"	.reg .b32 %r;\n"
	"	ld.param.u64 %d, [handle];\n"
	"	ld.param.u32 %r, [value];\n"
	"	{ .param .b64 a; st.param.b64 [a], %d;\n"
	"	.param .b32 b; st.param.b32 [b], %r;\n"
	"	call.uni cudaGraphSetConditional, (a, b); }\n"
	"	ret;\n"
	"}\n";

static CUgraphConditionalHandle handle_new(CUgraph graph)
{
	CUgraphConditionalHandle handle = 0;

	check_ok(cuGraphConditionalHandleCreate(
		&handle, graph, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

/* Return: the result; *bodyp: the first body. */
static CUresult conditional_add(CUgraph graph, CUgraphConditionalHandle handle,
	CUgraphConditionalNodeType type, unsigned int n, CUgraph *bodyp)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphNode node;
	CUresult result;

	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = n;
	result = cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
	if (!result)
		*bodyp = params.conditional.phGraph_out[0];
	return result;
}

static CUgraph loop_new(CUgraph *bodyp)
{
	CUgraph graph = graph_new();

	check_ok(conditional_add(
		graph, handle_new(graph), CU_GRAPH_COND_TYPE_WHILE, 1, bodyp));
	return graph;
}

static void check_time_limit(bool is_empty)
{
	struct softgpu_config config = { .size = sizeof(config), .timeout_ms = 50 };
	CUgraph graph, body;
	CUgraphNode node;

	check_eq(softgpu_configure(&config), 0);
	context_new();
	graph = loop_new(&body);
	if (is_empty)
		check_ok(cuGraphAddEmptyNode(&node, body, NULL, 0));
	else
		add_store(body, NULL, 0, device_memory(4), 1);
	check_ok(cuGraphLaunch(exec_new(graph), NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST(a_loop_of_kernels_that_runs_too_long_is_ended)
{
	check_time_limit(false);
}

TEST(an_empty_loop_that_runs_too_long_is_ended)
{
	check_time_limit(true);
}

/* A loop in a loop, the inner one without end, and its context ends. */
TEST(nested_loops_end_with_their_context)
{
	CUgraph graph, body, inner;
	CUcontext context;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	graph = loop_new(&body);
	check_ok(conditional_add(
		body, handle_new(graph), CU_GRAPH_COND_TYPE_WHILE, 1, &inner));
	add_store(inner, NULL, 0, device_memory(4), 1);
	check_ok(conditional_add(
		inner, handle_new(inner), CU_GRAPH_COND_TYPE_WHILE, 1, &body));
	add_store(body, NULL, 0, device_memory(4), 1);
	check_ok(cuGraphLaunch(exec_new(graph), NULL));
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	check_ok(cuCtxDestroy(context));
}

/* A kernel in one loop fails while others go round, with kernels or with nothing. */
static void check_fault(CUgraphConditionalNodeType type, bool is_empty)
{
	CUgraph graph, body, inner, other;
	CUcontext context;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	graph = loop_new(&body);
	check_ok(conditional_add(body, handle_new(graph), type, 1, &inner));
	check_ok(conditional_add(
		graph, handle_new(graph), CU_GRAPH_COND_TYPE_WHILE, 1, &other));
	if (!is_empty)
		add_store(other, NULL, 0, device_memory(4), 1);
	add_store(inner, NULL, 0, 16, 1);
	check_ok(cuGraphLaunch(exec_new(graph), NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuCtxDestroy(context));
}

TEST(a_fault_in_a_branch_ends_all_loops)
{
	check_fault(CU_GRAPH_COND_TYPE_IF, false);
}

TEST(a_fault_in_a_loop_ends_all_loops)
{
	check_fault(CU_GRAPH_COND_TYPE_WHILE, true);
}

TEST(conditional_nodes_have_limits)
{
	CUgraph graph, body;
	CUresult result = CUDA_SUCCESS;
	unsigned int depth = 0, n;

	context_new();
	graph = body = graph_new();
	while (!result && depth < 100) {
		result = conditional_add(
			body, handle_new(graph), CU_GRAPH_COND_TYPE_IF, 1, &body);
		depth += !result;
	}
	check_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(depth, 32);
	check_ok(cuGraphDestroy(graph));
	graph = graph_new();
	check_cu(conditional_add(graph, handle_new(graph), CU_GRAPH_COND_TYPE_SWITCH,
			 1025, &body),
		CUDA_ERROR_OUT_OF_MEMORY);
	/* Each body counts, whether it has nodes or not. */
	for (n = 0; n < 1000; n++) {
		result = conditional_add(
			graph, handle_new(graph), CU_GRAPH_COND_TYPE_SWITCH, 1024, &body);
		if (result)
			break;
	}
	check_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(n, 127);
	check_ok(cuGraphDestroy(graph));
}

TEST(a_graph_has_a_largest_number_of_nodes)
{
	CUresult result = CUDA_SUCCESS;
	CUgraphNode node = NULL;
	CUgraph graph;
	size_t n = 0;

	context_new();
	graph = graph_new();
	for (; n < 1000000 && !result; n += !result)
		result = cuGraphAddEmptyNode(&node, graph, &node, n ? 1 : 0);
	check_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(n, 1 << 18);
	launch_and_wait(exec_new(graph), NULL);
	check_ok(cuGraphDestroy(graph));
}

TEST(work_of_two_contexts_is_reported_with_its_node)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { 0 };
	CUDA_MEMSET_NODE_PARAMS fill = { .elementSize = 4, .width = 1, .height = 1 };
	CUgraphConditionalHandle handle;
	CUgraph graph, body;
	CUgraphNode node;
	CUgraphExec exec;
	CUcontext one, other;

	one = context_new();
	graph = graph_new();
	handle = handle_new(graph);
	check_ok(conditional_add(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, &body));
	fill.dst = device_memory(4);
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	check_ok(cuGraphAddMemsetNode(&node, body, NULL, 0, &fill, other));
	check_cu(cuGraphInstantiateWithParams(&exec, graph, &params),
		CUDA_ERROR_NOT_SUPPORTED);
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
	check(params.hErrNode_out == node);
	/* The condition is another context's, too. */
	check_cu(conditional_add(
			 graph, handle_new(graph), CU_GRAPH_COND_TYPE_IF, 1, &body),
		CUDA_SUCCESS);
	check_ok(cuCtxSetCurrent(one));
	handle = handle_new(graph);
	check_ok(cuCtxSetCurrent(other));
	check_cu(conditional_add(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, &body),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphInstantiateWithParams(NULL, graph, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
	check(!params.hErrNode_out);
}

TEST(an_update_says_what_differs)
{
	CUlaunchAttributeValue value = { .priority = -3 };
	CUgraphExecUpdateResultInfo info = { 0 };
	CUDA_KERNEL_NODE_PARAMS kernel_params;
	CUgraph graph, next;
	CUfunction foreign;
	CUgraphNode store;
	CUdeviceptr word;
	CUcontext other;
	CUgraphExec exec;
	CUmodule module;

	context_new();
	word = device_memory(4);
	graph = graph_new();
	next = graph_new();
	add_store(graph, NULL, 0, word, 1);
	store = add_store(next, NULL, 0, word, 2);
	check_ok(cuGraphKernelNodeSetAttribute(
		store, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	exec = exec_new(graph);
	check_ok(cuGraphExecUpdate(exec, next, &info));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
	check(info.errorNode == store);
	check_ok(cuGraphDestroyNode(store));
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&foreign, module, "store"));
	kernel_params = one_thread(foreign, (void *[]){ &word, &value });
	check_ok(cuGraphAddKernelNode(&store, next, NULL, 0, &kernel_params));
	check_cu(cuGraphExecUpdate(exec, next, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
	check(info.errorNode == store);
	info.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	check_cu(cuGraphExecUpdate(exec, NULL, &info), CUDA_ERROR_INVALID_VALUE);
	check_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
}

/* Nodes in nodes, changed while they run, and taken away then. */
static void loop_and_die(CUfunction set, CUdeviceptr word)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph graphs[2], body, inner;
	CUgraphConditionalHandle handle;
	unsigned int value = 0;
	void *params[] = { &handle, &value };
	CUDA_KERNEL_NODE_PARAMS node_params = one_thread(set, params);
	CUgraphNode node, store;
	CUgraphExec exec;

	for (int i = 0; i < 2; i++) {
		graphs[i] = graph_new();
		handle = handle_new(graphs[i]);
		check_ok(conditional_add(
			graphs[i], handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body));
		check_ok(cuGraphAddKernelNode(&node, body, NULL, 0, &node_params));
		handle = handle_new(body);
		check_ok(conditional_add(
			body, handle, CU_GRAPH_COND_TYPE_SWITCH, 4, &inner));
		store = add_store(body, &node, 1, word, i);
	}
	exec = exec_new(graphs[1]);
	check_ok(cuGraphLaunch(exec, NULL));
	check_ok(cuGraphKernelNodeGetParams(store, &node_params));
	check_ok(cuGraphExecKernelNodeSetParams(exec, store, &node_params));
	check_ok(cuGraphLaunch(exec, NULL));
	check_ok(cuGraphExecUpdate(exec, graphs[0], &info));
	check_cu(conditional_add(graphs[0], handle, CU_GRAPH_COND_TYPE_IF, 1, &body),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroyNode(node));
	check_ok(cuGraphDestroy(graphs[0]));
	check_ok(cuGraphLaunch(exec, NULL));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graphs[1]));
	check_ok(cuCtxSynchronize());
}

TEST(conditional_nodes_leave_nothing)
{
	size_t before, after;
	CUdeviceptr word;
	CUfunction set;
	CUmodule module;

	context_new();
	word = device_memory(4);
	check_ok(cuModuleLoadData(&module, setting_ptx));
	check_ok(cuModuleGetFunction(&set, module, "set"));
	for (int i = 0; i < 20; i++)
		loop_and_die(set, word);
	if (!__sanitizer_get_current_allocated_bytes)
		test_skip("bytes are counted in a build with the address sanitizer");
	before = __sanitizer_get_current_allocated_bytes();
	for (int i = 0; i < ROUNDS; i++)
		loop_and_die(set, word);
	after = __sanitizer_get_current_allocated_bytes();
	check(after <= before + KEPT);
}
