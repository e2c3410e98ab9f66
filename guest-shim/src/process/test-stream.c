/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress of streams, against a host that answers at the test's command
 */

#include <pthread.h>
#include <sched.h>

#include "test.h"
#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"
#include "vgpu/ring.h"

#include "fake-host.h"
#include "process/call.h"
#include "process/context.h"
#include "process/stream.h"
#include "process/words.h"

/* The host's observations and orders; atomic. */
static struct {
	struct vgpu_ring_consumer consumer;
	uint32_t n_waits;     /* calls of cuStreamSynchronize */
	uint32_t word;	      /* bound last */
	CUresult fault;	      /* of the context */
	uint32_t n_questions; /* after it */
	bool holds;	      /* an answer back */
	bool may_answer;
	struct vgpu_frame held;
} host;

static struct shim_context *context;

static void answer(const struct vgpu_frame *frame)
{
	struct vgpu_reply_slot *slot = shim_channel_slot(&shim_channel, frame->lane);

	slot->size = 0;
	/* Partner: the acquire load of the caller. */
	__atomic_store_n(&slot->sequence, frame->sequence, __ATOMIC_RELEASE);
}

static void answer_fault(const struct vgpu_frame *frame)
{
	struct vgpu_reply_slot *slot = shim_channel_slot(&shim_channel, frame->lane);
	Vgpu__VgpuContextFaultReply reply = VGPU__VGPU_CONTEXT_FAULT_REPLY__INIT;

	reply.fault = (int32_t)host.fault;
	host.n_questions++;
	slot->size = (uint32_t)protobuf_c_message_pack(&reply.base, slot->body);
	__atomic_store_n(&slot->sequence, frame->sequence, __ATOMIC_RELEASE);
}

static void note_word(const struct vgpu_frame *frame)
{
	Vgpu__VgpuStreamWordRequest *request = vgpu__vgpu_stream_word_request__unpack(
		NULL, frame->size - sizeof(*frame), frame->body);

	check(request);
	__atomic_store_n(&host.word, request->word, __ATOMIC_RELAXED);
	vgpu__vgpu_stream_word_request__free_unpacked(request, NULL);
}

static void serve(const struct vgpu_frame *frame)
{
	if (frame->call == VGPU_CALL_vgpuStreamWord)
		note_word(frame);
	if (!(frame->flags & VGPU_FRAME_REPLY))
		return;
	if (frame->call == VGPU_CALL_cuMemsetD8Async) {
		host.held = *frame;
		__atomic_store_n(&host.holds, true, __ATOMIC_RELEASE);
		return;
	}
	if (frame->call == VGPU_CALL_vgpuContextFault) {
		answer_fault(frame);
		return;
	}
	if (frame->call == VGPU_CALL_cuStreamSynchronize)
		__atomic_add_fetch(&host.n_waits, 1, __ATOMIC_RELAXED);
	answer(frame);
}

static void *host_main(void *argument)
{
	const struct vgpu_frame *frame;

	for (;;) {
		if (!vgpu_ring_next(&host.consumer, &frame)) {
			serve(frame);
			vgpu_ring_release(&host.consumer);
			continue;
		}
		if (__atomic_load_n(&host.may_answer, __ATOMIC_ACQUIRE)) {
			answer(&host.held);
			__atomic_store_n(&host.may_answer, false, __ATOMIC_RELAXED);
		}
		sched_yield();
	}
	return argument;
}

static void begin(void)
{
	static const uint32_t ready = SHIM_READY;

	fake_host_start(&ready, &host.consumer, host_main);
	shim_context_setup(1);
	context = shim_context_primary(0);
	context->is_live = 1;
	check_eq(shim_context_push(context), CUDA_SUCCESS);
}

/* The function that closes the channel at exit does not know this one. */
static void end(void)
{
	static const uint32_t not_ready = SHIM_NEW;

	shim_statep = &not_ready;
}

static CUresult fill(CUstream stream, bool wants_result)
{
	Vgpu__CuMemsetD8AsyncRequest request = VGPU__CU_MEMSET_D8_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemsetD8Async);

	call.wants_result = wants_result;
	return shim_call_async(&call, &request.base, stream);
}

static void *fill_and_wait_for_the_result(void *stream)
{
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	check_eq(fill(stream, true), CUDA_SUCCESS);
	return NULL;
}

static void *fill_and_end(void *stream)
{
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	check_eq(fill(stream, false), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(stream), CUDA_SUCCESS);
	/* As the host does before it replies. */
	__atomic_store_n(&shim_channel.words[host.word].value, 1, __ATOMIC_RELEASE);
	return NULL;
}

static uint32_t n_waits(void)
{
	return __atomic_load_n(&host.n_waits, __ATOMIC_RELAXED);
}

static CUstream handle(uint32_t index)
{
	return (CUstream)(uintptr_t)vgpu_handle_make(VGPU_HANDLE_STREAM, index, 1);
}

/* The host may receive a call before the thread that sends it has counted it. */
static void wait_until_held_and_counted(CUstream handle)
{
	struct shim_stream *stream;

	check_eq(shim_stream_find(handle, &stream), CUDA_SUCCESS);
	while (!__atomic_load_n(&host.holds, __ATOMIC_ACQUIRE) ||
		!__atomic_load_n(&stream->submitted, __ATOMIC_ACQUIRE))
		sched_yield();
}

TEST(a_wait_does_not_cover_what_is_not_answered_yet)
{
	CUstream stream = handle(9);
	pthread_t thread;

	begin();
	check_eq(shim_stream_add(context, stream, 0), CUDA_SUCCESS);
	check_eq(pthread_create(&thread, NULL, fill_and_wait_for_the_result, stream), 0);
	wait_until_held_and_counted(stream);
	check_eq(shim_stream_synchronize(stream), CUDA_SUCCESS);
	check_eq(n_waits(), 1);
	__atomic_store_n(&host.may_answer, true, __ATOMIC_RELEASE);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(shim_stream_synchronize(stream), CUDA_SUCCESS);
	check_eq(n_waits(), 2);
	check_eq(shim_stream_synchronize(stream), CUDA_SUCCESS);
	check_eq(n_waits(), 2);
	end();
}

/* A wait that is not over is one message here, and one that is known to be is none. */
static uint32_t n_waits_of_two(CUstream stream)
{
	uint32_t before = n_waits();

	check_eq(fill(stream, false), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(stream), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(stream), CUDA_SUCCESS);
	return n_waits() - before;
}

TEST(the_default_stream_is_asked_about_only_where_it_waits_for_others)
{
	begin();
	check_eq(n_waits_of_two(NULL), 1);
	check_eq(shim_stream_add(context, handle(5), CU_STREAM_NON_BLOCKING),
		CUDA_SUCCESS);
	check_eq(n_waits_of_two(CU_STREAM_LEGACY), 1);
	check_eq(shim_stream_add(context, handle(6), CU_STREAM_DEFAULT), CUDA_SUCCESS);
	check_eq(n_waits_of_two(NULL), 2);
	check_eq(shim_stream_remove(handle(6)), CUDA_SUCCESS);
	check_eq(n_waits_of_two(NULL), 2);
	shim_context_wipe(context);
	context->is_live = 1;
	check_eq(n_waits_of_two(NULL), 1);
	check_eq(n_waits_of_two(CU_STREAM_PER_THREAD), 1);
	check_eq(n_waits_of_two(NULL), 2);
	end();
}

TEST(a_word_is_used_again_only_after_its_last_mark)
{
	uint32_t first, second;

	begin();
	check_eq(shim_stream_add(context, handle(0), 0), CUDA_SUCCESS);
	check_eq(fill(handle(0), false), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(handle(0)), CUDA_SUCCESS);
	first = host.word;
	check_eq(shim_stream_remove(handle(0)), CUDA_SUCCESS);

	check_eq(shim_stream_add(context, handle(1), 0), CUDA_SUCCESS);
	check_eq(fill(handle(1), false), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(handle(1)), CUDA_SUCCESS);
	second = host.word;
	check(second != first);
	__atomic_store_n(&shim_channel.words[second].value, 1, __ATOMIC_RELEASE);
	check_eq(shim_stream_remove(handle(1)), CUDA_SUCCESS);

	check_eq(shim_stream_add(context, handle(2), 0), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(handle(2)), CUDA_SUCCESS);
	check_eq(fill(handle(2), false), CUDA_SUCCESS);
	check_eq(shim_stream_synchronize(handle(2)), CUDA_SUCCESS);
	check_eq(host.word, second);
	end();
}

TEST(a_thread_that_ends_gives_its_words_back)
{
	pthread_t thread;
	uint32_t first;

	begin();
	check_eq(pthread_create(&thread, NULL, fill_and_end, CU_STREAM_PER_THREAD), 0);
	check_eq(pthread_join(thread, NULL), 0);
	first = host.word;
	check_eq(pthread_create(&thread, NULL, fill_and_end, CU_STREAM_PER_THREAD), 0);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(host.word, first);
	end();
}

TEST(a_context_that_is_reset_gives_the_words_of_all_its_streams_back)
{
	uint32_t greatest = 0;

	begin();
	for (int i = 0; i < 100; i++) {
		check_eq(shim_stream_add(context, handle(3), 0), CUDA_SUCCESS);
		check_eq(fill(handle(3), false), CUDA_SUCCESS);
		check_eq(fill(NULL, false), CUDA_SUCCESS);
		check_eq(fill(CU_STREAM_PER_THREAD, false), CUDA_SUCCESS);
		check_eq(shim_stream_synchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
		if (host.word > greatest)
			greatest = host.word;
		shim_context_wipe(context);
		context->is_live = 1;
	}
	check(greatest < SHIM_WORDS_STREAMS + 4);
	end();
}

TEST(a_wait_of_an_earlier_life_of_the_context_delays_nothing)
{
	begin();
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	/* The stream was bound anew while another thread noted how far it had come. */
	context->default_stream.submitted = 0;
	context->default_stream.completed = 8;
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	context->default_stream.large[0] = 8;
	context->default_stream.completed = 0;
	check_eq(shim_stream_admit_large(shim_thread_get(), NULL, 1), CUDA_SUCCESS);
	context->default_stream.large[0] = 8;
	context->default_stream.submitted = context->default_stream.completed = 1;
	check_eq(shim_stream_admit_large(shim_thread_get(), NULL, 1), CUDA_SUCCESS);
	end();
}

TEST(a_fault_is_asked_for_once_and_forgotten_with_its_context)
{
	begin();
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	host.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	__atomic_add_fetch(&shim_channel.control->n_faults, 1, __ATOMIC_RELEASE);
	check_eq(fill(NULL, false), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(shim_stream_synchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(host.n_questions, 1);
	shim_context_wipe(context);
	context->is_live = 1;
	host.fault = CUDA_SUCCESS;
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	/* A stream of another context is rejected. */
	__atomic_add_fetch(&shim_channel.control->n_faults, 1, __ATOMIC_RELEASE);
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	check_eq(fill(NULL, false), CUDA_SUCCESS);
	check_eq(host.n_questions, 2);
	end();
}
