/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Live captures of streams
 *
 * A capture begins and ends by calls of the guest, on the lane of its thread. It also
 * ends when its stream or context is destroyed, and with its thread, unless any thread
 * may end it (relaxed mode). While there are any, the dispatcher queues each call to its
 * lane and no marks are made; their number is in the control page for the guest, while
 * the worker uses its own count.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct call;
struct context;
struct lane;
struct session;
struct stream;

struct capture {
	struct capture *next;
	struct stream *stream; /* where it began */
	const struct lane *lane;
	CUstreamCaptureMode mode;
	uint64_t id;	  /* the driver's; 0 if it has none */
	bool is_to_graph; /* the guest's, which stays the same */
	CUgraph graph;	  /* else the one that the guest has a handle of, if it has */
};

struct captures {
	pthread_mutex_t lock; /* also for session->n_captures */
	struct capture *first;
};

void captures_init(struct session *session);
void captures_deinit(struct session *session);

/*
 * Around a call that may begin a capture: as if one were live, so that the dispatcher is
 * not about to mark the stream when the driver begins.
 */
void captures_hold(struct session *session);
void captures_release(struct session *session);

/* Notes a capture that has begun. Return: false without memory. */
bool capture_add(struct session *session, const struct capture *capture);

/* Records the graph of a capture, whose handle the guest is about to get. */
void capture_note_graph(struct session *session, uint64_t id, CUgraph graph);

/*
 * The capture that began in a stream has ended.
 *
 * @is_kept:	its graph is the guest's now; else its handles are forgotten
 */
void capture_remove(struct session *session, const struct stream *stream, bool is_kept);

/* Those of all streams of a context are gone with it. */
void captures_forget_context(struct session *session, const struct context *context);

/* Ends the captures that only this lane's thread may end, and takes its mode back. On
 * that thread. */
void captures_leave_lane(struct call *call, struct lane *lane);
