/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Marks: how the guest sees the progress of streams in memory
 *
 * Both sides count the stream-ordered calls of each stream in ring order. A mark makes
 * the device write the count to the stream's word once all earlier work is complete, so
 * the guest sees progress without a message.
 *
 * Only the dispatcher makes marks, because only it knows ring order: a mark must cover
 * exactly the preceding calls. While a stream-ordered call waits on a lane, its place in
 * the stream is not decided yet, so marks are deferred until the last such call was
 * executed.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct context;
struct runner;
struct session;
struct stream;

/* The guest waits above 512 calls in flight; eight marks on the way keep it moving. */
#define MARKS_INTERVAL 64u

/* Streams with a deferred mark. Any further one gets its mark with its next call, or the
 * guest sends a message: marks only save messages. */
#define MARKS_DUE_MAX 64u

struct marks {
	/* Stream-ordered calls on lanes that are not executed yet. Atomic. */
	uint32_t n_pending;
	/* Deferred marks. The count is atomic, for reads without the lock; the list and
	 * the `due` flags of its streams are guarded by the lock. It is also held while
	 * the marks are made, so that a stream can be destroyed after marks_forget(). */
	uint32_t n_due;
	pthread_mutex_t lock;
	struct stream *due[MARKS_DUE_MAX];
};

void marks_init(struct session *session);

/*
 * Binds a word and resets the count, as the guest does.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE if there is no such word.
 */
CUresult mark_bind(struct session *session, struct stream *stream, uint32_t word);

/* Return: the number of stream-ordered calls executed on the stream. */
uint64_t mark_issued(const struct stream *stream);

/*
 * Counts an executed stream-ordered call. After MARKS_INTERVAL calls without a mark the
 * dispatcher makes one; a lane leaves that to the dispatcher.
 */
void mark_count(struct session *session, struct runner *runner, struct stream *stream);

/* Requests a mark regardless of the interval, after a call that takes long. */
void mark_want(struct session *session, struct runner *runner, struct stream *stream);

/* Dispatcher: makes a mark now, or defers it while lanes have stream-ordered calls. */
void mark_stream(struct session *session, struct runner *runner, struct stream *stream);

/*
 * Dispatcher: raises the count to the guest's `target`. Calls that were refused before
 * their stream was resolved are missing in the worker's count; they are complete.
 */
void mark_cover(struct session *session, struct stream *stream, uint64_t target);

/* Whether there are deferred marks that can be made now. */
bool marks_are_due(struct session *session);

/* Dispatcher: makes the deferred marks. */
void marks_make_due(struct session *session, struct runner *runner);

/* Wakes the dispatcher if there are deferred marks: the last obstacle is gone. */
void marks_kick(struct session *session);

/* Dispatcher: a stream-ordered call is queued to a lane. */
void marks_lane_begins(struct session *session);

/* Lane: the call was executed and counted. Wakes the dispatcher if there are deferred
 * marks. */
void marks_lane_done(struct session *session);

/* Cancels the deferred marks of a stream, or of all streams of a context, before
 * destruction. Any thread. */
void marks_forget(struct session *session, const struct stream *stream);
void marks_forget_context(struct session *session, const struct context *context);
