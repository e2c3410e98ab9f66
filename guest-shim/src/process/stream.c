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

#include "process/call.h"
#include "process/context.h"
#include "process/environment.h"
#include "process/print.h"
#include "process/stream.h"
#include "process/words.h"
#include "wire/lock.h"
#include "wire/table.h"
#include "wire/wait.h"

/* The host is asked about a full stream whose word has not changed for this long. */
#define STANDSTILL_NS 200000000ull

static struct shim_lock streams_lock;
static struct shim_table streams;
static uint64_t n_lives; /* atomic: of all streams so far */

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

/* The streams of a green context are left when it is destroyed. */
static CUresult why_not_found(CUstream handle)
{
	const struct shim_stream *stream = NULL;

	if (vgpu_handle_kind(key(handle)) == VGPU_HANDLE_STREAM)
		stream = shim_table_get(&streams, vgpu_handle_index(key(handle)));
	return stream && stream->handle == handle && stream->is_orphan
		       ? CUDA_ERROR_CONTEXT_IS_DESTROYED
		       : CUDA_ERROR_INVALID_HANDLE;
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
	stream->is_blocking = true;
	stream->word = SHIM_WORD_NONE;
	stream->next = thread->streams;
	thread->streams = stream;
	stream->context = context;
	return stream;
}

/* A stream that begins a life knows nothing of others. */
static void begin_order(struct shim_stream *stream)
{
	SHIM_LOCKED(&stream->order_lock);
	stream->order.life = stream->id;
	stream->order.n = stream->order.next = 0;
}

/* Binds a word to the stream and tells the worker its number; counting starts again with
 * the context. */
static CUresult bind(struct shim_context *context, struct shim_stream *stream)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuStreamWord);
	Vgpu__VgpuStreamWordRequest request = VGPU__VGPU_STREAM_WORD_REQUEST__INIT;

	CUresult result = CUDA_SUCCESS;

	/* Of an earlier life of the context: all work in it is over. */
	shim_words_give(stream->word);
	__atomic_store_n(&stream->id, __atomic_add_fetch(&n_lives, 1, __ATOMIC_RELAXED),
		__ATOMIC_RELAXED);
	/* Before the counts: shim_stream_progress() reads it after them. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	begin_order(stream);
	stream->submitted = 0;
	stream->completed = 0;
	stream->marked = 0;
	stream->n_large = 0;
	stream->captures_to_graph = false;
	/* The default stream of a green context has none: the dispatcher would have to
	 * make the context current for marks, and CUDA allows that in one thread at a
	 * time. */
	stream->word = context->green ? SHIM_WORD_NONE : shim_words_take();
	if (stream->word != SHIM_WORD_NONE) {
		request.stream = key(stream->handle);
		request.word = stream->word;
		result = shim_call_async(&call, &request.base, 0);
	}
	stream->context_epoch = context->epoch;
	if (stream->is_blocking)
		__atomic_store_n(&context->has_blocking_streams, true, __ATOMIC_RELAXED);
	/* Last: no thread may use the stream before the worker knows its word. */
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

static __attribute__((__noinline__)) CUresult find_default(
	struct shim_thread *thread, CUstream handle, struct shim_stream **streamp)
{
	struct shim_context *context = shim_thread_top(thread);

	if (is_default(handle)) {
		*streamp = &context->default_stream;
		return bind_default(context, *streamp);
	}
	/* As cuStreamGetCtx_v2 documents. */
	if (context->green)
		return CUDA_ERROR_INVALID_HANDLE;
	*streamp = find_per_thread(thread, context);
	return *streamp ? bind_default(context, *streamp) : CUDA_ERROR_OUT_OF_MEMORY;
}

static inline CUresult find(
	struct shim_thread *thread, CUstream handle, struct shim_stream **streamp)
{
	if (is_default(handle) || handle == CU_STREAM_PER_THREAD)
		return find_default(thread, handle, streamp);
	*streamp = find_created(handle);
	return *streamp ? CUDA_SUCCESS : why_not_found(handle);
}

/* Returns: a number that at least so many of the stream's operations have reached. */
static uint64_t known_done(const struct shim_stream *stream)
{
	/* Whoever gets the number reads what the operations wrote. Partner: note_done().
	 */
	return __atomic_load_n(&stream->completed, __ATOMIC_ACQUIRE);
}

/* The same, with a look at what the device wrote. */
static uint64_t done(const struct shim_stream *stream)
{
	uint64_t completed = known_done(stream);
	uint64_t word =
		stream->word == SHIM_WORD_NONE ? 0 : shim_words_read(stream->word);

	return word > completed ? word : completed;
}

static uint64_t submitted(const struct shim_stream *stream)
{
	/* Partner: the store in shim_stream_count(). */
	return __atomic_load_n(&stream->submitted, __ATOMIC_ACQUIRE);
}

/*
 * Whether a stream's words and replies cover all of its work. The default stream is
 * complete when all blocking streams are: also those of other threads, and work of
 * destroyed ones.
 */
static bool has_own_progress(const struct shim_stream *stream)
{
	return shim_words_answer() && !stream->context->green &&
	       (!is_default(stream->handle) ||
		       !__atomic_load_n(
			       &stream->context->has_blocking_streams, __ATOMIC_RELAXED));
}

/* Whether memory shows that all work is complete. */
static bool is_known_to_be_done(const struct shim_stream *stream)
{
	return has_own_progress(stream) && done(stream) >= submitted(stream);
}

/* How far a look at a stream, which is about to be made, will reach. */
static uint64_t reach(const struct shim_stream *stream)
{
	uint64_t target = submitted(stream);

	/* A call of another thread that has no reply yet may be issued after the host has
	 * looked. Partner: the decrement in shim_stream_note_answer(). */
	return __atomic_load_n(&stream->n_unanswered, __ATOMIC_ACQUIRE) ? 0 : target;
}

/* Returns: how many operations are in flight. The count of completed ones may be too high
 * for a moment: a thread that waited in the previous life of a context that another
 * thread resets reports it in the next life. */
static uint64_t in_flight(const struct shim_stream *stream, uint64_t n_done)
{
	uint64_t n = submitted(stream);

	return n > n_done ? n - n_done : 0;
}

/* If two threads report, the later target stays; either is true. One beyond the submitted
 * count is of an earlier life of the context. */
static void note_done(struct shim_stream *stream, uint64_t target)
{
	if (__atomic_load_n(&stream->completed, __ATOMIC_RELAXED) < target &&
		target <= submitted(stream))
		/* Partner: known_done() of another thread. */
		__atomic_store_n(&stream->completed, target, __ATOMIC_RELEASE);
}

/* @has_spun: whether the caller has, so that there is no sense in doing it again */
static CUresult synchronize(struct shim_stream *stream, bool has_spun)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamSynchronize);
	Vgpu__CuStreamSynchronizeRequest request =
		VGPU__CU_STREAM_SYNCHRONIZE_REQUEST__INIT;
	uint64_t target = reach(stream);
	CUresult result;

	call.parks = has_spun;
	request.h_stream = key(stream->handle);
	request.target = submitted(stream);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_stream_synchronize_reply__descriptor, NULL);
	if (result == CUDA_SUCCESS)
		note_done(stream, target);
	return result;
}

/*
 * Waits for a mark after all submitted work. The default stream starts nothing before all
 * blocking streams are complete, so a mark in it covers them too.
 *
 * The waiting thread is not registered anywhere. If the mark does not arrive while it
 * spins, the thread sleeps in a cuStreamSynchronize on its lane: that host thread waits
 * in the driver, which reports faults and flushes output of kernels. A separate kind of
 * waiter for words would have to do all that again.
 */
static CUresult await_mark(struct shim_thread *thread, struct shim_stream *stream)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuStreamMark);
	Vgpu__VgpuStreamMarkRequest request = VGPU__VGPU_STREAM_MARK_REQUEST__INIT;
	uint64_t target = reach(stream);
	CUresult result;

	request.stream = key(stream->handle);
	request.word = SHIM_WORDS_LANES + thread->lane;
	request.value = shim_words_read(request.word) + 1;
	result = shim_call_async(&call, &request.base, stream->handle);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_wait_word(&thread->pace, &shim_channel.words[request.word].value,
		    request.value, false))
		return synchronize(stream, true);
	note_done(stream, target);
	return CUDA_SUCCESS;
}

/* Waits a while for a full stream. Without a word, or with one that does not change, only
 * the driver can tell more. */
static CUresult await_progress(struct shim_stream *stream, struct shim_wait *wait)
{
	CUresult fault = shim_context_fault(stream->context);

	if (fault)
		return fault;
	if (stream->word == SHIM_WORD_NONE || shim_wait_ns(wait) > STANDSTILL_NS)
		return synchronize(stream, true);
	return shim_wait_turn(wait, &shim_channel) ? CUDA_SUCCESS : SHIM_ERROR_HOST_GONE;
}

/* Waits until one operation more may be in flight. */
static __attribute__((__noinline__)) CUresult await_room(
	const struct shim_thread *thread, struct shim_stream *stream)
{
	struct shim_wait wait = { .is_together = thread->pace.n_together };
	CUresult result = CUDA_SUCCESS;

	/* While a capture is live every call has a reply, and a wait would end the
	 * capture. */
	while (result == CUDA_SUCCESS &&
		in_flight(stream, done(stream)) >= SHIM_STREAM_IN_FLIGHT_MAX &&
		!shim_channel_has_capture())
		result = await_progress(stream, &wait);
	note_done(stream, done(stream));
	return result;
}

CUresult shim_stream_find(CUstream handle, struct shim_stream **streamp)
{
	return find(shim_thread_get(), handle, streamp);
}

CUresult shim_stream_check(CUstream handle)
{
	struct shim_stream *stream;

	return find(shim_thread_get(), handle, &stream);
}

CUresult shim_stream_admit(
	struct shim_thread *thread, CUstream handle, struct shim_stream **streamp)
{
	CUresult result = find(thread, handle, streamp);

	/* The device's word is in a line that the other side writes: it is read only if
	 * the cached value does not suffice. */
	if (result != CUDA_SUCCESS ||
		__builtin_expect(in_flight(*streamp, known_done(*streamp)) <
					 SHIM_STREAM_IN_FLIGHT_MAX,
			1))
		return result;
	return await_room(thread, *streamp);
}

CUresult shim_stream_admit_large(
	struct shim_thread *thread, CUstream handle, uint32_t n_in_flight)
{
	struct shim_wait wait = { .is_together = thread->pace.n_together };
	struct shim_stream *stream;
	uint64_t before, *large;
	CUresult result;
	uint32_t n;

	result = find(thread, handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	n = __atomic_fetch_add(&stream->n_large, 1, __ATOMIC_RELAXED);
	large = &stream->large[(n - n_in_flight) % SHIM_STREAM_LARGE_MAX];
	before = n < n_in_flight ? 0 : __atomic_load_n(large, __ATOMIC_RELAXED);
	/* In the next life of its context a stream may not have come so far. */
	while (result == CUDA_SUCCESS && done(stream) < before &&
		in_flight(stream, done(stream)) && !shim_channel_has_capture())
		result = await_progress(stream, &wait);
	large = &stream->large[n % SHIM_STREAM_LARGE_MAX];
	__atomic_store_n(large, submitted(stream) + 1, __ATOMIC_RELAXED);
	return result;
}

CUresult shim_stream_find_checked(CUstream handle, struct shim_stream **streamp)
{
	struct shim_thread *thread = shim_thread_get();
	CUresult result;

	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_context_check(shim_thread_context(thread));
	return result == CUDA_SUCCESS ? find(thread, handle, streamp) : result;
}

uint64_t shim_stream_submitted(const struct shim_stream *stream)
{
	return submitted(stream);
}

uint64_t shim_stream_reach(const struct shim_stream *stream)
{
	return reach(stream);
}

void shim_stream_get_order(struct shim_stream *stream, struct shim_order *orderp)
{
	SHIM_LOCKED(&stream->order_lock);
	*orderp = stream->order;
}

void shim_stream_add_order(
	struct shim_stream *stream, uint64_t life, const struct shim_order *other)
{
	SHIM_LOCKED(&stream->order_lock);
	if (stream->order.life == life)
		shim_order_add(&stream->order, other);
}

bool shim_stream_is_barrier(const struct shim_stream *stream)
{
	return is_default(stream->handle) &&
	       __atomic_load_n(&stream->context->has_blocking_streams, __ATOMIC_RELAXED);
}

static bool has_id(const struct shim_stream *stream, uint64_t id)
{
	return __atomic_load_n(&stream->id, __ATOMIC_ACQUIRE) == id;
}

enum shim_stream_progress shim_stream_progress(
	CUstream handle, const struct shim_context *context, uint64_t id, uint64_t count)
{
	const struct shim_stream *stream =
		is_default(handle) ? &context->default_stream : find_created(handle);
	bool is_past;

	/* A per-thread stream belongs to a thread that may end. */
	if (!stream || !has_id(stream, id) || !stream->is_live)
		return SHIM_STREAM_ENDED;
	is_past = done(stream) >= count;
	/* What was read may be of the next life. Partner: the fence in bind(). */
	if (!has_id(stream, id))
		return SHIM_STREAM_ENDED;
	return is_past ? SHIM_STREAM_PAST : SHIM_STREAM_BUSY;
}

struct shim_context *shim_stream_context(CUstream handle)
{
	const struct shim_stream *stream = find_created(handle);
	struct shim_thread *thread = shim_thread_get();

	if (stream)
		return stream->context;
	return thread ? shim_thread_top(thread) : NULL;
}

uint64_t shim_stream_partition(CUstream handle)
{
	const struct shim_stream *stream = find_created(handle);

	return stream && stream->green ? stream->green->id : 0;
}

/* Whether a wait is a message from the start: if words may not answer, or if it would
 * sleep at once anyway. A thread without a lane has no word. */
static bool waits_by_message(
	const struct shim_thread *thread, const struct shim_stream *stream)
{
	return !shim_words_answer() || !thread->has_lane || stream->context->green ||
	       shim_context_blocks(stream->context);
}

CUresult shim_stream_synchronize(CUstream handle)
{
	struct shim_thread *thread;
	struct shim_stream *stream;
	CUresult result, fault;

	SHIM_CHECK_READY();
	result = shim_stream_find_checked(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	fault = shim_context_fault(stream->context);
	if (shim_print_is_owed(&shim_channel))
		return synchronize(stream, false);
	if (fault)
		return fault;
	if (is_known_to_be_done(stream))
		return CUDA_SUCCESS;
	thread = shim_thread_get();
	if (waits_by_message(thread, stream))
		return synchronize(stream, shim_context_blocks(stream->context));
	return await_mark(thread, stream);
}

CUresult shim_stream_park(CUstream handle)
{
	struct shim_stream *stream;
	CUresult result;

	result = shim_stream_find_checked(handle, &stream);
	return result == CUDA_SUCCESS ? synchronize(stream, true) : result;
}

/*
 * Takes a poll that can be answered from memory: a mark was requested that covers all
 * submitted work, and has not arrived. Now and then the host is asked all the same, as
 * for events.
 */
static bool take_poll(struct shim_thread *thread, const struct shim_stream *stream)
{
	return has_own_progress(stream) && stream->word != SHIM_WORD_NONE &&
	       __atomic_load_n(&stream->marked, __ATOMIC_RELAXED) >= submitted(stream) &&
	       shim_wait_take_poll(&thread->pace);
}

CUresult shim_stream_query(CUstream handle)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamQuery);
	Vgpu__CuStreamQueryRequest request = VGPU__CU_STREAM_QUERY_REQUEST__INIT;
	struct shim_stream *stream;
	uint64_t target;
	CUresult result;

	SHIM_CHECK_READY();
	result = shim_stream_find_checked(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_context_fault(stream->context)) {
		if (is_known_to_be_done(stream))
			return CUDA_SUCCESS;
		if (take_poll(shim_thread_get(), stream))
			return CUDA_ERROR_NOT_READY;
	}
	target = reach(stream);
	request.h_stream = key(handle);
	request.target = submitted(stream);
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_stream_query_reply__descriptor, NULL);
	if (result == CUDA_SUCCESS)
		note_done(stream, target);
	else if (result == CUDA_ERROR_NOT_READY && target)
		__atomic_store_n(&stream->marked, target, __ATOMIC_RELAXED);
	return result;
}

CUresult shim_stream_add(
	struct shim_context *context, CUstream handle, unsigned int flags)
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
		stream->context = shim_context_home(context);
		stream->green = context->green ? context : NULL;
		stream->is_orphan = false;
		stream->is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
	}
	shim_unlock(&streams_lock);
	return stream ? bind(stream->context, stream) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A word that the device may still write is never reused: only the last mark in the word
 * itself proves that none will follow, because a wait by message may end before it. */
static void retire(struct shim_stream *stream)
{
	stream->is_live = false;
	if (stream->word != SHIM_WORD_NONE &&
		shim_words_read(stream->word) >= submitted(stream))
		shim_words_give(stream->word);
	stream->word = SHIM_WORD_NONE;
}

CUresult shim_stream_remove(CUstream handle)
{
	struct shim_stream *stream = find_created(handle);

	if (!stream)
		return why_not_found(handle);
	retire(stream);
	return CUDA_SUCCESS;
}

/* The host ends all work before a context ends: no mark will follow. */
static void drop(struct shim_stream *stream)
{
	stream->is_live = false;
	shim_words_give(stream->word);
	stream->word = SHIM_WORD_NONE;
}

static void drop_if_of_context(void *entry, void *context)
{
	struct shim_stream *stream = entry;

	if (stream->is_live && (stream->context == context || stream->green == context)) {
		stream->is_orphan = stream->green == context;
		drop(stream);
	}
}

void shim_stream_drop_context(struct shim_context *context)
{
	shim_lock(&streams_lock);
	shim_table_each(&streams, drop_if_of_context, context);
	shim_unlock(&streams_lock);
	drop(&context->default_stream);
	__atomic_store_n(&context->has_blocking_streams, false, __ATOMIC_RELAXED);
}

void shim_stream_drop_thread(struct shim_thread *thread)
{
	while (thread->streams) {
		struct shim_stream *stream = thread->streams;

		thread->streams = stream->next;
		retire(stream);
		free(stream->capture_list);
		free(stream);
	}
}
