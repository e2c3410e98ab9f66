/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: how the guest sees the progress of streams in memory
 */

#include <stdint.h>

#include "vgpu/log.h"
#include "vgpu/ring-layout.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/wait/debts.h"
#include "worker/wait/faults.h"
#include "worker/wait/marks.h"
#include "worker/wait/words.h"

void marks_init(struct session *session)
{
	pthread_mutex_init(&session->marks->lock, NULL);
}

CUresult mark_bind(struct session *session, struct stream *stream, uint32_t word)
{
	if (word >= VGPU_WORDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stream->word = word;
	stream->has_word = true;
	__atomic_store_n(&stream->issued, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&stream->issued_by_lanes, 0, __ATOMIC_RELAXED);
	stream->marked = 0;
	return CUDA_SUCCESS;
}

uint64_t mark_issued(const struct stream *stream)
{
	return __atomic_load_n(&stream->issued, __ATOMIC_RELAXED) +
	       __atomic_load_n(&stream->issued_by_lanes, __ATOMIC_RELAXED);
}

static bool is_blocked(struct session *session)
{
	/* Partners: the decrement in marks_lane_done(), the end of a capture. */
	return __atomic_load_n(&session->marks->n_pending, __ATOMIC_SEQ_CST) > 0 ||
	       session_is_capturing(session);
}

static void put_off(struct session *session, struct stream *stream)
{
	struct marks *marks = session->marks;

	pthread_mutex_lock(&marks->lock);
	if (!stream->due && marks->n_due < MARKS_DUE_MAX && stream_is_live(stream)) {
		stream->due = true;
		marks->due[marks->n_due] = stream;
		/* Partner: the load in marks_lane_done(). */
		__atomic_store_n(&marks->n_due, marks->n_due + 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&marks->lock);
}

static void make_mark(
	struct session *session, struct runner *runner, struct stream *stream)
{
	uint64_t issued = mark_issued(stream);
	CUresult result;

	if (issued == stream->marked)
		return;
	__atomic_store_n(&stream->marked, issued, __ATOMIC_RELAXED);
	result = context_enter(session, runner, stream->context);
	if (result == CUDA_SUCCESS) {
		result = word_write(session, stream->object.driver, stream->word, issued);
		debt_owe(session, stream);
	}
	if (fault_is_sticky(result))
		fault_note(session, stream->context, result);
	else if (result != CUDA_SUCCESS)
		vgpu_log_debug("a mark was refused with %d", result);
}

void mark_stream(struct session *session, struct runner *runner, struct stream *stream)
{
	if (!stream->has_word)
		return;
	if (is_blocked(session))
		put_off(session, stream);
	else
		make_mark(session, runner, stream);
}

void mark_count(struct session *session, struct runner *runner, struct stream *stream)
{
	uint64_t issued;

	/* Only the dispatcher, a single thread, writes `issued`. */
	if (runner->is_dispatcher)
		__atomic_store_n(&stream->issued, stream->issued + 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&stream->issued_by_lanes, 1, __ATOMIC_RELAXED);
	issued = mark_issued(stream);
	if (issued - __atomic_load_n(&stream->marked, __ATOMIC_RELAXED) <
			MARKS_INTERVAL ||
		!stream->has_word)
		return;
	mark_want(session, runner, stream);
}

void mark_want(struct session *session, struct runner *runner, struct stream *stream)
{
	if (!stream->has_word)
		return;
	if (runner->is_dispatcher)
		mark_stream(session, runner, stream);
	else
		put_off(session, stream);
}

void mark_cover(struct session *session, struct stream *stream, uint64_t target)
{
	/* While a lane has calls that are not counted yet, a smaller count is no
	 * error. */
	if (!is_blocked(session) && target > mark_issued(stream))
		__atomic_store_n(&stream->issued,
			target - __atomic_load_n(
					 &stream->issued_by_lanes, __ATOMIC_RELAXED),
			__ATOMIC_RELAXED);
}

bool marks_are_due(struct session *session)
{
	return __atomic_load_n(&session->marks->n_due, __ATOMIC_SEQ_CST) &&
	       !is_blocked(session);
}

void marks_make_due(struct session *session, struct runner *runner)
{
	struct marks *marks = session->marks;
	uint32_t i;

	if (!marks_are_due(session))
		return;
	pthread_mutex_lock(&marks->lock);
	/* A capture may be about to begin. Partner: captures_hold(). */
	if (is_blocked(session)) {
		pthread_mutex_unlock(&marks->lock);
		return;
	}
	for (i = 0; i < marks->n_due; i++) {
		marks->due[i]->due = false;
		make_mark(session, runner, marks->due[i]);
	}
	__atomic_store_n(&marks->n_due, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&marks->lock);
}

void marks_lane_begins(struct session *session)
{
	__atomic_fetch_add(&session->marks->n_pending, 1, __ATOMIC_RELAXED);
}

void marks_kick(struct session *session)
{
	if (__atomic_load_n(&session->marks->n_due, __ATOMIC_SEQ_CST))
		session_ring(session);
}

void marks_lane_done(struct session *session)
{
	/* Publishes the calls that this lane issued and counted; partner: is_blocked().
	 * seq_cst, as is the load in marks_kick(), to order them against put_off() and
	 * the last check before the dispatcher sleeps. */
	if (!__atomic_sub_fetch(&session->marks->n_pending, 1, __ATOMIC_SEQ_CST))
		marks_kick(session);
}

/* Removes that stream, or all of that context, from the list. */
static void forget(struct session *session, const struct stream *stream,
	const struct context *context)
{
	struct marks *marks = session->marks;
	uint32_t i, n_kept = 0;

	pthread_mutex_lock(&marks->lock);
	for (i = 0; i < marks->n_due; i++) {
		if (marks->due[i] != stream && marks->due[i]->context != context)
			marks->due[n_kept++] = marks->due[i];
		else
			marks->due[i]->due = false;
	}
	__atomic_store_n(&marks->n_due, n_kept, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&marks->lock);
}

void marks_forget(struct session *session, const struct stream *stream)
{
	forget(session, stream, NULL);
}

void marks_forget_context(struct session *session, const struct context *context)
{
	forget(session, NULL, context);
}
