/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Marks: how the guest sees the progress of streams in memory
 *
 * Both sides count the stream-ordered calls of each stream in ring order. A mark
 * makes the device write the count to the stream's word once all work in front of it
 * is done, so the guest sees progress without asking.
 *
 * Only the dispatcher makes marks, because only it knows ring order: a mark must
 * cover exactly the calls in front of it. While a stream-ordered call waits on a lane,
 * its place in the stream is not decided yet, so a mark that falls due then is put
 * off until the last such call has been executed.
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

/* Streams whose mark waits. One that finds no place gets it with its next call, or its
 * guest asks by message: marks only save messages. */
#define MARKS_DUE_MAX 64u

struct marks {
	/* Stream-ordered calls on lanes, not yet executed. Atomic. */
	uint32_t n_pending;
	/* Marks put off: the count is atomic for those who only look, the list and the
	 * flags of streams in it are under the lock, which is also held while the marks
	 * are made: after marks_forget() the stream may be destroyed. */
	uint32_t n_due;
	pthread_mutex_t lock;
	struct stream *due[MARKS_DUE_MAX];
};

void marks_init(struct session *session);

/*
 * Binds a word and starts counting afresh, as the guest does.
 *
 * Return: CUDA_ERROR_INVALID_VALUE where there is no such word.
 */
CUresult mark_bind(struct session *session, struct stream *stream, uint32_t word);

/* Returns: how many stream-ordered calls of the stream were executed. */
uint64_t mark_issued(const struct stream *stream);

/*
 * Counts one stream-ordered call that was executed. The dispatcher marks if enough
 * calls went by since the last mark; a lane leaves that to it.
 */
void mark_count(struct session *session, struct runner *runner, struct stream *stream);

/* The same without counting: behind a call after which the guest wants to see progress.
 */
void mark_want(struct session *session, struct runner *runner, struct stream *stream);

/* Dispatcher: marks now, or as soon as no lane stands in the way. */
void mark_stream(struct session *session, struct runner *runner, struct stream *stream);

/*
 * Dispatcher: the guest counted `target` calls up to here. Calls that were refused before
 * their stream was known are missing in our count; they are done.
 */
void mark_cover(struct session *session, struct stream *stream, uint64_t target);

/* Whether marks were put off that can be made now. */
bool marks_are_due(struct session *session);

/* Dispatcher: makes them. */
void marks_make_due(struct session *session, struct runner *runner);

/* What stood in the way of marks is gone: rings the dispatcher if any wait for it. */
void marks_kick(struct session *session);

/* Dispatcher: a stream-ordered call goes to a lane. */
void marks_lane_begins(struct session *session);

/* Lane: it has been executed and counted. Rings the dispatcher if marks wait for it. */
void marks_lane_done(struct session *session);

/* A stream, or all of a context, is about to end: its marks are dropped. Any thread. */
void marks_forget(struct session *session, const struct stream *stream);
void marks_forget_context(struct session *session, const struct context *context);
