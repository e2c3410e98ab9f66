/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: destroyed objects are freed
 */

#include "graph.h"

/* Memory that queues and threads may retain for their peak use. */
#define KEPT (32 << 10)

/* So often that losing the smallest of things shows above that. */
#define ROUNDS 600

/* malloc's own count is not exact: threads keep what others will reuse. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	if (!__sanitizer_get_current_allocated_bytes)
		test_skip("bytes are counted in a build with the address sanitizer");
	return __sanitizer_get_current_allocated_bytes();
}

/* Uses everything once, and leaves some of it for the context to take along. */
static void live_and_die(bool with_fault)
{
	unsigned char params[416] = { 0 };
	size_t size = sizeof(params);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, params,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };
	CUcontext context;
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUfunction many;
	CUdeviceptr address;
	CUstream stream;
	CUevent event;

	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernel(&kernel, library, "many"));
	check_ok(cuModuleGetFunction(&many, module, "many"));
	check_ok(cuMemAlloc(&address, 1000));
	check_ok(cuMemsetD8(address, 0, 1000));
	memcpy(params + 8, &address, sizeof(address));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, 0));
	for (int i = 0; i < 10; i++) {
		check_ok(cuLaunchKernel(many, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
		check_ok(cuLaunchKernel(
			(CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
		check_ok(cuEventRecord(event, stream));
		check_ok(cuStreamWaitEvent(NULL, event, 0));
	}
	if (with_fault) {
		memset(params + 8, 0, 8);
		cuLaunchKernel(many, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
		for (int i = 0; i < 10; i++) {
			cuLaunchKernel(many, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
			cuEventRecord(event, stream);
		}
		check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	} else {
		check_ok(cuStreamDestroy(stream));
		check_ok(cuEventDestroy(event));
		check_ok(cuMemFree(address));
		check_ok(cuModuleUnload(module));
	}
	cuLibraryUnload(library);
	check_ok(cuCtxDestroy(context));
}

TEST(contexts_and_all_that_is_in_them_leave_nothing)
{
	size_t before, after, free_before, free_after, total;

	setenv("VGPU_LOG", "none", 1);
	context_new();
	for (int i = 0; i < 20; i++)
		live_and_die(i % 2);
	check_ok(cuMemGetInfo(&free_before, &total));
	before = allocated();
	for (int i = 0; i < ROUNDS; i++)
		live_and_die(i % 2);
	after = allocated();
	check_ok(cuMemGetInfo(&free_after, &total));
	check_eq(free_before, free_after);
	if (after > before + KEPT)
		test_fail(__FILE__, __LINE__, "%zu bytes have become %zu", before, after);
}

TEST(images_that_fail_to_load_leave_nothing)
{
	static const char broken[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				     ".global .align 4 .b8 table[4096];\n"
				     ".visible .entry f() { add.s32 %r1, %r2, ; }\n";
	size_t before, after, free_before, free_after, total;
	CUlibrary library;
	CUmodule module;

	setenv("VGPU_LOG", "none", 1);
	context_new();
	check_cu(cuModuleLoadData(&module, broken), CUDA_ERROR_INVALID_PTX);
	check_ok(cuMemGetInfo(&free_before, &total));
	before = allocated();
	for (int i = 0; i < ROUNDS; i++) {
		check_cu(cuModuleLoadData(&module, broken), CUDA_ERROR_INVALID_PTX);
		check_cu(
			cuLibraryLoadData(&library, broken, NULL, NULL, 0, NULL, NULL, 0),
			CUDA_ERROR_INVALID_PTX);
	}
	after = allocated();
	check_ok(cuMemGetInfo(&free_after, &total));
	check_eq(free_before, free_after);
	if (after > before + KEPT)
		test_fail(__FILE__, __LINE__, "%zu bytes have become %zu", before, after);
}

/* Captures a fork that is joined, or one that is not. */
static CUgraph capture(CUstream one, CUstream two, CUdeviceptr words, bool is_joined)
{
	CUgraph graph = NULL;
	CUevent event;

	check_ok(cuEventCreate(&event, 0));
	check_ok(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_ok(launch_store(words, 1, one));
	check_ok(cuEventRecord(event, one));
	check_ok(cuStreamWaitEvent(two, event, 0));
	check_ok(cuMemcpyDtoDAsync(words + 4, words, 4, two));
	check_ok(cuEventRecord(event, two));
	if (is_joined)
		check_ok(cuStreamWaitEvent(one, event, 0));
	check_cu(cuStreamEndCapture(one, &graph),
		is_joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	check_ok(cuEventDestroy(event));
	return graph;
}

/* A graph with children and events, changed while it runs, and taken away then. */
static void graph_and_die(CUstream one, CUstream two, CUdeviceptr words, CUevent event)
{
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraph graph, child, clone;
	CUlaunchAttributeValue value = { .priority = 1 };
	CUgraphNode node, store;
	CUgraphExec exec;

	check(!capture(one, two, words, false));
	child = capture(one, two, words, true);
	graph = graph_new();
	store = add_store(graph, NULL, 0, words, 2);
	check_ok(cuGraphKernelNodeSetAttribute(
		store, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_ok(cuGraphAddChildGraphNode(&node, graph, &store, 1, child));
	check_ok(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
	check_ok(cuGraphAddEmptyNode(&node, graph, &node, 1));
	check_ok(cuGraphClone(&clone, graph));
	exec = exec_new(graph);
	check_ok(cuGraphLaunch(exec, one));
	check_ok(cuGraphKernelNodeGetParams(store, &params));
	check_ok(cuGraphExecKernelNodeSetParams(exec, store, &params));
	check_ok(cuGraphLaunch(exec, two));
	check_ok(cuGraphExecUpdate(exec, clone, &info));
	check_cu(cuGraphExecUpdate(exec, child, &info),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	check_ok(cuGraphDestroyNode(node));
	check_ok(cuGraphLaunch(exec, one));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphDestroy(child));
	check_ok(cuGraphDestroy(clone));
	/* One that is destroyed with its stream. */
	check_ok(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_ok(launch_store(words, 1, one));
	check_ok(cuEventRecord(event, one));
	check_ok(cuStreamDestroy(one));
	check_ok(cuStreamDestroy(two));
	/* Work still in flight is not a leak. */
	check_ok(cuCtxSynchronize());
}

TEST(graphs_and_captures_leave_nothing)
{
	CUdeviceptr words;
	size_t before, after;
	CUevent event;

	context_new();
	words = device_memory(64);
	check_ok(cuEventCreate(&event, 0));
	for (int i = 0; i < 20; i++)
		graph_and_die(stream_new(), stream_new(), words, event);
	before = allocated();
	for (int i = 0; i < ROUNDS; i++)
		graph_and_die(stream_new(), stream_new(), words, event);
	after = allocated();
	if (after > before + KEPT)
		test_fail(__FILE__, __LINE__, "%zu bytes have become %zu", before, after);
}
