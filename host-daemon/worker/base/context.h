/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Contexts and the streams in them
 *
 * A guest thread's current context is a handle kept with its lane. A thread of the worker
 * enters that context before it calls the driver for the lane; its `struct runner` caches
 * the context entered last, so entering the same one again costs a comparison.
 *
 * Primary contexts have fixed handles and exist as entries from the start. The worker
 * retains the driver's object once, at the first use. The guest's retains are counted
 * here; when the count drops to zero, or at a reset, the worker releases its one retain
 * and forgets all objects of the context. A lane that needs the context again in the
 * meantime waits; a call on the dispatcher, which must not block, is refused as if the
 * context were destroyed just after it.
 *
 * A green context is the primary one of its device with a part of the multiprocessors and
 * another default stream. It has an entry here, with the context to which the driver
 * converts it, and owns nothing but its streams: everything else belongs to its `home`.
 * CUDA lets it be current in one thread at a time, so a runner leaves it after each call.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/objects.h"
#include "worker/base/scratch.h"
#include "worker/base/uses.h"

struct meter_batch;
struct session;

struct stream {
	struct object object;
	struct context *context;
	struct context *green; /* the green context that it was created in, or NULL */
	bool is_entry;	       /* in the object table: valid as long as its handle */
	bool has_word;
	uint32_t word; /* completion word that marks write */
	bool due;      /* a mark was put off, see wait/marks.h */
	/* Of work that is being submitted, see wait/meter.h. */
	struct meter_batch *batch;
	bool waits; /* and may wait for others before */
	bool owes;  /* a synchronising call, see wait/debts.h; atomic */
	/* Stream-ordered calls executed by the dispatcher and by lanes: two counts, so
	 * that the dispatcher needs no locked instruction. Atomic; see mark_issued(). */
	uint64_t issued;
	uint64_t issued_by_lanes;
	uint64_t marked; /* of these, covered by a mark; dispatcher, atomic */
};

struct event {
	struct object object;
	bool has_timing;
};

/* A function or kernel. */
struct kernel {
	struct object object;
	bool is_known; /* param_size is valid; atomic */
	uint32_t param_size;
};

struct context {
	struct object object; /* driver: NULL while a primary context is not retained */
	CUdevice device;
	struct context *home; /* of a green context: the primary one; else NULL */
	bool primary;
	uint32_t n_retains; /* of the guest, for a primary context */
	bool is_leaving;    /* a thread is destroying it; contexts.lock, atomic */
	uint32_t life;	/* incremented when its contents are destroyed; contexts.lock */
	uint32_t fault; /* the first CUresult that broke it; atomic */
	struct stream legacy; /* stream 0 */
	uint64_t array_bytes; /* charged for its arrays; contexts.lock */
};

/* The driver's green context, and the entry of the context that it was converted to. */
struct green {
	struct object object;
	struct context *context;
	uint64_t context_handle;
};

/* State of one thread that calls the driver; no other thread uses it. */
struct runner {
	bool is_dispatcher;
	/* The context entered last, and contexts.n_deaths at that time. */
	struct context *entered;
	uint32_t generation;
	uint32_t n_deaths;
	/* Set by a staged copy that may be one piece of a larger transfer. */
	bool copies_piece;
	/* Set by the dispatcher when the call goes to a lane, which times it. */
	bool gave_to_lane;
	/* Of the running call. */
	struct use uses[RUNNER_USES_MAX];
	uint32_t n_uses;
	/* Set by a call that has waited for the session's share of the device's time. */
	bool has_waited;
	/* Of the running call, see flight.h. */
	uint64_t number;
	/* For which it submits work, see wait/meter.h; atomic. */
	const struct meter_batch *batch;
	/* Not yet in the session's statistics, see session_count_own(). */
	uint64_t n_calls;
	uint64_t n_launches;
	struct scratch scratch;
};

struct contexts {
	struct object_table table;
	/* Incremented when a context is destroyed: contexts cached by runners may be
	 * stale. Atomic. */
	uint32_t n_deaths;
	/* Guards retain, reset and destruction; `left` is signalled when the latter two
	 * are complete. Not held while the driver waits for work: that work may wait for
	 * a callback, whose completion is processed by the dispatcher, which takes the
	 * lock. */
	pthread_mutex_t lock;
	pthread_cond_t left;
};

/*
 * Whether the stream is not being destroyed. Call with the lock of the list to which the
 * stream is to be added: destruction clears the generation first, removes the stream from
 * the lists then, and calls the driver last.
 */
static inline bool stream_is_live(const struct stream *stream)
{
	/* Partner: withdraw() of objects.c. */
	return stream->is_entry ? __atomic_load_n(&stream->object.generation,
					  __ATOMIC_ACQUIRE) != 0
				: stream->context != NULL;
}

/* The context that owns memory, code and events: itself unless it is a green one. */
static inline struct context *context_home(struct context *context)
{
	return context && context->home ? context->home : context;
}

/* Return: 0 or -errno. */
int contexts_init(struct session *session);
void contexts_deinit(struct session *session);

/*
 * Makes a context current in the driver for the calling thread.
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT for NULL, or the driver's result.
 */
CUresult context_enter(
	struct session *session, struct runner *runner, struct context *context);

/* Invalidates the cached context: the driver's current context has changed. */
void context_left(struct runner *runner);

/* Makes no context current if a green one is. */
void context_leave_green(struct session *session, struct runner *runner);

/* Return: the live context of that handle, or NULL. */
struct context *context_find(struct session *session, uint64_t handle);

/* Retains the driver's object of a primary context if need be;
 * CUDA_ERROR_CONTEXT_IS_DESTROYED if the context is being destroyed. May change the
 * current context, and invalidates the cached one then. */
CUresult context_ensure(
	struct session *session, struct runner *runner, struct context *context);

/* Adds a context that the driver created. */
CUresult context_add(struct session *session, CUcontext driver_context, CUdevice device,
	uint64_t *handlep);

/* Adds the context of a green one. The caller holds contexts.lock. Return: NULL beyond
 * the session's limits. */
struct context *context_add_green(
	struct session *session, CUcontext driver_context, struct context *home);
