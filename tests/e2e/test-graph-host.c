/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: functions of the program in graphs, and user objects
 */

#include <unistd.h>

#include "graph.h"

/* What a function of the program saw: the word that the device wrote before it. */
struct seen {
	unsigned int *word;
	unsigned int last;
	unsigned int n;
};

static void see(void *data)
{
	struct seen *seen = data;

	seen->last = *seen->word;
	__atomic_fetch_add(&seen->n, 1, __ATOMIC_RELEASE);
}

static void see_and_double(void *data)
{
	struct seen *seen = data;

	see(data);
	*seen->word *= 2;
}

static unsigned int *pinned_word(void)
{
	void *word = NULL;

	check_ok(cuMemHostAlloc(&word, 4, 0));
	*(unsigned int *)word = 0;
	return word;
}

static CUgraphNode add_copy(CUgraph graph, const CUgraphNode *before, size_t n,
	CUdeviceptr to, CUdeviceptr from, CUcontext context)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = to,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
	CUgraphNode node = NULL;

	check_ok(cuGraphAddMemcpyNode(&node, graph, before, n, &copy, context));
	return node;
}

static CUgraphNode add_function(
	CUgraph graph, const CUgraphNode *before, CUhostFn fn, void *data)
{
	const CUDA_HOST_NODE_PARAMS params = { fn, data };
	CUgraphNode node = NULL;

	check_ok(cuGraphAddHostNode(&node, graph, before, before ? 1 : 0, &params));
	check(node);
	return node;
}

/* The word is copied to the program, doubled by it, and copied back. */
TEST(a_host_node_runs_between_its_neighbours_at_each_launch)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	struct seen seen = { .word = pinned_word() };
	CUdeviceptr word = (CUdeviceptr)(uintptr_t)seen.word;
	CUDA_HOST_NODE_PARAMS told = {};
	CUstream stream = stream_new();
	CUgraphNodeType type;
	CUgraphNode first, host;
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuGraphCreate(&graph, 0));
	first = add_copy(graph, NULL, 0, word, x, fixture.context);
	host = add_function(graph, &first, see_and_double, &seen);
	add_copy(graph, &host, 1, x, word, fixture.context);
	check_ok(cuGraphNodeGetType(host, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_HOST);
	check_ok(cuGraphHostNodeGetParams(host, &told));
	check(told.fn == see_and_double && told.userData == &seen);
	exec = exec_new(graph);
	check_ok(cuMemsetD32(x, 3, 1));
	for (unsigned int i = 0; i < 20; i++) {
		launch_and_wait(exec, stream);
		check_eq(seen.n, i + 1);
		check_eq(seen.last, 3u << i);
		check_eq(device_word(x), 6u << i);
	}
	/* Without the graph the executable one still has the function. */
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec, stream);
	check_eq(seen.n, 21);
	check_ok(cuGraphExecDestroy(exec));
}

TEST(launches_in_flight_have_their_functions_called)
{
	struct fixture fixture = fixture_new();
	struct seen seen = { .word = pinned_word() };
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuGraphCreate(&graph, 0));
	add_function(graph, NULL, see, &seen);
	exec = exec_new(graph);
	for (int i = 0; i < 50; i++)
		check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuStreamSynchronize(stream));
	check_eq(seen.n, 50);
}

TEST(functions_of_host_nodes_are_replaced)
{
	struct fixture fixture = fixture_new();
	struct seen one = { .word = pinned_word() }, other = { .word = one.word };
	CUDA_HOST_NODE_PARAMS params = { see, &other }, told;
	CUgraphExecUpdateResultInfo info;
	CUstream stream = stream_new();
	CUgraph graph, clone;
	CUgraphExec exec;
	CUgraphNode node;

	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuGraphCreate(&graph, 0));
	node = add_function(graph, NULL, see, &one);
	exec = exec_new(graph);
	check_ok(cuGraphClone(&clone, graph));
	/* In the executable graph alone, with a launch in flight. */
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuGraphExecHostNodeSetParams(exec, node, &params));
	check_ok(cuGraphHostNodeGetParams(node, &told));
	check(told.userData == &one);
	launch_and_wait(exec, stream);
	check(one.n == 1 && other.n == 1);
	for (int i = 0; i < 200; i++) {
		params.userData = i % 2 ? &one : &other;
		check_ok(cuGraphExecHostNodeSetParams(exec, node, &params));
		check_ok(cuGraphLaunch(exec, stream));
	}
	check_ok(cuStreamSynchronize(stream));
	check(one.n == 101 && other.n == 101);
	/* In the graph, and from there. */
	params.userData = &other;
	check_ok(cuGraphHostNodeSetParams(node, &params));
	check_ok(cuGraphHostNodeGetParams(node, &told));
	check(told.userData == &other);
	check_ok(cuGraphExecUpdate(exec, graph, &info));
	launch_and_wait(exec, stream);
	check(one.n == 101 && other.n == 102);
	/* The clone has kept the first. */
	launch_and_wait(exec_new(clone), stream);
	check(one.n == 102 && other.n == 102);
	check_ok(cuGraphDestroyNode(node));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(clone));
}

TEST(a_captured_function_is_called_at_each_launch)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	struct seen seen = { .word = pinned_word() };
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(launch_step(step, x, 1, stream));
	check_ok(cuMemcpyDtoHAsync(seen.word, x, 4, stream));
	check_ok(cuLaunchHostFunc(stream, see, &seen));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 3);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	check_eq(seen.n, 0);
	launch_and_wait(exec, stream);
	check(seen.n == 1 && seen.last == 1);
	launch_and_wait(exec, stream);
	check(seen.n == 2 && seen.last == 4);
	check_ok(cuGraphExecDestroy(exec));
	/* The stream itself calls functions again. */
	check_ok(cuLaunchHostFunc(stream, see, &seen));
	check_ok(cuStreamSynchronize(stream));
	check_eq(seen.n, 3);
}

/* As many as fit no table, had each kept its place. */
TEST(many_functions_come_and_go)
{
	struct fixture fixture = fixture_new();
	struct seen seen = { .word = pinned_word() };
	CUstream stream = stream_new();
	unsigned int n = 0;

	check_ok(cuCtxSetCurrent(fixture.context));
	for (int i = 0; i < 300; i++) {
		CUgraphExec exec;
		CUgraph graph;

		check_ok(cuGraphCreate(&graph, 0));
		for (int j = 0; j < 300; j++, n++)
			add_function(graph, NULL, see, &seen);
		if (i % 50) {
			check_ok(cuGraphDestroy(graph));
			n -= 300;
			continue;
		}
		exec = exec_new(graph);
		check_ok(cuGraphDestroy(graph));
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuGraphExecDestroy(exec));
	}
	check_ok(cuStreamSynchronize(stream));
	check_eq(seen.n, n);
}

static void count_end(void *data)
{
	__atomic_fetch_add((unsigned int *)data, 1, __ATOMIC_RELEASE);
}

/* Destructors are called some time after the last reference. */
static void await_ends(const unsigned int *n_ends, unsigned int n)
{
	while (__atomic_load_n(n_ends, __ATOMIC_ACQUIRE) < n)
		usleep(100);
	check_eq(*n_ends, n);
}

static CUuserObject object_new(unsigned int *n_ends, unsigned int n)
{
	CUuserObject object = NULL;

	check_ok(cuUserObjectCreate(
		&object, n_ends, count_end, n, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	check(object);
	return object;
}

TEST(a_user_object_ends_with_its_last_reference)
{
	struct fixture fixture = fixture_new();
	unsigned int n_ends = 0, n_others = 0;
	CUuserObject object, other;

	check_ok(cuCtxSetCurrent(fixture.context));
	object = object_new(&n_ends, 2);
	check_ok(cuUserObjectRetain(object, 3));
	check_ok(cuUserObjectRelease(object, 4));
	/* One that ends first, so that an early end of the first would show. */
	other = object_new(&n_others, 1);
	check_ok(cuUserObjectRelease(other, 1));
	await_ends(&n_others, 1);
	check_eq(n_ends, 0);
	check_ok(cuUserObjectRelease(object, 1));
	await_ends(&n_ends, 1);
	check_cu(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuUserObjectRelease(other, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(graphs_keep_user_objects)
{
	struct fixture fixture = fixture_new();
	unsigned int n_ends = 0, n_others = 0;
	CUgraphExecUpdateResultInfo info;
	CUstream stream = stream_new();
	CUuserObject object, other;
	CUgraph graph, clone, next;
	CUgraphExec exec;

	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuGraphCreate(&graph, 0));
	object = object_new(&n_ends, 1);
	check_ok(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	check_ok(cuGraphRetainUserObject(graph, object, 2, 0));
	check_cu(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphReleaseUserObject(graph, object, 2));
	check_ok(cuGraphClone(&clone, graph));
	check_ok(cuGraphDestroy(graph));
	exec = exec_new(clone);
	check_ok(cuGraphDestroy(clone));
	check_ok(cuGraphLaunch(exec, stream));
	/* An update takes over the objects of the other graph. */
	check_ok(cuGraphCreate(&next, 0));
	other = object_new(&n_others, 1);
	check_ok(cuGraphRetainUserObject(next, other, 1, CU_GRAPH_USER_OBJECT_MOVE));
	check_eq(n_ends, 0);
	check_ok(cuGraphExecUpdate(exec, next, &info));
	await_ends(&n_ends, 1);
	check_ok(cuGraphDestroy(next));
	check_eq(n_others, 0);
	check_ok(cuGraphExecDestroy(exec));
	await_ends(&n_others, 1);
	check_cu(cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
}

/* A launch under way needs what its graph keeps. */
TEST(a_user_object_outlives_launches_in_flight)
{
	struct fixture fixture = fixture_new();
	unsigned int n_ends = 0, *flag = pinned_word();
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphRetainUserObject(
		graph, object_new(&n_ends, 1), 1, CU_GRAPH_USER_OBJECT_MOVE));
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuStreamWaitValue32(
		stream, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuGraphExecDestroy(exec));
	usleep(20000);
	check_eq(n_ends, 0);
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	check_ok(cuStreamSynchronize(stream));
	await_ends(&n_ends, 1);
}

TEST(wrong_functions_and_objects_are_refused)
{
	struct fixture fixture = fixture_new();
	CUDA_HOST_NODE_PARAMS params = {};
	unsigned int n_ends = 0;
	CUuserObject object;
	CUgraphNode node, empty;
	CUgraph graph;

	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuGraphCreate(&graph, 0));
	check_cu(cuGraphAddHostNode(&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	check_cu(cuGraphHostNodeGetParams(empty, &params), CUDA_ERROR_INVALID_VALUE);
	params.fn = see;
	check_cu(cuGraphHostNodeSetParams(empty, &params), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuUserObjectCreate(
			 &object, NULL, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuUserObjectCreate(&object, &n_ends, count_end, 0,
			 CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuUserObjectCreate(&object, &n_ends, count_end, 1, 0),
		CUDA_ERROR_INVALID_VALUE);
	object = object_new(&n_ends, 1);
	check_cu(cuUserObjectRetain(object, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphRetainUserObject(graph, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuUserObjectRelease(object, 1));
	await_ends(&n_ends, 1);
}
