/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fences: completion words that the device writes
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
#define FENCE_INTERVAL 64u

/* Streams whose mark waits. One that finds no place gets it with its next call, or its
 * guest asks by message: marks only save messages. */
#define FENCE_DUE_MAX 64u

/* Streams that owe a synchronising call. One that finds no place owes none: what the
 * driver does in such a call can wait for the next one. */
#define FENCE_OWING_MAX 64u

struct fences {
	/* Stream-ordered calls on lanes, not yet executed. Atomic. */
	uint32_t n_pending;
	/* Marks put off: the count is atomic for those who only look, the list and the
	 * flags of streams in it are under the lock, which is also held while the marks
	 * are made: who has called fence_forget() may destroy the stream. */
	uint32_t n_due;
	pthread_mutex_t lock;
	struct stream *due[FENCE_DUE_MAX];
	/* Streams in which words were written since the driver was last asked to wait for
	 * them. A wait that such a word ends never reaches the driver, whose waits also
	 * trim memory pools: the dispatcher makes up for it before it sleeps. The count
	 * is atomic for those who only look; the lock is as the other, and held while
	 * the calls are made. */
	uint32_t n_owing;
	pthread_mutex_t owing_lock;
	struct stream *owing[FENCE_OWING_MAX];
	/* Held while a fault is made known: who met it too does not answer before. */
	pthread_mutex_t fault_lock;
	/* Calls that lanes are at. Atomic. */
	uint32_t n_running;
	/* Whether the device can write words; constant. */
	bool stream_writes;
};

void fence_init(struct session *session);

/*
 * Binds a word and starts counting afresh, as the guest does.
 *
 * Return: CUDA_ERROR_INVALID_VALUE where there is no such word.
 */
CUresult fence_bind(struct session *session, struct stream *stream, uint32_t word);

/* Returns: how many stream-ordered calls of the stream were executed. */
uint64_t fence_issued(const struct stream *stream);

/*
 * Counts one stream-ordered call that was executed. The dispatcher marks if enough
 * calls went by since the last mark; a lane leaves that to it.
 */
void fence_count(struct session *session, struct runner *runner, struct stream *stream);

/* The same without counting: behind a call after which the guest wants to see progress.
 */
void fence_want_mark(
	struct session *session, struct runner *runner, struct stream *stream);

/* Dispatcher: marks now, or as soon as no lane stands in the way. */
void fence_mark(struct session *session, struct runner *runner, struct stream *stream);

/*
 * Dispatcher: the guest counted `target` calls up to here. Calls that were refused before
 * their stream was known are missing in our count; they are done.
 */
void fence_cover(struct session *session, struct stream *stream, uint64_t target);

/* Whether marks were put off that can be made now. */
bool fence_has_due(struct session *session);

/* Dispatcher: makes them. */
void fence_run_due(struct session *session, struct runner *runner);

/* A stream, or all of a context, is about to go: nothing is owed to it, nor by it, any
 * more. Any thread. */
void fence_forget(struct session *session, const struct stream *stream);
void fence_forget_context(struct session *session, const struct context *context);

/* What stood in the way of marks is gone: rings the dispatcher if any wait for it. */
void fence_kick(struct session *session);

/* Dispatcher: a stream-ordered call goes to a lane. */
void fence_lane_begins(struct session *session);

/* Lane: it has been executed and counted. Rings the dispatcher if marks wait for it. */
void fence_lane_done(struct session *session);

/*
 * Makes the device write a word when the work in front of it in the stream is done.
 * The context is current.
 */
CUresult fence_write_word(
	struct session *session, CUstream stream, uint32_t word, uint64_t value);

/* The same for the word of a record of an event, see ring-layout.h. */
CUresult fence_write_record(struct session *session, CUstream stream, uint64_t record);
void fence_write_record_now(struct session *session, uint64_t record);

/* Notes that a word is written in a stream: whoever waits by it owes the driver a call
 * that waits. Any thread. */
void fence_owe(struct session *session, struct stream *stream);

/* Dispatcher: makes the calls that are owed for streams that have nothing left to do. */
void fence_pay(struct session *session, struct runner *runner);

/* Writes a word here and now, for work that was never begun. */
void fence_write_word_now(struct session *session, uint32_t word, uint64_t value);

/* Notes a fault of a context's work; the guest finds in its control page that there is
 * one, and asks. The first one stays until the context is gone. */
void fence_note_fault(struct session *session, struct context *context, CUresult result);

/* Whether a result tells of a broken context rather than of the call it answers. */
bool fence_is_fault(CUresult result);
