/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams
 *
 * Created streams are in a table by the index of their handle, read without a lock: an
 * entry, once made, stays allocated and is used again for the next stream of the index.
 * The default stream is part of its context, the per-thread one of a list of the thread.
 */

#include <stdlib.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"

#include "call.h"
#include "context.h"
#include "environment.h"
#include "lock.h"
#include "print.h"
#include "stream.h"
#include "table.h"
#include "wait.h"
#include "words.h"

/* A full stream whose word does not move for so long is asked about. */
#define STANDSTILL_NS 200000000ull

static struct shim_lock streams_lock;
static struct shim_table streams;

static uint64_t key(CUstream handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static bool is_default(CUstream handle)
{
	return !handle || handle == CU_STREAM_LEGACY;
}

static struct shim_stream *find_created(CUstream handle)
{
	struct shim_stream *stream;

	if (vgpu_handle_kind(key(handle)) != VGPU_HANDLE_STREAM)
		return NULL;
	stream = shim_table_get(&streams, vgpu_handle_index(key(handle)));
	return stream && stream->handle == handle && stream->is_live ? stream : NULL;
}

static struct shim_stream *find_per_thread(
	struct shim_thread *thread, struct shim_context *context)
{
	struct shim_stream *stream;

	for (stream = thread->streams; stream; stream = stream->next)
		if (stream->context == context)
			return stream;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return NULL;
	stream->handle = CU_STREAM_PER_THREAD;
	stream->word = SHIM_WORD_NONE;
	stream->next = thread->streams;
	thread->streams = stream;
	stream->context = context;
	return stream;
}

/* Gives the stream a word and tells the worker; counting starts again with the context.
 */
static CUresult bind(struct shim_context *context, struct shim_stream *stream)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuStreamWord);
	Vgpu__VgpuStreamWordRequest request = VGPU__VGPU_STREAM_WORD_REQUEST__INIT;

	CUresult result = CUDA_SUCCESS;

	/* Of an earlier life of the context: all work in it is over. */
	shim_word_give(stream->word);
	stream->submitted = 0;
	stream->completed = 0;
	stream->word = shim_word_take();
	if (stream->word != SHIM_WORD_NONE) {
		request.stream = key(stream->handle);
		request.word = stream->word;
		result = shim_call_async(&call, &request.base, 0);
	}
	stream->context_epoch = context->epoch;
	/* Last: nobody may use the stream before the worker knows its word. */
	__atomic_store_n(&stream->is_live, true, __ATOMIC_RELEASE);
	return result;
}

/* The default stream is bound at its first use, by whichever thread comes first. */
static CUresult bind_default(struct shim_context *context, struct shim_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	if (__atomic_load_n(&stream->is_live, __ATOMIC_ACQUIRE) &&
		stream->context_epoch == context->epoch)
		return CUDA_SUCCESS;
	shim_lock(&context->bind_lock);
	if (!stream->is_live || stream->context_epoch != context->epoch) {
		stream->context = context;
		result = bind(context, stream);
	}
	shim_unlock(&context->bind_lock);
	return result;
}

static CUresult find(
	struct shim_thread *thread, CUstream handle, struct shim_stream **streamp)
{
	struct shim_context *context = shim_thread_context(thread);

	if (is_default(handle)) {
		*streamp = &context->default_stream;
		return bind_default(context, *streamp);
	}
	if (handle == CU_STREAM_PER_THREAD) {
		*streamp = find_per_thread(thread, context);
		return *streamp ? bind_default(context, *streamp)
				: CUDA_ERROR_OUT_OF_MEMORY;
	}
	*streamp = find_created(handle);
	return *streamp ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Returns: a number that at least so many of the stream's operations have reached. */
static uint64_t done(const struct shim_stream *stream)
{
	uint64_t completed = __atomic_load_n(&stream->completed, __ATOMIC_RELAXED);
	uint64_t word = stream->word == SHIM_WORD_NONE ? 0 : shim_word_read(stream->word);

	return word > completed ? word : completed;
}

static uint64_t submitted(const struct shim_stream *stream)
{
	/* Partner: the store in shim_stream_count(). */
	return __atomic_load_n(&stream->submitted, __ATOMIC_ACQUIRE);
}

/*
 * Whether the word tells that nothing is left to wait for. The default stream also waits
 * for the work of all blocking streams, of which its own word knows nothing.
 */
static bool is_answered_by_word(const struct shim_stream *stream)
{
	return !shim_environment.is_synchronous && !is_default(stream->handle) &&
	       done(stream) >= submitted(stream);
}

static CUresult synchronize(struct shim_stream *stream)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamSynchronize);
	Vgpu__CuStreamSynchronizeRequest request =
		VGPU__CU_STREAM_SYNCHRONIZE_REQUEST__INIT;
	uint64_t target = submitted(stream);
	/* What another thread has no answer to yet may be issued after the host has
	 * looked. Partner: the decrement in shim_stream_note_answer(). */
	bool covers_all = !__atomic_load_n(&stream->n_unanswered, __ATOMIC_ACQUIRE);
	CUresult result;

	request.h_stream = key(stream->handle);
	request.target = target;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_stream_synchronize_reply__descriptor, NULL);
	/* Of two that say so, the later target stays; either is true. */
	if (result == CUDA_SUCCESS && covers_all && stream->completed < target)
		__atomic_store_n(&stream->completed, target, __ATOMIC_RELAXED);
	return result;
}

/* Lets some time pass for a stream that is full. Without a word, or with one that stands
 * still, only the driver can tell more. */
static CUresult await_progress(struct shim_stream *stream, struct shim_wait *wait)
{
	CUresult fault = shim_context_fault(stream->context);

	if (fault)
		return fault;
	if (stream->word == SHIM_WORD_NONE || shim_wait_ns(wait) > STANDSTILL_NS)
		return synchronize(stream);
	return shim_wait_turn(wait, &shim_channel) ? CUDA_SUCCESS : SHIM_ERROR_HOST_GONE;
}

CUresult shim_stream_check(CUstream handle)
{
	struct shim_stream *stream;

	return find(shim_thread_get(), handle, &stream);
}

CUresult shim_stream_admit(
	struct shim_thread *thread, CUstream handle, struct shim_stream **streamp)
{
	struct shim_wait wait = {};
	CUresult result;

	result = find(thread, handle, streamp);
	while (result == CUDA_SUCCESS &&
		submitted(*streamp) - done(*streamp) >= SHIM_STREAM_IN_FLIGHT_MAX)
		result = await_progress(*streamp, &wait);
	return result;
}

/* The stream of a call that a word may answer, checked as if it travelled. */
static CUresult find_for_wait(CUstream handle, struct shim_stream **streamp)
{
	struct shim_thread *thread = shim_thread_get();
	CUresult result;

	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (thread->is_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	result = shim_context_check(shim_thread_context(thread));
	return result == CUDA_SUCCESS ? find(thread, handle, streamp) : result;
}

struct shim_context *shim_stream_context(CUstream handle)
{
	const struct shim_stream *stream = find_created(handle);
	struct shim_thread *thread = shim_thread_get();

	if (stream)
		return stream->context;
	return thread ? shim_thread_context(thread) : NULL;
}

CUresult shim_stream_synchronize(CUstream handle)
{
	struct shim_stream *stream;
	CUresult result, fault;

	SHIM_CHECK_READY();
	result = find_for_wait(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	fault = shim_context_fault(stream->context);
	if (shim_print_is_owed(&shim_channel))
		return synchronize(stream);
	if (fault)
		return fault;
	if (is_answered_by_word(stream))
		return CUDA_SUCCESS;
	return synchronize(stream);
}

CUresult shim_stream_query(CUstream handle)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamQuery);
	Vgpu__CuStreamQueryRequest request = VGPU__CU_STREAM_QUERY_REQUEST__INIT;
	struct shim_stream *stream;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_for_wait(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_context_fault(stream->context) && is_answered_by_word(stream))
		return CUDA_SUCCESS;
	request.h_stream = key(handle);
	return shim_call_sync(
		&call, &request.base, &vgpu__cu_stream_query_reply__descriptor, NULL);
}

CUresult shim_stream_add(struct shim_context *context, CUstream handle)
{
	uint32_t index = vgpu_handle_index(key(handle));
	struct shim_stream *stream;

	shim_lock(&streams_lock);
	stream = shim_table_get(&streams, index);
	if (!stream) {
		stream = calloc(1, sizeof(*stream));
		if (stream)
			stream->word = SHIM_WORD_NONE;
		if (stream && !shim_table_set(&streams, index, stream)) {
			free(stream);
			stream = NULL;
		}
	}
	if (stream) {
		stream->handle = handle;
		stream->context = context;
	}
	shim_unlock(&streams_lock);
	return stream ? bind(context, stream) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A word that the device may still write is never used again: only the last mark in the
 * word itself tells that none will follow, a wait by message may be over before it. */
static void retire(struct shim_stream *stream)
{
	stream->is_live = false;
	if (stream->word != SHIM_WORD_NONE &&
		shim_word_read(stream->word) >= submitted(stream))
		shim_word_give(stream->word);
	stream->word = SHIM_WORD_NONE;
}

CUresult shim_stream_remove(CUstream handle)
{
	struct shim_stream *stream = find_created(handle);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	retire(stream);
	return CUDA_SUCCESS;
}

/* The host lets all work end before a context goes: no mark will follow. */
static void drop(struct shim_stream *stream)
{
	stream->is_live = false;
	shim_word_give(stream->word);
	stream->word = SHIM_WORD_NONE;
}

static void drop_if_of_context(void *entry, void *context)
{
	struct shim_stream *stream = entry;

	if (stream->is_live && stream->context == context)
		drop(stream);
}

void shim_stream_drop_context(struct shim_context *context)
{
	shim_lock(&streams_lock);
	shim_table_each(&streams, drop_if_of_context, context);
	shim_unlock(&streams_lock);
	drop(&context->default_stream);
}

void shim_stream_drop_thread(struct shim_thread *thread)
{
	while (thread->streams) {
		struct shim_stream *stream = thread->streams;

		thread->streams = stream->next;
		retire(stream);
		free(stream);
	}
}
