/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Streams: what the shim knows of each
 *
 * It counts the operations submitted to each stream; the worker counts those that it
 * issued, in the same order, and has the device write that number to the stream's
 * completion word. So the number in flight is a subtraction.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "process/order.h"
#include "wire/lock.h"

struct shim_context;
struct shim_thread;

/* More than this many operations of one stream are never in flight: a driver's launch
 * queue holds about 1000, and the host's dispatcher must never find it full. */
#define SHIM_STREAM_IN_FLIGHT_MAX 512u

/* Large operations whose position is recorded, see vgpu/graph.h. */
#define SHIM_STREAM_LARGE_MAX 64u

struct shim_stream {
	CUstream handle;
	struct shim_context *context;
	struct shim_context *green; /* the green context that it is in, or NULL */
	bool is_orphan;		    /* it ended with that */
	uint64_t id;		    /* of this life; no other stream has it */
	uint32_t context_epoch;	    /* the context's when this stream was bound */
	bool is_live;
	bool is_blocking; /* the default stream waits for it */
	uint32_t word;	  /* SHIM_WORD_NONE where none was left */
	struct shim_stream *next;

	/* Under the lock of the ring; atomic for those who only look. */
	uint64_t submitted;
	/* Atomic: of those, how many have a reply outstanding. The host may not have
	 * issued them, wherever they are in the ring. */
	uint32_t n_unanswered;
	/* Atomic: of those, how many are known to be complete, from a reply or from the
	 * word when it was read to find room. */
	uint64_t completed;
	/* Atomic: the count that the last requested mark covers. */
	uint64_t marked;

	/* Atomic: the positions of the last large operations. A race of threads that
	 * share the stream only makes one wait for the other. */
	uint32_t n_large;
	uint64_t large[SHIM_STREAM_LARGE_MAX];

	struct shim_lock order_lock;
	struct shim_order order;
	bool captures_to_graph; /* of the program, which need not ask for it again */

	/* Nodes of its capture that were returned to the program, see entry-capture.c. */
	struct shim_capture_list *capture_list;
};

/*
 * Finds the stream of a handle in the current context and waits until one operation more
 * may be in flight.
 *
 * Return: CUDA_ERROR_INVALID_HANDLE for what is no stream of this context.
 */
CUresult shim_stream_admit(
	struct shim_thread *thread, CUstream handle, struct shim_stream **streamp);

/* Before an operation with a lot of work: waits until fewer than that many of them, at
 * most SHIM_STREAM_LARGE_MAX, are in flight. */
CUresult shim_stream_admit_large(
	struct shim_thread *thread, CUstream handle, uint32_t n_in_flight);

/* The stream of a handle in the current context. */
CUresult shim_stream_find(CUstream handle, struct shim_stream **streamp);

/* The same, for a call that the host does not see: checks the context, too. */
CUresult shim_stream_find_checked(CUstream handle, struct shim_stream **streamp);

/* Returns: CUDA_ERROR_INVALID_HANDLE for what is no stream of the current context. */
CUresult shim_stream_check(CUstream handle);

/* Returns: how many operations were submitted to a stream. */
uint64_t shim_stream_submitted(const struct shim_stream *stream);

/* Returns: how many of them any later operation, of any thread, is behind on the host. */
uint64_t shim_stream_reach(const struct shim_stream *stream);

/* Reads what a stream knows of the order of others; adds to it, if it is still in that
 * life. */
void shim_stream_get_order(struct shim_stream *stream, struct shim_order *orderp);
void shim_stream_add_order(
	struct shim_stream *stream, uint64_t life, const struct shim_order *other);

/* Whether a stream waits for all blocking streams of its context, and they for it. */
bool shim_stream_is_barrier(const struct shim_stream *stream);

/* Returns: whether a stream's life still lasts and, if so, whether it is known to have
 * completed its first `count` operations, and their effects. */
enum shim_stream_progress {
	SHIM_STREAM_ENDED,
	SHIM_STREAM_BUSY,
	SHIM_STREAM_PAST,
};
enum shim_stream_progress shim_stream_progress(
	CUstream handle, const struct shim_context *context, uint64_t id, uint64_t count);

/* Counts an operation. Called under the lock of the ring. */
static inline void shim_stream_count(struct shim_stream *stream, bool is_answered)
{
	if (is_answered)
		__atomic_fetch_add(&stream->n_unanswered, 1, __ATOMIC_RELAXED);
	/* Partner: the load in synchronize(). */
	__atomic_store_n(&stream->submitted, stream->submitted + 1, __ATOMIC_RELEASE);
}

/* One of the operations that are to be answered is, or never will be. */
static inline void shim_stream_note_answer(struct shim_stream *stream)
{
	/* Partner: the load in synchronize(). */
	__atomic_fetch_sub(&stream->n_unanswered, 1, __ATOMIC_RELEASE);
}

/* Waits for all that was submitted to a stream, or asks whether it is done. */
CUresult shim_stream_synchronize(CUstream handle);
CUresult shim_stream_query(CUstream handle);

/* Waits for all that was submitted to a stream in a call to the host, for those who have
 * spun already: it sleeps until the driver's own wait is over. */
CUresult shim_stream_park(CUstream handle);

/* Returns: the context of a stream, or the current one, maybe a green one, for what is no
 * created stream. */
struct shim_context *shim_stream_context(CUstream handle);

/* Returns: the number of the green context of a created stream, 0 if it is in none. */
uint64_t shim_stream_partition(CUstream handle);

/* Makes a stream known that the host created in a context, maybe a green one. */
CUresult shim_stream_add(
	struct shim_context *context, CUstream handle, unsigned int flags);

/* Forgets a stream. Return: CUDA_ERROR_INVALID_HANDLE where there is none. */
CUresult shim_stream_remove(CUstream handle);

/* Forgets the streams of a context that ends. */
void shim_stream_drop_context(struct shim_context *context);

/* Forgets the per-thread streams of a thread that ends. */
void shim_stream_drop_thread(struct shim_thread *thread);
