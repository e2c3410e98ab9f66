/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: waiting for events and streams, and queries of them
 *
 * A stream waits for a word of the host, so work that a test sees unfinished stays
 * unfinished until the test sets the word.
 */

#include <pthread.h>
#include <unistd.h>

#include "e2e.h"

/* More than words take part at first, see the guest's record.c. */
#define MANY_RECORDS 3000

static CUstream new_stream(void)
{
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static CUevent new_event(unsigned int flags)
{
	CUevent event;

	check_ok(cuEventCreate(&event, flags));
	return event;
}

/* Makes a stream wait. Return: the word that releases it when set. */
static unsigned int *hold(CUstream stream)
{
	unsigned int *word;
	CUdeviceptr p;

	check_ok(cuMemHostAlloc((void **)&word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&p, word, 0));
	*word = 0;
	check_ok(cuStreamWaitValue32(stream, p, 1, CU_STREAM_WAIT_VALUE_EQ));
	return word;
}

static void let_go(unsigned int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static void *let_go_soon(void *word)
{
	usleep(20000);
	let_go(word);
	return NULL;
}

static void let_go_while_waited_for(unsigned int *word)
{
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, let_go_soon, word), 0);
	check_eq(pthread_detach(thread), 0);
}

TEST(an_event_is_over_when_the_work_before_it_is)
{
	unsigned int flags[] = { CU_EVENT_DISABLE_TIMING, CU_EVENT_DEFAULT };
	unsigned int *word;
	CUstream stream;
	CUevent event;

	fixture_new();
	stream = new_stream();
	for (int i = 0; i < 6; i++) {
		event = new_event(flags[i % 2]);
		for (int round = 0; round < 3; round++) {
			word = hold(stream);
			check_ok(cuEventRecord(event, stream));
			for (int n = 0; n < 300; n++)
				check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
			let_go(word);
			check_ok(cuEventSynchronize(event));
			check_ok(cuEventQuery(event));
		}
	}
}

static void wait_in_both_ways(CUstream stream, CUevent event)
{
	unsigned int *word = hold(stream);

	check_ok(cuEventRecord(event, stream));
	let_go_while_waited_for(word);
	check_ok(cuEventSynchronize(event));
	check_eq(*word, 1);
	word = hold(stream);
	let_go_while_waited_for(word);
	check_ok(cuStreamSynchronize(stream));
	check_eq(*word, 1);
}

TEST(a_wait_longer_than_a_spin_ends_with_the_work)
{
	unsigned int flags[] = {
		CU_EVENT_DISABLE_TIMING,
		CU_EVENT_DEFAULT,
		CU_EVENT_BLOCKING_SYNC,
		CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING,
	};
	CUstream stream;

	fixture_new();
	stream = new_stream();
	for (int i = 0; i < 4; i++)
		wait_in_both_ways(stream, new_event(flags[i]));
}

TEST(in_a_context_that_blocks_waits_end_with_the_work)
{
	CUcontext context;
	CUstream stream;
	CUevent event;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	stream = new_stream();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	for (int i = 0; i < 3; i++)
		wait_in_both_ways(stream, event);
}

TEST(an_event_recorded_again_while_it_runs_is_over_with_the_later_record)
{
	CUstream first, second;
	unsigned int *word;
	CUevent event;

	fixture_new();
	first = new_stream();
	second = new_stream();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	word = hold(first);
	check_ok(cuEventRecord(event, first));
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	check_ok(cuEventRecord(event, second));
	check_ok(cuEventSynchronize(event));
	check_ok(cuEventQuery(event));
	check_ok(cuEventRecord(event, first));
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(word);
	check_ok(cuEventSynchronize(event));
}

TEST(an_event_that_a_stream_waited_for_is_over_when_that_stream_is)
{
	CUstream first, second;
	CUevent event;

	fixture_new();
	first = new_stream();
	second = new_stream();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	for (int i = 0; i < 500; i++) {
		check_ok(cuEventRecord(event, first));
		check_ok(cuStreamWaitEvent(second, event, 0));
		check_ok(cuStreamSynchronize(second));
		check_ok(cuEventQuery(event));
	}
}

TEST(events_destroyed_while_they_run_leave_others_alone)
{
	unsigned int *word;
	CUstream held, stream;
	CUevent event;

	fixture_new();
	held = new_stream();
	stream = new_stream();
	word = hold(held);
	for (int i = 0; i < 200; i++) {
		event = new_event(CU_EVENT_DISABLE_TIMING);
		check_ok(cuEventRecord(event, held));
		check_ok(cuEventDestroy(event));
	}
	for (int i = 0; i < MANY_RECORDS; i++) {
		event = new_event(CU_EVENT_DISABLE_TIMING);
		check_ok(cuEventRecord(event, stream));
		check_ok(cuEventSynchronize(event));
		check_ok(cuEventQuery(event));
		check_ok(cuEventDestroy(event));
	}
	check_cu(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
	let_go(word);
	check_ok(cuStreamSynchronize(held));
}

TEST(records_of_a_stream_that_is_destroyed_are_over_all_the_same)
{
	CUevent events[16];
	unsigned int *word;
	CUstream stream;

	fixture_new();
	stream = new_stream();
	word = hold(stream);
	for (int i = 0; i < 16; i++) {
		events[i] = new_event(CU_EVENT_DISABLE_TIMING);
		check_ok(cuEventRecord(events[i], stream));
	}
	let_go_while_waited_for(word);
	check_ok(cuStreamDestroy(stream));
	for (int i = 0; i < 16; i++)
		check_ok(cuEventSynchronize(events[i]));
}

TEST(an_event_of_a_whole_context_is_not_answered_by_the_previous_record)
{
	struct fixture fixture = fixture_new();
	unsigned int *word;
	CUstream stream;
	CUevent event;

	stream = new_stream();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	check_ok(cuEventRecord(event, stream));
	check_ok(cuEventSynchronize(event));
	word = hold(stream);
	check_ok(cuCtxRecordEvent(fixture.context, event));
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(word);
	check_ok(cuEventSynchronize(event));
	check_ok(cuEventQuery(event));
}

TEST(a_context_that_is_reset_takes_its_events_along)
{
	CUcontext context;
	CUstream stream;
	CUevent event, later;

	check_ok(cuInit(0));
	for (int i = 0; i < 3; i++) {
		check_ok(cuDevicePrimaryCtxRetain(&context, 0));
		check_ok(cuCtxSetCurrent(context));
		stream = new_stream();
		event = new_event(CU_EVENT_DISABLE_TIMING);
		for (int n = 0; n < 100; n++)
			check_ok(cuEventRecord(event, stream));
		check_ok(cuDevicePrimaryCtxReset(0));
		check(cuEventQuery(event) != CUDA_SUCCESS);
		check(cuEventSynchronize(event) != CUDA_SUCCESS);
	}
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	later = new_event(CU_EVENT_DISABLE_TIMING);
	for (int n = 0; n < MANY_RECORDS; n++) {
		check_ok(cuEventRecord(later, NULL));
		check_ok(cuEventSynchronize(later));
	}
}

TEST(a_query_of_a_stream_follows_its_work)
{
	CUstream streams[2];
	unsigned int *word;
	CUresult r;

	fixture_new();
	streams[0] = new_stream();
	check_ok(cuStreamCreate(&streams[1], CU_STREAM_DEFAULT));
	for (int i = 0; i < 20; i++) {
		CUstream stream = streams[i % 2];

		word = hold(stream);
		for (int n = 0; n < 200; n++)
			check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		let_go(word);
		while ((r = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
			;
		check_ok(r);
		check_ok(cuStreamQuery(stream));
	}
}

TEST(a_query_of_the_default_stream_follows_the_streams_that_it_waits_for)
{
	unsigned int *word;
	CUstream stream;
	CUresult r;

	fixture_new();
	stream = new_stream();
	word = hold(stream);
	check_ok(cuStreamSynchronize(NULL));
	check_ok(cuStreamQuery(NULL));
	let_go(word);
	check_ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	check_ok(cuStreamSynchronize(NULL));
	for (int i = 0; i < 20; i++) {
		word = hold(stream);
		check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
		let_go(word);
		check_ok(cuStreamSynchronize(NULL));
		check_ok(cuStreamQuery(NULL));
	}
	word = hold(stream);
	check_ok(cuStreamDestroy(stream));
	check_cu(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	let_go(word);
	while ((r = cuStreamQuery(NULL)) == CUDA_ERROR_NOT_READY)
		;
	check_ok(r);
	word = hold(CU_STREAM_PER_THREAD);
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	let_go(word);
	check_ok(cuStreamSynchronize(NULL));
}

/* Starts work that fails. */
static void begin_fault(struct fixture *fixture, CUstream stream)
{
	check_ok(launch_step(fixture_function(fixture, "step"), 16, 1, stream));
}

TEST(a_fault_ends_a_loop_that_polls_an_event)
{
	struct fixture fixture = fixture_new();
	CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
	CUstream stream = new_stream();
	CUresult r;

	begin_fault(&fixture, stream);
	/* The fault may be known before the record is made. */
	r = cuEventRecord(event, stream);
	if (r == CUDA_SUCCESS)
		while ((r = cuEventQuery(event)) == CUDA_ERROR_NOT_READY)
			;
	check_cu(r, CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_fault_ends_a_loop_that_polls_a_stream)
{
	struct fixture fixture = fixture_new();
	CUstream stream = new_stream();
	CUresult r;

	begin_fault(&fixture, stream);
	while ((r = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
		;
	check_cu(r, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_fault_ends_a_wait_for_an_event)
{
	struct fixture fixture = fixture_new();
	CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
	CUstream stream = new_stream();
	CUresult r;

	begin_fault(&fixture, stream);
	r = cuEventRecord(event, stream);
	if (r == CUDA_SUCCESS)
		r = cuEventSynchronize(event);
	check_cu(r, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_fault_ends_a_wait_for_a_stream)
{
	struct fixture fixture = fixture_new();
	CUstream stream = new_stream();

	begin_fault(&fixture, stream);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

struct waiter {
	CUcontext context;
	CUfunction step;
	unsigned int number;
};

static void *wait_in_all_ways(void *argument)
{
	const struct waiter *waiter = argument;
	unsigned int x = 1;
	CUevent event;
	CUstream stream;
	CUdeviceptr p;
	CUresult r;

	check_ok(cuCtxSetCurrent(waiter->context));
	stream = waiter->number % 2 ? new_stream() : CU_STREAM_PER_THREAD;
	event = new_event(waiter->number % 3 ? CU_EVENT_DISABLE_TIMING : 0);
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32Async(p, 1, 1, stream));
	for (int i = 0; i < 300; i++) {
		check_ok(launch_step(waiter->step, p, i % 50, stream));
		x = stepped(x, i % 50);
		check_ok(cuEventRecord(event, stream));
		r = CUDA_SUCCESS;
		if (i % 4 == 0)
			r = cuEventSynchronize(event);
		else if (i % 4 == 1)
			r = cuStreamSynchronize(stream);
		else if (i % 4 == 2)
			while ((r = cuEventQuery(event)) == CUDA_ERROR_NOT_READY)
				;
		else
			while ((r = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
				;
		check_ok(r);
		check_ok(cuEventQuery(event));
	}
	check_eq(device_word(p), x);
	return NULL;
}

TEST(eight_threads_wait_in_all_ways)
{
	struct fixture fixture = fixture_new();
	struct waiter waiters[8];
	pthread_t threads[8];

	for (unsigned int i = 0; i < 8; i++) {
		waiters[i] = (struct waiter){ fixture.context,
			fixture_function(&fixture, "step"), i };
		check_eq(pthread_create(&threads[i], NULL, wait_in_all_ways, &waiters[i]),
			0);
	}
	for (int i = 0; i < 8; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
}
