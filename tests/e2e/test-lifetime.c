/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: one thread destroys an object for which another waits
 *
 * A stream is held by a word of the host. A short sleep makes it likely that the other
 * thread already waits when something is destroyed: the checks are valid either way.
 */

#include <pthread.h>
#include <unistd.h>

#include "e2e.h"

struct waiter {
	pthread_t thread;
	CUcontext context;
	CUstream stream;
	CUevent event; /* waits for that, or NULL: for the stream */
	CUresult result;
	CUresult then; /* of another call, after the wait */
};

static void *wait_main(void *data)
{
	struct waiter *waiter = data;

	check_ok(cuCtxSetCurrent(waiter->context));
	waiter->result = waiter->event ? cuEventSynchronize(waiter->event)
				       : cuStreamSynchronize(waiter->stream);
	waiter->then = cuCtxSynchronize();
	return NULL;
}

static void begin(struct waiter *waiter)
{
	check_eq(pthread_create(&waiter->thread, NULL, wait_main, waiter), 0);
	usleep(100000);
}

static void end(struct waiter *waiter)
{
	check_eq(pthread_join(waiter->thread, NULL), 0);
}

/* In the context that is current. */
static unsigned int *new_word(void)
{
	unsigned int *word;

	check_ok(cuMemHostAlloc((void **)&word, 64,
		CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
	*word = 0;
	return word;
}

static void let_go(unsigned int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static void hold(CUstream stream, unsigned int *word)
{
	CUdeviceptr p;

	check_ok(cuMemHostGetDevicePointer(&p, word, 0));
	check_ok(cuStreamWaitValue32(stream, p, 1, CU_STREAM_WAIT_VALUE_EQ));
}

TEST(an_event_is_destroyed_while_a_thread_waits_for_it)
{
	struct fixture fixture = fixture_new();
	struct waiter waiter = { .context = fixture.context };
	unsigned int *word = new_word();

	check_ok(cuStreamCreate(&waiter.stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&waiter.event, CU_EVENT_DEFAULT));
	hold(waiter.stream, word);
	check_ok(cuEventRecord(waiter.event, waiter.stream));
	begin(&waiter);
	/* At once, as CUDA documents, and the wait continues. */
	check_ok(cuEventDestroy(waiter.event));
	check_cu(cuStreamQuery(waiter.stream), CUDA_ERROR_NOT_READY);
	let_go(word);
	end(&waiter);
	check(waiter.result == CUDA_SUCCESS ||
		waiter.result == CUDA_ERROR_INVALID_HANDLE);
	check_eq(waiter.then, CUDA_SUCCESS);
	check_ok(cuStreamSynchronize(waiter.stream));
}

TEST(a_stream_is_destroyed_while_a_thread_waits_for_it)
{
	struct fixture fixture = fixture_new();
	struct waiter waiter = { .context = fixture.context };
	unsigned int *word = new_word();
	CUdeviceptr memory;

	check_ok(cuMemAlloc(&memory, 4));
	check_ok(cuMemsetD32(memory, 0, 1));
	check_ok(cuStreamCreate(&waiter.stream, CU_STREAM_NON_BLOCKING));
	hold(waiter.stream, word);
	check_ok(cuMemsetD32Async(memory, 42, 1, waiter.stream));
	begin(&waiter);
	check_ok(cuStreamDestroy(waiter.stream));
	let_go(word);
	end(&waiter);
	check(waiter.result == CUDA_SUCCESS ||
		waiter.result == CUDA_ERROR_INVALID_HANDLE);
	check_eq(waiter.then, CUDA_SUCCESS);
	/* Its work is done nonetheless. */
	check_ok(cuCtxSynchronize());
	check_eq(device_word(memory), 42);
}

TEST(a_context_is_destroyed_while_a_thread_waits_in_it)
{
	struct fixture fixture = fixture_new();
	unsigned int *word = new_word();
	struct waiter waiter = {};
	CUcontext popped;

	check_ok(cuCtxCreate(&waiter.context, NULL, 0, fixture.device));
	check_ok(cuStreamCreate(&waiter.stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&waiter.event, CU_EVENT_DEFAULT));
	hold(waiter.stream, word);
	check_ok(cuEventRecord(waiter.event, waiter.stream));
	check_ok(cuCtxPopCurrent(&popped));
	begin(&waiter);
	check_ok(cuCtxDestroy(waiter.context));
	let_go(word);
	end(&waiter);
	/* It is current to that thread still, and of no use. */
	check_cu(waiter.then, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuCtxSynchronize());
}
