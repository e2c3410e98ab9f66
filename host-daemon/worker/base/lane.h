/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lanes: one for each calling guest thread
 *
 * A lane has the state that CUDA keeps per thread: the current context and the per-thread
 * default streams. Calls that may block run on a thread of the lane, which is created for
 * the first of them, sleeps between calls, and is reused if the guest thread ends and
 * another one gets its slot.
 *
 * Lanes are created by the dispatcher and never freed. `context` is written by the
 * dispatcher only, in ring order; a call on the lane's thread uses the value at the time
 * of queuing. A guest thread waits for its reply, so the queue has one call at a time; a
 * guest that sends more than LANE_QUEUE_MAX violates the protocol.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/frame.h"
#include "worker/base/context.h"
#include "worker/base/reason.h"

struct session;

/* Contexts in which one guest thread uses its per-thread default stream. */
#define LANE_STREAMS_MAX 64u

struct lane_item {
	struct lane_item *next;
	uint64_t context;
	uint64_t number; /* of the call, see flight.h */
	bool ordered;	 /* counted in marks.n_pending */
	uint64_t began;	 /* when it was queued, in ticks */
	struct vgpu_frame *frame;
};

struct lane {
	struct session *session;
	uint32_t index;
	/* Of the dispatcher: whether it is counted in n_lanes or n_library_lanes of the
	 * session. Only an admitted lane gets a thread. */
	bool is_admitted;
	bool is_of_library;
	uint64_t context; /* handle of the current context, or 0 */
	/* Written by the lane's thread; atomic: the dispatcher reads it when the guest
	 * thread ends. */
	CUstreamCaptureMode capture_mode;
	/* Live captures that the thread began, except relaxed ones; see stream/capture.h.
	 * Atomic. */
	uint32_t n_captures;

	/* Per-thread default streams, one per context; created under `lock`; the count is
	 * published last. */
	struct stream *streams[LANE_STREAMS_MAX];
	uint32_t n_streams;

	/* The thread and its queue. */
	pthread_mutex_t lock;
	pthread_cond_t filled;
	pthread_t thread;
	bool started;
	struct lane_item *queue;
	uint32_t n_queued;
	uint32_t n_posted;
	uint32_t n_done;
	pthread_cond_t done;
	/* Preallocated item and frame: the queue is almost always empty. */
	struct lane_item first_item;
	bool first_busy;
	uint8_t *first_frame;
	struct runner runner;

	struct reason reason; /* of the last call that failed; under `lock` */
};

/* Return: the lane, created if need be, or NULL without memory. */
struct lane *lane_get(struct session *session, uint32_t index);

/* Whether a live capture forbids the lane's thread the calls that are unsafe in captures
 * (CUDA Driver API, cuThreadExchangeStreamCaptureMode). The driver invalidates it then.
 */
bool lane_is_forbidden_unsafe(const struct lane *lane);

/* For tests: frees a lane whose thread was never started. */
void lane_free(struct lane *lane);
