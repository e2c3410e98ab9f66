/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Meter: the device time of a session, by events around batches of its work
 *
 * For drivers that do not measure themselves, which are all but softgpu. A batch is work
 * that was submitted to one stream in a row, with an event in front of it and one behind
 * it. A thread asks the driver, while work is under way, which events are complete, and
 * adds the time in between to the allowance, see busy.h. In front of each batch is the
 * gate. Calls that only wait, or run functions on the host, end a batch, so that their
 * waits are not device time.
 *
 * What the program sees stays as it is:
 * - An event is in the stream of its batch, between two calls of the program on it. In
 *   the legacy default stream it would also be a barrier for other streams. So the batch
 *   of that stream ends before anything else is submitted to its context, and the event
 *   is next to work that was such a barrier itself.
 * - An event in a stream that is captured would be part of the graph. Work that is
 *   captured has no batch, and a batch ends before its stream can join a capture. The
 *   thread that asks is in relaxed mode, so that its questions are permitted meanwhile.
 * - Errors of the driver's calls here are not reported: if a context is broken, the
 *   program's own calls say so.
 *
 * Work of several streams of a context at the same time counts once; of several contexts,
 * green ones included, each counts. When a context is being destroyed while it has work,
 * the time counts until it is gone. Work in more than METER_BATCHES_MAX streams at once
 * is counted only with the work of the others.
 *
 * The lock is held during calls of the driver that do not block: so that no stream or
 * context is destroyed meanwhile.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/wait/busy.h"
#include "worker/wait/gate.h"

struct call;
struct context;
struct runner;
struct session;
struct stream;

#define METER_BATCHES_MAX 64u
/* Calls in a batch: two events then cost little. */
#define METER_CALLS_MAX 64u

/* What the calls of a context are measured by. */
struct meter_line {
	struct meter_line *next;
	struct context *context;
	CUevent base; /* times of the device are relative to it; NULL: none yet */
	struct busy busy;
	/* Events that are not in use. */
	CUevent events[2 * METER_BATCHES_MAX];
	uint32_t n_events;
	/* Its context is being destroyed: the host's time up to which is counted. */
	bool is_leaving;
	uint64_t counted_ns;
};

enum meter_state {
	METER_FREE,
	METER_OPEN, /* its stream may get more work */
	METER_CLOSED,
};

struct meter_batch {
	enum meter_state state;
	struct meter_line *line;
	struct stream *stream; /* a valid entry, even if the stream is gone */
	bool waits;	       /* its stream may wait for something else before it */
	uint64_t seen_ns;      /* the host's time of the first look at it; 0: none yet */
	/* That submits work for it; whether it still does: is runner->batch this one? */
	const struct runner *runner;
	CUevent begin; /* NULL: it is the base of the line */
	CUevent end;   /* of a closed one */
	bool has_begun;
	int64_t begin_ns; /* of one that has begun: the device's time */
	uint32_t n_calls;
	uint32_t n_looks; /* that found it open */
};

struct meter {
	pthread_mutex_t lock; /* for the rest, but for the gate */
	pthread_cond_t begun; /* there is a batch */
	struct session *session;
	pthread_t thread;
	CUcontext current; /* that thread's */
	struct meter_line *lines;
	struct meter_batch batches[METER_BATCHES_MAX];
	uint32_t n_batches; /* that are not free */
	uint32_t n_open;    /* atomic, for reads without the lock */
	uint32_t n_leaving; /* lines */
	uint64_t call_ns;   /* what a call takes lately */
	bool ends;
	bool is_relaxed; /* the thread that asks may ask during captures */
	struct gate gate;
};

/*
 * Begins to measure and to limit.
 *
 * Return: 0 or -errno: nothing is measured or limited.
 */
int meter_start(struct session *session, struct softgpu_allowance *allowance);

/* For tests: a worker's session ends with its process. */
void meter_stop(struct session *session);

/* In front of a call: waits if it submits work and the session has had its share. With no
 * lock, and before a context is entered. */
void meter_admit(struct session *session, struct runner *runner, uint32_t call);

/* The stream of a call is known, and its context is current: begins or ends a batch. */
void meter_stream(struct call *call, struct stream *stream);

/* After a call: its work is submitted. */
void meter_submitted(struct runner *runner);

/* Ends all batches, because no more work follows soon. May change the current context. */
void meter_flush(struct session *session, struct runner *runner);

/* A stream is about to be destroyed, and not live any more: ends its batch. May change
 * the current context. */
void meter_leave_stream(
	struct session *session, struct runner *runner, struct stream *stream);

/* A context is about to be destroyed, and is_leaving is set; and it is destroyed. */
void meter_leave_context(struct session *session, struct context *context);
void meter_context_gone(struct session *session, const struct context *context);
