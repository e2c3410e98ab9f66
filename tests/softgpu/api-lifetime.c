/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are destroyed while other threads use them
 *
 * Built with the address sanitizer (build-dev.ini) these tests find a use after free. A
 * short sleep makes it likely that another thread is already in its call when something
 * is destroyed: the checks are valid either way.
 */

#include <pthread.h>
#include <unistd.h>

#include "api.h"

struct caller {
	pthread_t thread;
	void *(*main)(void *);
	CUcontext context;
	CUstream stream;
	CUevent event;
	CUfunction function;
	unsigned int *word;
	CUresult result;
};

static void begin(struct caller *caller)
{
	check_eq(pthread_create(&caller->thread, NULL, caller->main, caller), 0);
	usleep(50000);
}

static void end(struct caller *caller)
{
	check_eq(pthread_join(caller->thread, NULL), 0);
}

static void *wait_for_stream(void *data)
{
	struct caller *caller = data;

	check_ok(cuCtxSetCurrent(caller->context));
	caller->result = cuStreamSynchronize(caller->stream);
	return NULL;
}

static void *wait_for_event(void *data)
{
	struct caller *caller = data;

	check_ok(cuCtxSetCurrent(caller->context));
	caller->result = cuEventSynchronize(caller->event);
	return NULL;
}

static void *wait_for_context(void *data)
{
	struct caller *caller = data;

	check_ok(cuCtxSetCurrent(caller->context));
	caller->result = cuCtxSynchronize();
	return NULL;
}

static void *launch(void *data)
{
	struct caller *caller = data;
	CUdeviceptr at = (uintptr_t)caller->word;
	void *params[] = { &at, &at };

	check_ok(cuCtxSetCurrent(caller->context));
	caller->result = cuLaunchKernel(
		caller->function, 1, 1, 1, 1, 1, 1, 0, caller->stream, params, NULL);
	return NULL;
}

static void hold(CUstream stream, unsigned int *word)
{
	check_ok(cuStreamWaitValue32(
		stream, (uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void let_go(unsigned int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
}

/* A stream that is held, and an event in it. */
static void prepare(struct caller *caller)
{
	check_ok(cuStreamCreate(&caller->stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&caller->event, CU_EVENT_DEFAULT));
	hold(caller->stream, caller->word);
	check_ok(cuEventRecord(caller->event, caller->stream));
}

TEST(a_stream_outlives_its_waiters)
{
	struct caller caller = { .main = wait_for_stream, .context = context_new() };

	caller.word = pinned_memory(64);
	prepare(&caller);
	begin(&caller);
	check_ok(cuStreamDestroy(caller.stream));
	check_cu(cuStreamQuery(caller.stream), CUDA_ERROR_INVALID_HANDLE);
	let_go(caller.word);
	end(&caller);
	check(!caller.result || caller.result == CUDA_ERROR_INVALID_HANDLE);
}

TEST(an_event_outlives_its_waiters)
{
	struct caller caller = { .main = wait_for_event, .context = context_new() };

	caller.word = pinned_memory(64);
	prepare(&caller);
	begin(&caller);
	check_ok(cuEventDestroy(caller.event));
	let_go(caller.word);
	end(&caller);
	check(!caller.result || caller.result == CUDA_ERROR_INVALID_HANDLE);
}

static void destroy_context_of(void *(*main)(void *))
{
	struct caller caller = { .main = main };
	CUcontext primary = context_new(), popped;

	caller.word = pinned_memory(64);
	check_ok(cuCtxCreate(&caller.context, NULL, 0, 0));
	prepare(&caller);
	check_ok(cuCtxPopCurrent(&popped));
	begin(&caller);
	check_ok(cuCtxDestroy(caller.context));
	end(&caller);
	/* INVALID_HANDLE: it came too late to wait. */
	check(caller.result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
		caller.result == CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuCtxSetCurrent(primary));
	check_ok(cuCtxSynchronize());
}

TEST(a_context_is_destroyed_during_a_wait_for_a_stream)
{
	destroy_context_of(wait_for_stream);
}

TEST(a_context_is_destroyed_during_a_wait_for_an_event)
{
	destroy_context_of(wait_for_event);
}

TEST(a_context_is_destroyed_during_its_synchronisation)
{
	destroy_context_of(wait_for_context);
}

/* A stream has no room until its word is set, so the launch blocks. */
TEST(a_module_is_unloaded_before_a_launch_finds_room)
{
	struct caller caller = { .main = launch, .context = context_new() };
	CUmodule module;

	caller.word = pinned_memory(64);
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&caller.function, module, "gate"));
	check_ok(cuStreamCreate(&caller.stream, CU_STREAM_NON_BLOCKING));
	hold(caller.stream, caller.word);
	for (int i = 0; i < 1023; i++)
		check_ok(cuStreamWriteValue32(
			caller.stream, (uintptr_t)(caller.word + 2), i, 0));
	begin(&caller);
	let_go(caller.word);
	check_ok(cuModuleUnload(module));
	end(&caller);
	/* It came before the end, or was too late. */
	check(!caller.result || caller.result == CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuStreamSynchronize(caller.stream));
}

/* The end of one launch kicks the stream of the next one, which is the same stream and
 * empty by then. */
TEST(a_context_is_destroyed_with_two_launches_of_a_graph_in_flight)
{
	CUDA_MEMSET_NODE_PARAMS fill = { .elementSize = 4, .width = 1, .height = 1 };
	CUcontext primary = context_new(), context, popped;
	unsigned int *word = pinned_memory(64);
	CUgraphExec exec;
	CUgraphNode node;
	CUstream stream;
	CUgraph graph;

	for (int i = 0; i < 8; i++) {
		check_ok(cuCtxCreate(&context, NULL, 0, 0));
		fill.dst = device_memory(64);
		check_ok(cuGraphCreate(&graph, 0));
		check_ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
		check_ok(cuGraphInstantiate(&exec, graph, 0));
		check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		hold(stream, word);
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuCtxDestroy(context));
		check_ok(cuGraphExecDestroy(exec));
		check_ok(cuGraphDestroy(graph));
	}
	cuCtxPopCurrent(&popped);
	check_ok(cuCtxSetCurrent(primary));
	check_ok(cuCtxSynchronize());
}

/* The stack of a thread distinguishes a context from a later one at the same address. */
TEST(a_context_that_is_gone_is_not_current_again)
{
	CUcontext primary = context_new(), gone, others[16], popped;

	check_ok(cuCtxCreate(&gone, NULL, 0, 0));
	check_ok(cuCtxPushCurrent(primary));
	check_ok(cuCtxDestroy(gone));
	for (int i = 0; i < 16; i++) {
		check_ok(cuCtxCreate(&others[i], NULL, 0, 0));
		check_ok(cuCtxPopCurrent(&popped));
	}
	check_ok(cuCtxPopCurrent(&popped));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	for (int i = 0; i < 16; i++)
		check_ok(cuCtxDestroy(others[i]));
}
