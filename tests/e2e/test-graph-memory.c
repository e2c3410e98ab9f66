/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory that graphs allocate, in nodes and in captures
 */

#include "graph.h"

#define BYTES (1u << 20)

/* Skips where there are no pools. */
static struct fixture begin(void)
{
	struct fixture fixture = fixture_new();
	int is_supported = 0;

	check_ok(cuDeviceGetAttribute(
		&is_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
	if (!is_supported)
		test_skip("the device has no memory pools");
	return fixture;
}

static uint64_t attribute(CUgraphMem_attribute attribute)
{
	cuuint64_t value = 77;

	check_ok(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

static CUgraph graph_new(void)
{
	CUgraph graph = NULL;

	check_ok(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphNode add_alloc(CUgraph graph, size_t size, CUdeviceptr *memory)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		},
		.bytesize = size,
	};
	CUgraphNode node = NULL;

	check_ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	check(node && params.dptr);
	*memory = params.dptr;
	return node;
}

static CUgraphNode add_fill(CUgraph graph, const CUgraphNode *before, CUdeviceptr memory,
	unsigned int value, CUcontext context)
{
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory,
		.value = value,
		.elementSize = 4,
		.width = BYTES / 4,
		.height = 1,
	};
	CUgraphNode node = NULL;

	check_ok(cuGraphAddMemsetNode(&node, graph, before, 1, &fill, context));
	return node;
}

static CUgraphNode add_copy(CUgraph graph, const CUgraphNode *before, CUdeviceptr to,
	CUdeviceptr from, CUcontext context)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
	CUgraphNode node = NULL;

	check_ok(cuGraphAddMemcpyNode(&node, graph, before, 1, &copy, context));
	return node;
}

TEST(a_graph_allocates_and_frees_at_each_launch)
{
	struct fixture fixture = begin();
	CUDA_MEM_ALLOC_NODE_PARAMS told = {};
	CUdeviceptr memory, out = memory_new(4), freed = 0;
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	CUgraphNode alloc, node, last;
	CUgraphNodeType type;
	CUgraphExec exec;

	alloc = add_alloc(graph, BYTES, &memory);
	node = add_fill(graph, &alloc, memory, 5, fixture.context);
	node = add_copy(graph, &node, out, memory + BYTES - 4, fixture.context);
	check_ok(cuGraphAddMemFreeNode(&last, graph, &node, 1, memory));
	check_eq(count_nodes(graph), 4);
	check_ok(cuGraphNodeGetType(alloc, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	check_ok(cuGraphNodeGetType(last, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
	check_ok(cuGraphMemAllocNodeGetParams(alloc, &told));
	check(told.dptr == memory && told.bytesize == BYTES);
	check_ok(cuGraphMemFreeNodeGetParams(last, &freed));
	check_eq(freed, memory);
	check(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= BYTES);
	exec = exec_new(graph);
	for (int i = 0; i < 10; i++) {
		check_ok(cuMemsetD32(out, 0, 1));
		launch_and_wait(exec, stream);
		check_eq(device_word(out), 5);
	}
	/* It is the graph's: the program has nothing to free. */
	check_cu(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, stream);
	check_ok(cuGraphExecDestroy(exec));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	check(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= BYTES);
	check_ok(cuDeviceSetGraphMemAttribute(
		0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &(cuuint64_t){ 0 }));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0);
	check_ok(cuDeviceGraphMemTrim(0));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
	check(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) >= BYTES);
}

TEST(what_a_launch_has_allocated_is_freed_before_the_next)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new();
	CUgraph graph = graph_new(), freeing = graph_new();
	CUdeviceptr memory;
	CUgraphNode alloc, node;
	CUgraphExec exec, frees;

	alloc = add_alloc(graph, BYTES, &memory);
	add_fill(graph, &alloc, memory, 9, fixture.context);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(memory + BYTES - 4), 9);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFreeAsync(memory, stream));
	check_cu(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec, stream);
	check_ok(cuMemFree(memory));
	launch_and_wait(exec, stream);
	/* By another graph. */
	check_ok(cuGraphAddMemFreeNode(&node, freeing, NULL, 0, memory));
	frees = exec_new(freeing);
	launch_and_wait(frees, stream);
	check_cu(cuGraphLaunch(frees, stream), CUDA_ERROR_INVALID_VALUE);
	launch_and_wait(exec, stream);
	/* It stays after the graph, until it is freed. */
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_eq(device_word(memory), 9);
	check(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= BYTES);
	check_ok(cuMemFreeAsync(memory, stream));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}

TEST(launches_allocate_after_the_graph_is_destroyed)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	CUdeviceptr memory;
	CUgraphNode alloc;
	CUgraphExec exec;

	alloc = add_alloc(graph, BYTES, &memory);
	add_fill(graph, &alloc, memory, 7, fixture.context);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, stream);
	check_eq(device_word(memory), 7);
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFree(memory));
	launch_and_wait(exec, stream);
	check_ok(cuMemFree(memory));
	check_ok(cuGraphExecDestroy(exec));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}

TEST(a_launch_may_free_what_the_last_has_allocated)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	CUgraphExec exec = NULL;
	CUdeviceptr memory;
	CUgraphNode alloc;

	alloc = add_alloc(graph, BYTES, &memory);
	add_fill(graph, &alloc, memory, 3, fixture.context);
	check_ok(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 5; i++)
		launch_and_wait(exec, stream);
	check_eq(device_word(memory), 3);
	check_ok(cuMemFree(memory));
}

/* Memory of a pool that a graph frees. */
TEST(a_graph_frees_memory_of_a_pool)
{
	CUdeviceptr memory = 0;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	begin();
	stream = stream_new();
	graph = graph_new();
	check_ok(cuMemAllocAsync(&memory, BYTES, stream));
	check_ok(cuGraphAddMemFreeNode(&node, graph, NULL, 0, memory));
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_cu(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphExecDestroy(exec));
}

TEST(captures_allocate_and_free)
{
	struct fixture fixture = begin();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = 0, out = memory_new(4);
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(cuMemAllocAsync(&memory, BYTES, stream));
	check_ok(cuMemsetD32Async(memory, 2, BYTES / 4, stream));
	check_ok(launch_step(step, memory, 2, stream));
	check_ok(cuMemcpyDtoDAsync(out, memory, 4, stream));
	check_ok(cuMemFreeAsync(memory, stream));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 5);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	for (int i = 0; i < 5; i++) {
		check_ok(cuMemsetD32(out, 0, 1));
		launch_and_wait(exec, stream);
		check_eq(device_word(out), 22);
	}
	check_ok(cuGraphExecDestroy(exec));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	/* What a capture that failed has allocated is given back. */
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(cuMemAllocAsync(&memory, BYTES, stream));
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(cuMemAllocAsync(&memory, BYTES, stream),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	capture_end_in_vain(stream);
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	/* The stream itself allocates again. */
	check_ok(cuMemAllocAsync(&memory, BYTES, stream));
	check_ok(cuMemFreeAsync(memory, stream));
}

TEST(graphs_with_memory_are_not_copied)
{
	struct fixture fixture = begin();
	CUDA_MEM_ALLOC_NODE_PARAMS params = {};
	CUgraph graph = graph_new(), other = graph_new(), empty = graph_new(), clone;
	CUgraphNodeParams child = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec, second, holder;
	CUgraphNode alloc, node, freed;
	CUdeviceptr memory, told;

	check_ok(cuCtxSetCurrent(fixture.context));
	alloc = add_alloc(graph, BYTES, &memory);
	check_ok(cuGraphAddMemFreeNode(&freed, graph, &alloc, 1, memory));
	check_cu(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, memory),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddMemFreeNode(&node, graph, NULL, 0, memory + 512),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphAddChildGraphNode(&node, other, NULL, 0, graph),
		CUDA_ERROR_NOT_SUPPORTED);
	child.graph.graph = graph;
	check_cu(cuGraphAddNode(&node, other, NULL, NULL, 0, &child),
		CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuGraphAddChildGraphNode(&node, other, NULL, 0, empty));
	holder = exec_new(other);
	check_cu(cuGraphExecChildGraphNodeSetParams(holder, node, graph),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphDestroyNode(alloc), CUDA_ERROR_NOT_SUPPORTED);
	exec = exec_new(graph);
	check_cu(
		cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphExecUpdate(exec, graph, &info), CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuGraphExecDestroy(exec));
	exec = exec_new(graph);
	check_cu(cuGraphMemAllocNodeGetParams(freed, &params), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphMemFreeNodeGetParams(alloc, &told), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.poolProps.location.id = 77;
	params.bytesize = 64;
	check_cu(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGraphMemTrim(77), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGetGraphMemAttribute(0, 99, &told), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceSetGraphMemAttribute(
			 0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &(cuuint64_t){ 0 }),
		CUDA_ERROR_INVALID_VALUE);
}

/* The graph would become a child of the captured one. */
TEST(graphs_with_memory_are_not_launched_into_a_capture)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new();
	CUgraph graph = graph_new(), captured;
	CUdeviceptr memory;
	CUgraphNode alloc;
	CUgraphExec exec;

	alloc = add_alloc(graph, BYTES, &memory);
	add_fill(graph, &alloc, memory, 3, fixture.context);
	exec = exec_new(graph);
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_cu(cuGraphLaunch(exec, stream), CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuStreamEndCapture(stream, &captured));
	check_eq(count_nodes(captured), 0);
	/* It has allocated nothing. */
	launch_and_wait(exec, stream);
	check_eq(device_word(memory), 3);
	check_ok(cuMemFree(memory));
}

/* The context of the launch is not the one that gives the memory back. */
TEST(memory_is_given_back_after_launches_of_another_context)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new();
	CUgraph graph = graph_new();
	CUdeviceptr memory;
	CUgraphNode alloc;
	CUgraphExec exec;
	CUcontext other;

	alloc = add_alloc(graph, BYTES, &memory);
	alloc = add_fill(graph, &alloc, memory, 3, fixture.context);
	check_ok(cuGraphAddMemFreeNode(&alloc, graph, &alloc, 1, memory));
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	check_ok(cuCtxSetCurrent(fixture.context));
	for (int i = 0; i < 10; i++)
		check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuCtxSetCurrent(other));
	check_ok(cuGraphExecDestroy(exec));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	check_ok(cuCtxDestroy(other));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuStreamQuery(stream));
}

/* Of every kind, through one call. */
TEST(nodes_are_added_by_one_call_for_all)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	CUgraphNode alloc, freed;
	CUgraph graph;
	CUstream stream;

	begin();
	graph = graph_new();
	stream = stream_new();
	params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.alloc.bytesize = 4096;
	check_ok(cuGraphAddNode(&alloc, graph, NULL, NULL, 0, &params));
	check(params.alloc.dptr);
	params = (CUgraphNodeParams){
		.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
		.free = { params.alloc.dptr },
	};
	check_ok(cuGraphAddNode(&freed, graph, &alloc, NULL, 1, &params));
	launch_and_wait(exec_new(graph), stream);
	check_ok(cuGraphDestroy(graph));
}

/* A child with such nodes cannot be copied, but moved; its memory is the graph's then. */
TEST(a_child_that_is_moved_brings_its_memory)
{
	struct fixture fixture = begin();
	CUgraph graph = graph_new(), child = graph_new(), late = graph_new();
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUdeviceptr own, memory, out = memory_new(8);
	CUgraphNode first, node, added, freed;
	CUstream stream = stream_new();
	CUgraphNodeType type;
	CUgraphExec exec;

	first = add_alloc(graph, BYTES, &own);
	added = add_alloc(child, BYTES, &memory);
	node = add_fill(child, &added, memory, 7, fixture.context);
	node = add_copy(child, &node, out, memory, fixture.context);
	check_ok(cuGraphAddMemFreeNode(&freed, child, &node, 1, memory));
	params.graph.graph = child;
	check_cu(cuGraphAddNode(&node, graph, &first, NULL, 1, &params),
		CUDA_ERROR_NOT_SUPPORTED);
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	check_ok(cuGraphAddNode(&node, graph, &first, NULL, 1, &params));
	check_ok(cuGraphNodeGetType(added, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	check_cu(cuGraphDestroyNode(node), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuGraphAddMemFreeNode(&freed, child, NULL, 0, own),
		CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuGraphAddMemFreeNode(&freed, graph, &node, 1, own));
	exec = exec_new(graph);
	for (int i = 0; i < 3; i++) {
		check_ok(cuMemsetD32(out, 0, 1));
		launch_and_wait(exec, stream);
		check_eq(device_word(out), 7);
	}
	/* An executable graph that is there would not have what is moved now. */
	add_alloc(late, BYTES, &memory);
	params.graph.graph = late;
	check_cu(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
		CUDA_ERROR_NOT_SUPPORTED);
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 3 * BYTES);
	check_ok(cuGraphDestroy(late));
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, stream);
	check_ok(cuGraphExecDestroy(exec));
	check_eq(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}
