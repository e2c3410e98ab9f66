/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: capture of streams
 */

#include <pthread.h>

#include "graph.h"

static CUgraph end_capture(CUstream stream)
{
	CUgraph graph = NULL;

	check_ok(cuStreamEndCapture(stream, &graph));
	check(graph);
	return graph;
}

static CUstreamCaptureStatus status(CUstream stream)
{
	CUstreamCaptureStatus status = 99;

	check_ok(cuStreamIsCapturing(stream, &status));
	return status;
}

static void check_invalid_end(CUstream stream)
{
	CUgraph graph = (CUgraph)1;

	check_eq(status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	check_cu(cuStreamEndCapture(stream, &graph),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	check(!graph);
	check_eq(status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void begin(CUstream stream)
{
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static void ignore(void *data)
{
}

static void ignore_callback(CUstream stream, CUresult status, void *data)
{
}

TEST(captured_work_runs_when_the_graph_is_launched)
{
	unsigned int *words;
	CUdeviceptr address;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	context_new();
	stream = stream_new();
	words = pinned_memory(4096);
	address = device_memory(64);
	begin(stream);
	check_eq(status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check_ok(launch_store(address, 5, stream));
	check_ok(cuMemcpyDtoHAsync(words, address, 4, stream));
	check_ok(cuMemsetD32Async(address, 7, 2, stream));
	check_ok(cuMemcpyAsync((uintptr_t)&words[1], address + 4, 4, stream));
	check_ok(cuLaunchHostFunc(stream, ignore, NULL));
	graph = end_capture(stream);
	check_eq(status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	check_eq(count_nodes(graph), 5);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuStreamSynchronize(stream));
	check_eq(words[0], 0);
	for (int i = 0; i < 3; i++) {
		words[0] = words[1] = 0;
		launch_and_wait(exec, stream);
		check_eq(words[0], 5);
		check_eq(words[1], 7);
	}
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuStreamDestroy(stream));
}

TEST(calls_that_a_capture_forbids_invalidate_it)
{
	CUdeviceptr address;
	CUstream stream;
	CUevent event;

	context_new();
	stream = stream_new();
	address = device_memory(4);
	check_ok(cuEventCreate(&event, 0));
	begin(stream);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(launch_store(address, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	check_cu(cuEventRecord(event, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	check_invalid_end(stream);
	begin(stream);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_invalid_end(stream);
	begin(stream);
	check_cu(cuStreamAddCallback(stream, ignore_callback, NULL, 0),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_invalid_end(stream);
	begin(stream);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_invalid_end(stream);
	check_ok(launch_store(address, 3, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(address), 3);
}

TEST(a_fork_by_events_becomes_branches_of_the_graph)
{
	CUgraphNode nodes[8];
	CUstream one, two, three;
	CUdeviceptr words;
	CUgraphExec exec;
	CUevent fork, join;
	CUgraph graph;
	size_t n = 8;

	context_new();
	words = device_memory(64);
	one = stream_new();
	two = stream_new();
	three = stream_new();
	check_ok(cuEventCreate(&fork, 0));
	check_ok(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	begin(one);
	check_ok(launch_store(words, 1, one));
	check_ok(cuEventRecord(fork, one));
	check_eq(status(two), CU_STREAM_CAPTURE_STATUS_NONE);
	check_ok(cuStreamWaitEvent(two, fork, 0));
	check_ok(cuStreamWaitEvent(three, fork, 0));
	check_eq(status(two), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check_ok(cuMemcpyDtoDAsync(words + 4, words, 4, two));
	check_ok(cuMemcpyDtoDAsync(words + 8, words, 4, one));
	check_ok(cuEventRecord(join, two));
	check_ok(cuStreamWaitEvent(one, join, 0));
	check_ok(cuMemcpyDtoDAsync(words + 12, words + 4, 4, one));
	graph = end_capture(one);
	/* The third stream has no work that would have to be joined. */
	check_eq(status(two), CU_STREAM_CAPTURE_STATUS_NONE);
	check_eq(status(three), CU_STREAM_CAPTURE_STATUS_NONE);
	check_eq(count_nodes(graph), 4);
	check_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	check_eq(n, 4);
	n = 8;
	check_ok(cuGraphGetRootNodes(graph, nodes, &n));
	check_eq(n, 1);
	exec = exec_new(graph);
	for (int i = 0; i < 20; i++) {
		check_ok(cuMemsetD32(words, 0, 4));
		launch_and_wait(exec, three);
		check_eq(device_word(words + 12), 1);
		check_eq(device_word(words + 8), 1);
	}
	/* An event of a capture that is over is none to wait for. */
	check_cu(cuStreamWaitEvent(two, join, 0), CUDA_ERROR_CAPTURED_EVENT);
	check_cu(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
	check_ok(cuEventRecord(fork, one));
	check_ok(cuStreamWaitEvent(two, fork, 0));
	check_ok(cuEventSynchronize(fork));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_fork_that_is_not_joined_gives_no_graph)
{
	CUgraph graph = (CUgraph)1;
	CUstream one, two;
	CUdeviceptr word;
	CUevent fork;

	context_new();
	word = device_memory(4);
	one = stream_new();
	two = stream_new();
	check_ok(cuEventCreate(&fork, 0));
	begin(one);
	check_ok(cuEventRecord(fork, one));
	check_ok(cuStreamWaitEvent(two, fork, 0));
	check_ok(launch_store(word, 1, two));
	check_cu(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	check(!graph);
	check_eq(status(one), CU_STREAM_CAPTURE_STATUS_NONE);
	check_eq(status(two), CU_STREAM_CAPTURE_STATUS_NONE);
	/* Nor one whose stream is gone. */
	begin(one);
	check_ok(cuEventRecord(fork, one));
	check_ok(cuStreamWaitEvent(two, fork, 0));
	check_ok(launch_store(word, 1, two));
	check_ok(cuStreamDestroy(two));
	check_cu(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	check_eq(device_word(word), 0);
}

TEST(captures_do_not_depend_on_each_other_or_on_what_is_outside)
{
	CUstream one, two, apart;
	CUevent event, plain;
	CUgraph graph;

	context_new();
	one = stream_new();
	two = stream_new();
	apart = stream_new();
	check_ok(cuEventCreate(&event, 0));
	check_ok(cuEventCreate(&plain, 0));
	check_ok(cuEventRecord(plain, apart));
	begin(one);
	begin(two);
	check_ok(cuEventRecord(event, one));
	check_cu(cuStreamWaitEvent(two, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	check_invalid_end(one);
	check_invalid_end(two);
	begin(one);
	check_cu(cuStreamWaitEvent(one, plain, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	check_invalid_end(one);
	/* An event that was recorded in a capture that is over. */
	begin(one);
	check_cu(cuStreamWaitEvent(one, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	check_invalid_end(one);
	/* No stream can join an invalid capture. */
	begin(one);
	check_ok(cuEventRecord(event, one));
	check_cu(cuStreamQuery(one), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(cuStreamWaitEvent(apart, event, 0),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	check_invalid_end(one);
	/* Asking for an event of a capture spoils it. */
	begin(one);
	check_ok(cuEventRecord(event, one));
	check_cu(cuEventElapsedTime((float[]){ 0 }, event, plain),
		CUDA_ERROR_CAPTURED_EVENT);
	check_invalid_end(one);
	/* Two that keep apart are fine. */
	begin(one);
	begin(two);
	graph = end_capture(one);
	check_ok(cuGraphDestroy(graph));
	graph = end_capture(two);
	check_ok(cuGraphDestroy(graph));
}

TEST(captures_end_where_they_began)
{
	CUgraph graph = (CUgraph)1;
	CUstream one, two;
	CUevent event;

	context_new();
	one = stream_new();
	two = stream_new();
	check_ok(cuEventCreate(&event, 0));
	check_cu(cuStreamEndCapture(one, &graph), CUDA_ERROR_ILLEGAL_STATE);
	check(!graph);
	begin(one);
	check_cu(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_ILLEGAL_STATE);
	check_cu(cuStreamEndCapture(one, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuEventRecord(event, one));
	check_ok(cuStreamWaitEvent(two, event, 0));
	check_cu(cuStreamEndCapture(two, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	check_invalid_end(one);
	check_cu(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(cuStreamBeginCapture(one, (CUstreamCaptureMode)3),
		CUDA_ERROR_INVALID_VALUE);
	/* The default stream of a thread is a stream like others. */
	begin(CU_STREAM_PER_THREAD);
	graph = end_capture(CU_STREAM_PER_THREAD);
	check_ok(cuGraphDestroy(graph));
	/* A capture ends with its stream, and with its context. */
	begin(one);
	check_ok(cuEventRecord(event, one));
	check_ok(cuStreamDestroy(one));
	check_cu(cuStreamWaitEvent(two, event, 0), CUDA_ERROR_CAPTURED_EVENT);
	begin(two);
	check_ok(cuDevicePrimaryCtxReset(0));
}

TEST(the_legacy_stream_is_of_no_use_while_a_blocking_stream_is_captured)
{
	CUstreamCaptureStatus unused;
	CUstream blocking, apart;
	CUdeviceptr word;
	CUgraph graph;
	CUevent event;

	context_new();
	word = device_memory(4);
	apart = stream_new();
	check_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	check_ok(cuEventCreate(&event, 0));
	begin(blocking);
	check_cu(cuStreamIsCapturing(NULL, &unused), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	graph = end_capture(blocking);
	check_ok(cuGraphDestroy(graph));
	begin(blocking);
	check_cu(launch_store(word, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	check_invalid_end(blocking);
	begin(blocking);
	check_cu(cuMemsetD32(word, 1, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	check_invalid_end(blocking);
	begin(blocking);
	check_cu(cuStreamSynchronize(CU_STREAM_LEGACY),
		CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	check_invalid_end(blocking);
	begin(blocking);
	check_cu(cuEventRecord(event, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	check_invalid_end(blocking);

	/* One that it does not wait for leaves it alone, unless it waits for that. */
	begin(apart);
	check_ok(launch_store(word, 2, NULL));
	check_ok(cuStreamSynchronize(NULL));
	check_eq(device_word(word), 2);
	check_ok(cuEventRecord(event, apart));
	check_cu(cuStreamWaitEvent(NULL, event, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	check_invalid_end(apart);
	check_eq(device_word(word), 2);
}

/* Calls that a thread may make while another thread captures: results of cuMemAlloc(). */
struct allowed {
	CUstreamCaptureMode mode; /* of this thread */
	CUresult result;
	CUresult end; /* what it gets that ends the capture of the other thread */
	CUstream stream;
};

static void *try_unsafe(void *argument)
{
	struct allowed *allowed = argument;
	CUgraph graph;
	CUdeviceptr address;
	CUcontext context;

	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuThreadExchangeStreamCaptureMode(&allowed->mode))
		return "no context";
	allowed->result = cuMemAlloc(&address, 64);
	if (!allowed->result)
		cuMemFree(address);
	allowed->end = cuStreamEndCapture(allowed->stream, &graph);
	if (!allowed->end)
		cuGraphDestroy(graph);
	return allowed->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? NULL
							      : "not global before";
}

static void check_other_thread(CUstream stream, CUstreamCaptureMode mode,
	CUstreamCaptureMode thread_mode, CUresult result, CUresult end)
{
	struct allowed allowed = { .mode = thread_mode, .stream = stream };
	pthread_t thread;
	CUgraph graph;
	void *failure;

	check_ok(cuStreamBeginCapture(stream, mode));
	check_eq(pthread_create(&thread, NULL, try_unsafe, &allowed), 0);
	check_eq(pthread_join(thread, &failure), 0);
	check_str(failure ? (const char *)failure : "", "");
	check_eq(allowed.result, result);
	check_eq(allowed.end, end);
	if (!end)
		return;
	check_cu(cuStreamEndCapture(stream, &graph),
		result ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
	if (!result)
		check_ok(cuGraphDestroy(graph));
}

TEST(modes_say_which_threads_may_do_what_could_wait)
{
	CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	CUresult thread = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr address, other;
	CUstream stream;
	CUgraph graph;

	context_new();
	stream = stream_new();
	address = device_memory(64);
	check_other_thread(stream, CU_STREAM_CAPTURE_MODE_GLOBAL,
		CU_STREAM_CAPTURE_MODE_GLOBAL, no, thread);
	check_other_thread(stream, CU_STREAM_CAPTURE_MODE_GLOBAL,
		CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_SUCCESS, thread);
	check_other_thread(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
		CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS, thread);
	check_other_thread(stream, CU_STREAM_CAPTURE_MODE_GLOBAL,
		CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS, thread);
	check_other_thread(stream, CU_STREAM_CAPTURE_MODE_RELAXED,
		CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS, CUDA_SUCCESS);

	/* The thread that captures. */
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_cu(cuMemAlloc(&other, 64), no);
	check_invalid_end(stream);
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check_cu(cuMemFree(address), no);
	check_invalid_end(stream);
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_ok(cuMemAlloc(&other, 64));
	graph = end_capture(stream);
	check_ok(cuGraphDestroy(graph));
	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	check_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check_ok(cuMemFree(other));
	graph = end_capture(stream);
	check_ok(cuGraphDestroy(graph));
	mode = 7;
	check_cu(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	check_eq(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

TEST(dependencies_of_a_capture_can_be_read_and_set)
{
	const CUgraphEdgeData *edges;
	const CUgraphNode *before;
	CUgraphNode mine, captured, foreign;
	CUstreamCaptureStatus now;
	cuuint64_t id = 0, later = 0;
	CUgraph graph, ended, other;
	CUdeviceptr words;
	CUstream stream;
	size_t n = 9;

	context_new();
	words = device_memory(64);
	stream = stream_new();
	other = graph_new();
	check_ok(cuGraphAddEmptyNode(&foreign, other, NULL, 0));
	check_cu(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 0),
		CUDA_ERROR_ILLEGAL_STATE);
	check_ok(cuStreamGetCaptureInfo(stream, &now, &id, &graph, &before, &edges, &n));
	check_eq(now, CU_STREAM_CAPTURE_STATUS_NONE);
	begin(stream);
	check_ok(cuStreamGetCaptureInfo(stream, &now, &id, &graph, NULL, NULL, &n));
	check_eq(now, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check(id != 0 && n == 0);
	check_ok(launch_store(words, 1, stream));
	check_ok(cuStreamGetCaptureInfo(
		stream, &now, &later, &graph, &before, &edges, &n));
	check(n == 1 && later == id && !edges[0].type);
	captured = before[0];
	/* A node of the program's, between two that are captured. */
	mine = add_store(graph, before, 1, words, 2);
	check_ok(cuStreamUpdateCaptureDependencies(
		stream, &mine, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	check_ok(cuMemcpyDtoDAsync(words + 4, words, 4, stream));
	check_ok(cuStreamUpdateCaptureDependencies(
		stream, &captured, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	check_ok(cuStreamGetCaptureInfo(stream, &now, NULL, NULL, NULL, NULL, &n));
	check_eq(n, 2);
	check_cu(cuStreamUpdateCaptureDependencies(stream, &foreign, NULL, 1, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamUpdateCaptureDependencies(stream, &mine, NULL, 1, 2),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphDestroyNode(mine), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	ended = end_capture(stream);
	check(ended == graph);
	check_eq(count_nodes(graph), 3);
	begin(stream);
	check_ok(cuStreamGetCaptureInfo(stream, &now, &later, NULL, NULL, NULL, NULL));
	check(later != id);
	check_ok(cuGraphDestroy(end_capture(stream)));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphDestroy(other));
}

TEST(work_is_captured_into_a_graph_that_exists)
{
	CUgraphNode first, foreign;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph, other;
	CUstream stream;

	context_new();
	words = device_memory(64);
	stream = stream_new();
	graph = graph_new();
	other = graph_new();
	check_ok(cuGraphAddEmptyNode(&foreign, other, NULL, 0));
	first = add_store(graph, NULL, 0, words, 4);
	check_cu(cuStreamBeginCaptureToGraph(
			 stream, graph, &foreign, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamBeginCaptureToGraph(
		stream, graph, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check_cu(cuStreamBeginCaptureToGraph(stream_new(), graph, NULL, NULL, 0,
			 CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemcpyDtoDAsync(words + 4, words, 4, stream));
	check(end_capture(stream) == graph);
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check_eq(device_word(words + 4), 4);
	/* A capture that fails leaves the program its graph. */
	check_ok(cuStreamBeginCaptureToGraph(
		stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_invalid_end(stream);
	check_eq(count_nodes(graph), 2);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphDestroy(other));
}

TEST(external_events_of_a_capture_become_nodes)
{
	volatile unsigned int *word;
	CUgraphNodeType type;
	CUgraphNode nodes[4];
	CUstream stream, apart;
	CUevent before, after;
	CUdeviceptr words;
	CUgraphExec exec;
	CUgraph graph;
	size_t n = 4;

	context_new();
	word = pinned_memory(4096);
	words = device_memory(64);
	stream = stream_new();
	apart = stream_new();
	check_ok(cuEventCreate(&before, 0));
	check_ok(cuEventCreate(&after, 0));
	check_cu(cuEventRecordWithFlags(after, stream, CU_EVENT_RECORD_EXTERNAL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamWaitEvent(stream, before, CU_EVENT_WAIT_EXTERNAL),
		CUDA_ERROR_INVALID_VALUE);
	begin(stream);
	check_ok(cuStreamWaitEvent(stream, before, CU_EVENT_WAIT_EXTERNAL));
	check_ok(launch_store(words, 5, stream));
	check_ok(cuEventRecordWithFlags(after, stream, CU_EVENT_RECORD_EXTERNAL));
	graph = end_capture(stream);
	check_ok(cuGraphGetNodes(graph, nodes, &n));
	check_eq(n, 3);
	check_ok(cuGraphNodeGetType(nodes[0], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	check_ok(cuGraphNodeGetType(nodes[2], &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	exec = exec_new(graph);
	check_ok(launch_gate(word, words + 4, apart));
	check_ok(cuEventRecord(before, apart));
	check_ok(cuGraphLaunch(exec, stream));
	check_cu(cuEventQuery(after), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuEventSynchronize(after));
	check_eq(device_word(words), 5);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}

TEST(a_graph_that_is_launched_into_a_capture_becomes_a_child)
{
	CUgraphNodeType type;
	CUgraph graph, outer;
	CUdeviceptr words;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream stream;
	size_t n = 1;

	context_new();
	words = device_memory(64);
	stream = stream_new();
	begin(stream);
	check_ok(launch_store(words, 3, stream));
	graph = end_capture(stream);
	exec = exec_new(graph);
	begin(stream);
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuMemcpyDtoDAsync(words + 4, words, 4, stream));
	outer = end_capture(stream);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	check_ok(cuGraphGetRootNodes(outer, &node, &n));
	check_ok(cuGraphNodeGetType(node, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_GRAPH);
	exec = exec_new(outer);
	launch_and_wait(exec, stream);
	check_eq(device_word(words + 4), 3);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(outer));
}

TEST(calls_on_whole_contexts_are_refused_while_one_of_its_streams_is_captured)
{
	CUcontext context;
	CUstream stream;
	CUevent event;

	context = context_new();
	stream = stream_new();
	check_ok(cuEventCreate(&event, 0));
	begin(stream);
	check_cu(cuCtxRecordEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_invalid_end(stream);
	begin(stream);
	check_cu(cuCtxWaitEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_invalid_end(stream);
}
