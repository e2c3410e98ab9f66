/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: captures of streams
 */

#include <pthread.h>
#include <unistd.h>

#include "graph.h"

/* One iteration as a framework makes it: work in two streams that fork and join, copies
 * within the device and to pinned memory, and fills. Adds `rounds` steps to *x. */
static void iterate(CUfunction step, CUdeviceptr x, CUdeviceptr other, CUstream stream,
	CUstream side, CUevent fork, CUevent join)
{
	check_ok(launch_step(step, x, 1, stream));
	check_ok(cuMemcpyDtoDAsync(other, x, 4, stream));
	check_ok(cuEventRecord(fork, stream));
	check_ok(cuStreamWaitEvent(side, fork, 0));
	check_ok(cuMemsetD32Async(other + 4, 7, 1, side));
	check_ok(launch_step(step, other + 4, 1, side));
	check_ok(launch_step(step, x, 2, stream));
	check_ok(cuEventRecord(join, side));
	check_ok(cuStreamWaitEvent(stream, join, 0));
	check_ok(cuMemcpyDtoDAsync(other + 8, other + 4, 4, stream));
}

TEST(an_iteration_is_captured_and_replayed)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUstream stream = stream_new(), side = stream_new();
	CUdeviceptr x = memory_new(4), other = memory_new(12);
	CUstreamCaptureStatus status;
	unsigned int expected = 0;
	CUevent fork, join;
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_ok(cuStreamIsCapturing(stream, &status));
	check_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check_eq(capture_status(side), CU_STREAM_CAPTURE_STATUS_NONE);
	iterate(step, x, other, stream, side, fork, join);
	check_eq(capture_status(side), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check_ok(cuStreamEndCapture(stream, &graph));
	check_eq(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	check_eq(capture_status(side), CU_STREAM_CAPTURE_STATUS_NONE);
	check_eq(count_nodes(graph), 6);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	/* Nothing has run yet. */
	check_eq(device_word(x), 0);
	for (int i = 0; i < 100; i++) {
		check_ok(cuGraphLaunch(exec, stream));
		expected = stepped(expected, 3);
	}
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(x), expected);
	check_eq(device_word(other + 8), stepped(7, 1));
	check_ok(cuGraphExecDestroy(exec));
	/* And the streams are as they were. */
	iterate(step, x, other, stream, side, fork, join);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(x), stepped(expected, 3));
	check_ok(cuStreamDestroy(stream));
	check_ok(cuStreamDestroy(side));
}

TEST(a_capture_takes_far_more_than_a_stream_holds)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	for (int i = 0; i < 1500; i++)
		check_ok(launch_step(step, x, 1, stream));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 1500);
	exec = exec_new(graph);
	for (int i = 0; i < 20; i++)
		check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(x), stepped(0, 30000));
	/* The stream itself holds as many again. */
	for (int i = 0; i < 1500; i++)
		check_ok(launch_step(step, x, 1, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(x), stepped(0, 31500));
}

TEST(captured_copies_of_pinned_memory_read_it_at_the_launch)
{
	CUdeviceptr memory;
	CUgraphExec exec;
	CUstream stream;
	unsigned int *pinned;

	fixture_new();
	stream = stream_new();
	memory = memory_new(64);
	check_ok(cuMemHostAlloc((void **)&pinned, 4096, 0));
	pinned[0] = 1;
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_ok(cuMemcpyHtoDAsync(memory, pinned, 4, stream));
	check_ok(cuMemcpyAsync(memory + 4, memory, 4, stream));
	check_ok(cuMemcpyDtoHAsync(pinned + 1, memory + 4, 4, stream));
	exec = exec_new(capture_end(stream));
	for (unsigned int i = 5; i < 8; i++) {
		pinned[0] = i;
		pinned[1] = 0;
		launch_and_wait(exec, stream);
		check_eq(pinned[1], i);
	}
}

static void refuse_all_by_waiting(CUstream stream)
{
	CUdeviceptr memory;

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	capture_end_in_vain(stream);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	capture_end_in_vain(stream);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	capture_end_in_vain(stream);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuMemAlloc(&memory, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	capture_end_in_vain(stream);
}

TEST(calls_that_a_capture_forbids_invalidate_the_capture)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = memory_new(4);
	CUstream stream = stream_new();
	void *pinned = NULL;
	CUevent event;

	refuse_all_by_waiting(stream);
	/* A later launch fails, too. */
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuMemHostAlloc(&pinned, 64, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(launch_step(step, memory, 1, stream),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	capture_end_in_vain(stream);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_cu(cuMemFree(memory), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	capture_end_in_vain(stream);
	/* An event recorded in a capture cannot be queried. */
	check_ok(cuEventCreate(&event, 0));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_ok(cuEventRecord(event, stream));
	check_cu(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
	capture_end_in_vain(stream);
	/* All works as before. */
	check_ok(launch_step(step, memory, 1, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(memory), 1);
	check_ok(cuEventRecord(event, stream));
	check_ok(cuEventSynchronize(event));
	check_ok(cuEventQuery(event));
	check_ok(cuMemFree(memory));
}

TEST(the_default_stream_waits_for_no_capture)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = memory_new(4);
	CUgraph graph = NULL;
	CUstream blocking;

	check_cu(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	capture_begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_cu(launch_step(step, memory, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	capture_end_in_vain(blocking);
	capture_begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	check_cu(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_ERROR_ILLEGAL_STATE);
	check_ok(cuStreamEndCapture(blocking, &graph));
	check_cu(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_ILLEGAL_STATE);
	check_cu(cuStreamBeginCapture(blocking, 77), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_fork_has_to_be_joined)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUstream stream = stream_new(), side = stream_new();
	CUdeviceptr memory = memory_new(4);
	CUgraph graph = NULL;
	CUevent event;

	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(cuEventRecord(event, stream));
	check_ok(cuStreamWaitEvent(side, event, 0));
	check_ok(launch_step(step, memory, 1, side));
	check_cu(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	capture_end_in_vain(stream);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(cuEventRecord(event, stream));
	check_ok(cuStreamWaitEvent(side, event, 0));
	check_ok(launch_step(step, memory, 1, side));
	check_cu(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	check(!graph);
	check_eq(capture_status(side), CU_STREAM_CAPTURE_STATUS_NONE);
	/* An event from outside has no place in a capture. */
	check_ok(cuEventRecord(event, side));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_cu(
		cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	capture_end_in_vain(stream);
	check_eq(device_word(memory), 0);
}

/*
 * Modes and threads
 */

struct other {
	struct fixture *fixture;
	CUstream stream; /* captured by the first thread, or its own */
	CUresult alloc;	 /* of cuMemAlloc() */
	CUresult end;
	unsigned int word;
};

/* Allocates, copies and waits as any thread does. */
static void *work_beside(void *data)
{
	struct other *other = data;
	unsigned int word = 9, *pinned = NULL;
	CUdeviceptr memory = 0;

	check_ok(cuCtxSetCurrent(other->fixture->context));
	other->alloc = cuMemAlloc(&memory, 4096);
	check_eq(cuMemHostAlloc((void **)&pinned, 64, 0), other->alloc);
	if (other->alloc != CUDA_SUCCESS)
		return NULL;
	check_ok(cuMemcpyHtoDAsync(memory, &word, 4, other->stream));
	check_ok(launch_step(
		fixture_function(other->fixture, "step"), memory, 5, other->stream));
	check_ok(cuStreamSynchronize(other->stream));
	check_ok(cuStreamQuery(other->stream));
	check_ok(cuMemcpyDtoHAsync(pinned, memory, 4, other->stream));
	check_ok(cuStreamSynchronize(other->stream));
	other->word = *pinned;
	check_ok(cuMemFreeHost(pinned));
	check_ok(cuMemFree(memory));
	return NULL;
}

static void run_thread(void *(*function)(void *), void *data)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, function, data));
	check(!pthread_join(thread, NULL));
}

TEST(modes_tell_what_other_threads_may_do)
{
	struct fixture fixture = fixture_new();
	CUstream stream = stream_new();
	struct other other = { .fixture = &fixture, .stream = stream_new() };

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	run_thread(work_beside, &other);
	check_eq(other.alloc, CUDA_SUCCESS);
	check_eq(other.word, stepped(9, 5));
	check_ok(cuGraphDestroy(capture_end(stream)));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	run_thread(work_beside, &other);
	check_eq(other.alloc, CUDA_SUCCESS);
	check_ok(cuGraphDestroy(capture_end(stream)));
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	run_thread(work_beside, &other);
	check_eq(other.alloc, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	capture_end_in_vain(stream);
	run_thread(work_beside, &other);
	check_eq(other.alloc, CUDA_SUCCESS);
}

/* Says that it minds no capture. */
static void *work_relaxed(void *data)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	check_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	work_beside(data);
	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	check_eq(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	/* Left set: the next thread has a separate mode. */
	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	mode = 77;
	check_cu(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
	return NULL;
}

TEST(a_thread_may_exchange_its_mode)
{
	struct fixture fixture = fixture_new();
	CUstream stream = stream_new();
	struct other other = { .fixture = &fixture, .stream = stream_new() };

	for (int i = 0; i < 3; i++) {
		capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
		run_thread(work_relaxed, &other);
		check_eq(other.alloc, CUDA_SUCCESS);
		check_eq(other.word, stepped(9, 5));
		check_ok(cuGraphDestroy(capture_end(stream)));
	}
}

/* Calls that are unsafe in a capture, by a thread of that mode. */
struct unsafe {
	CUcontext context;
	CUstreamCaptureMode mode;
	CUdeviceptr memory; /* to be freed */
	CUresult expected;
};

static void *make_unsafe_calls(void *data)
{
	const struct unsafe *unsafe = data;
	CUstreamCaptureMode mode = unsafe->mode;
	CUdeviceptr memory = 0;
	void *pinned = NULL;

	check_ok(cuCtxSetCurrent(unsafe->context));
	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	check_cu(cuMemFree(unsafe->memory), unsafe->expected);
	check_cu(cuMemAlloc(&memory, 64), unsafe->expected);
	check_cu(cuMemHostAlloc(&pinned, 64, 0), unsafe->expected);
	if (unsafe->expected == CUDA_SUCCESS) {
		check_ok(cuMemFree(memory));
		check_ok(cuMemFreeHost(pinned));
	}
	check_ok(cuThreadExchangeStreamCaptureMode(&mode));
	check_eq(mode, unsafe->mode);
	return NULL;
}

/* CUDA Driver API, cuThreadExchangeStreamCaptureMode(). */
static bool is_forbidden(
	CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool is_own)
{
	if (thread == CU_STREAM_CAPTURE_MODE_RELAXED ||
		capture == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return is_own || (thread == CU_STREAM_CAPTURE_MODE_GLOBAL &&
				 capture == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void check_modes(const struct fixture *fixture, CUstream stream,
	CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool is_own)
{
	const bool forbidden = is_forbidden(capture, thread, is_own);
	struct unsafe unsafe = {
		.context = fixture->context,
		.mode = thread,
		.memory = memory_new(64),
		.expected =
			forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS,
	};

	capture_begin(stream, capture);
	if (is_own)
		make_unsafe_calls(&unsafe);
	else
		run_thread(make_unsafe_calls, &unsafe);
	check_eq(capture_status(stream), forbidden ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
						   : CU_STREAM_CAPTURE_STATUS_ACTIVE);
	if (forbidden) {
		capture_end_in_vain(stream);
		check_ok(cuMemFree(unsafe.memory));
	} else {
		check_ok(cuGraphDestroy(capture_end(stream)));
	}
}

TEST(allocations_obey_the_table_of_modes)
{
	struct fixture fixture = fixture_new();
	CUstream stream = stream_new();

	for (int capture = 0; capture <= CU_STREAM_CAPTURE_MODE_RELAXED; capture++)
		for (int thread = 0; thread <= CU_STREAM_CAPTURE_MODE_RELAXED; thread++)
			for (int is_own = 0; is_own < 2; is_own++)
				check_modes(&fixture, stream, capture, thread, is_own);
}

static void *end_elsewhere(void *data)
{
	struct other *other = data;
	CUgraph graph = NULL;

	check_ok(cuCtxSetCurrent(other->fixture->context));
	other->end = cuStreamEndCapture(other->stream, &graph);
	return NULL;
}

TEST(only_a_relaxed_capture_ends_in_another_thread)
{
	struct fixture fixture = fixture_new();
	struct other other = { .fixture = &fixture, .stream = stream_new() };

	capture_begin(other.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	run_thread(end_elsewhere, &other);
	check_eq(other.end, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	check_ok(cuGraphDestroy(capture_end(other.stream)));
	capture_begin(other.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	run_thread(end_elsewhere, &other);
	check_ok(other.end);
	check_eq(capture_status(other.stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

struct capturer {
	struct fixture *fixture;
	pthread_barrier_t *barrier;
	int rounds;
};

/* Captures and replays while another thread does the same. */
static void *capture_and_replay(void *data)
{
	struct capturer *capturer = data;
	unsigned int expected = 0;
	CUdeviceptr memory;
	CUfunction step;
	CUgraphExec exec;
	CUstream stream;

	check_ok(cuCtxSetCurrent(capturer->fixture->context));
	step = fixture_function(capturer->fixture, "step");
	stream = stream_new();
	memory = memory_new(4);
	for (int i = 0; i < 20; i++) {
		pthread_barrier_wait(capturer->barrier);
		capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
		for (int j = 0; j < 10; j++)
			check_ok(launch_step(step, memory, capturer->rounds, stream));
		exec = exec_new(capture_end(stream));
		for (int j = 0; j < 5; j++)
			check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuStreamSynchronize(stream));
		expected = stepped(expected, 50 * capturer->rounds);
		check_ok(cuGraphExecDestroy(exec));
	}
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoHAsync(&capturer->rounds, memory, 4, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq((unsigned int)capturer->rounds, expected);
	return NULL;
}

TEST(two_threads_capture_at_once)
{
	struct fixture fixture = fixture_new();
	struct capturer capturers[2];
	pthread_barrier_t barrier;
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		capturers[i] = (struct capturer){ &fixture, &barrier, i + 1 };
		check(!pthread_create(
			&threads[i], NULL, capture_and_replay, &capturers[i]));
	}
	for (int i = 0; i < 2; i++)
		check(!pthread_join(threads[i], NULL));
}

/*
 * Queries of a capture
 */

TEST(a_capture_tells_its_graph_and_what_comes_next)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = memory_new(4);
	CUstream stream = stream_new();
	CUgraph graph = NULL, same = NULL, ended;
	const CUgraphEdgeData *edges = NULL;
	const CUgraphNode *nodes = NULL;
	CUgraphNode kept[2], all[2];
	CUstreamCaptureStatus status = 99;
	cuuint64_t id = 0, again = 0;
	size_t n = 9;

	check_ok(
		cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &n));
	check_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(cuStreamGetCaptureInfo_v3(
		stream, &status, &id, &graph, &nodes, &edges, &n));
	check_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check(id && graph);
	check_eq(n, 0);
	check_ok(launch_step(step, memory, 1, stream));
	check_ok(cuStreamGetCaptureInfo_v2(stream, &status, &again, &same, &nodes, &n));
	check_eq(n, 1);
	check(again == id && same == graph && nodes[0]);
	kept[0] = nodes[0];
	check_ok(CALL("cuStreamGetCaptureInfo", 10010,
		(CUstream, CUstreamCaptureStatus *, cuuint64_t *), stream, &status,
		&again));
	check(again == id && status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	/* The next launch is to have no dependencies. */
	check_ok(cuStreamUpdateCaptureDependencies_v2(
		stream, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	check_ok(launch_step(step, memory, 2, stream));
	check_ok(cuStreamGetCaptureInfo_v2(stream, &status, &again, &same, &nodes, &n));
	check_eq(n, 1);
	kept[1] = nodes[0];
	check(kept[1] != kept[0]);
	check_ok(cuGraphNodeGetDependencies(kept[1], NULL, NULL, &n));
	check_eq(n, 0);
	check_ok(CALL("cuStreamUpdateCaptureDependencies", 11030,
		(CUstream, CUgraphNode *, size_t, unsigned int), stream, kept, 1,
		CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	check_ok(cuStreamGetCaptureInfo_v2(stream, &status, &again, &same, &nodes, &n));
	check_eq(n, 2);
	check_ok(cuStreamEndCapture(stream, &ended));
	check(ended == graph);
	n = 2;
	check_ok(cuGraphGetNodes(ended, all, &n));
	check_eq(n, 2);
	check((all[0] == kept[0] && all[1] == kept[1]) ||
		(all[0] == kept[1] && all[1] == kept[0]));
}

TEST(a_capture_adds_to_a_graph)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = memory_new(4);
	CUstream stream = stream_new();
	CUgraph graph, ended = NULL;
	CUgraphNode first;
	size_t n = 0;

	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddEmptyNode(&first, graph, NULL, 0));
	check_ok(cuStreamBeginCaptureToGraph(
		stream, graph, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_ok(launch_step(step, memory, 3, stream));
	check_ok(cuStreamEndCapture(stream, &ended));
	check(ended == graph);
	check_ok(cuGraphNodeGetDependentNodes(first, NULL, NULL, &n));
	check_eq(n, 1);
	/* One that is spoilt leaves the graph to the program. */
	check_ok(cuStreamBeginCaptureToGraph(
		stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	capture_end_in_vain(stream);
	check_eq(count_nodes(graph), 2);
	launch_and_wait(exec_new(graph), stream);
	check_eq(device_word(memory), stepped(0, 3));
	check_ok(cuGraphDestroy(graph));
}

TEST(old_forms_capture)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = memory_new(4);
	CUstream stream = stream_new();
	CUgraph graph;

	check_ok(CALL("cuStreamBeginCapture", 10000, (CUstream), stream));
	check_ok(launch_step(step, memory, 3, stream));
	check_ok(cuStreamEndCapture(stream, &graph));
	launch_and_wait(exec_new(graph), stream);
	check_eq(device_word(memory), stepped(0, 3));
}

/*
 * Captures that are left alone
 */

static void *begin_and_leave(void *data)
{
	struct other *other = data;
	CUdeviceptr memory;

	check_ok(cuCtxSetCurrent(other->fixture->context));
	memory = memory_new(4);
	capture_begin(other->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(launch_step(
		fixture_function(other->fixture, "step"), memory, 1, other->stream));
	return NULL;
}

TEST(a_thread_that_leaves_its_capture_harms_no_other)
{
	struct fixture fixture = fixture_new();
	struct other other = { .fixture = &fixture };
	struct other worker = { .fixture = &fixture, .stream = stream_new() };

	for (int i = 0; i < 3; i++) {
		other.stream = stream_new();
		run_thread(begin_and_leave, &other);
		/* It may have the other's place in the host. */
		run_thread(work_beside, &worker);
		check_eq(worker.alloc, CUDA_SUCCESS);
		check_eq(worker.word, stepped(9, 5));
		check_ok(cuStreamDestroy(other.stream));
	}
}

TEST(a_stream_is_destroyed_with_its_capture)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory = memory_new(4);
	struct other other = { .fixture = &fixture, .stream = stream_new() };

	for (int i = 0; i < 10; i++) {
		CUstream stream = stream_new();

		capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
		check_ok(launch_step(step, memory, 1, stream));
		check_ok(cuStreamDestroy(stream));
		work_beside(&other);
		check_eq(other.alloc, CUDA_SUCCESS);
	}
	check_eq(device_word(memory), 0);
}

TEST(a_process_may_end_while_it_captures)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr memory = memory_new(4);
	CUstream stream = stream_new();

	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(launch_step(fixture_function(&fixture, "step"), memory, 1, stream));
}
