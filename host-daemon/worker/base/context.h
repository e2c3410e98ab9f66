/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Contexts and the streams in them
 *
 * A guest thread's current context is a handle kept with its lane. A thread of the
 * worker that is about to call the driver for a lane enters that context first;
 * what it entered last is remembered in its `struct runner`, so entering the same
 * again costs a comparison.
 *
 * Primary contexts have fixed handles and exist as entries from the start. The
 * driver's object is retained when first needed, once and by the worker itself: the
 * guest's retains are counted here, and when the last goes, or at a reset, that one
 * retain is given back and all that lived in the context is forgotten. Until that is
 * done a lane that wants the context anew waits; the dispatcher, which must not wait, has
 * its call refused, as if the context had gone a moment later.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/objects.h"
#include "worker/base/scratch.h"
#include "worker/base/uses.h"

struct session;

struct stream {
	struct object object;
	struct context *context;
	bool is_entry; /* of the table: lives as long as its handle */
	bool has_word;
	uint32_t word; /* completion word that marks go to */
	bool due;      /* a mark was put off, see wait/marks.h */
	bool owes;     /* a synchronising call, see wait/debts.h; atomic */
	/* Stream-ordered calls executed, by the dispatcher and by lanes: two counts, so
	 * that the former needs no locked instruction. Atomic; see mark_issued(). */
	uint64_t issued;
	uint64_t issued_by_lanes;
	uint64_t marked; /* of them covered by a mark; atomic, the dispatcher writes */
};

struct event {
	struct object object;
	bool has_timing;
};

/* A function or kernel. */
struct kernel {
	struct object object;
	bool is_known; /* param_size is; atomic */
	uint32_t param_size;
};

struct context {
	struct object object; /* driver: NULL while a primary context is not retained */
	CUdevice device;
	bool primary;
	uint32_t n_retains;   /* of the guest, for a primary context */
	bool is_leaving;      /* a thread ends it; contexts.lock */
	uint32_t life;	      /* grows when what is in it goes; contexts.lock */
	uint32_t fault;	      /* CUresult that broke it, the first; atomic */
	struct stream legacy; /* stream 0 */
	uint64_t array_bytes; /* charged for its arrays; contexts.lock */
};

/* What a thread that calls the driver keeps for itself. */
struct runner {
	bool is_dispatcher;
	/* Entered last, and the count of context deaths then (see contexts.n_deaths). */
	struct context *entered;
	uint32_t generation;
	uint32_t n_deaths;
	/* Set by a call that copies what may be a piece of more, by way of the arena. */
	bool copies_piece;
	/* Of the call that it runs. */
	struct use uses[RUNNER_USES_MAX];
	uint32_t n_uses;
	/* Not yet in the session's statistics, see session_count_own(). */
	uint64_t n_calls;
	uint64_t n_launches;
	struct scratch scratch;
};

struct contexts {
	struct object_table table;
	/* Grows when a context dies: what threads have entered may be gone. Atomic. */
	uint32_t n_deaths;
	/* Guards retain, and who resets or destroys; `left` tells that it is done. It is
	 * not held while the driver waits for work: that may wait for a callback, whose
	 * end comes by way of the dispatcher, which takes the lock. */
	pthread_mutex_t lock;
	pthread_cond_t left;
};

/*
 * Whether the stream has not ended. Asked with the lock of a list that it is to join:
 * who ends a stream takes it off the lists afterwards, and then has the driver destroy
 * it.
 */
static inline bool stream_is_live(const struct stream *stream)
{
	/* Partner: withdraw() of objects.c. */
	return stream->is_entry ? __atomic_load_n(&stream->object.generation,
					  __ATOMIC_ACQUIRE) != 0
				: stream->context != NULL;
}

/* Return: 0 or -errno. */
int contexts_init(struct session *session);
void contexts_deinit(struct session *session);

/*
 * Makes a context current in the driver for the calling thread.
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT where there is none, or the driver's.
 */
CUresult context_enter(
	struct session *session, struct runner *runner, struct context *context);

/* Forgets what the thread has entered: a handler changed it behind our back. */
void context_left(struct runner *runner);

/* Return: the live context of that handle, or NULL. */
struct context *context_find(struct session *session, uint64_t handle);

/* Makes sure that the driver's object of a primary context is there, or says that it is
 * about to go. What the thread has entered may be another context then, which is noted.
 */
CUresult context_ensure(
	struct session *session, struct runner *runner, struct context *context);

/* Adds a context that the driver made. */
CUresult context_add(struct session *session, CUcontext driver_context, CUdevice device,
	uint64_t *handlep);
