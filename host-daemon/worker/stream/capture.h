/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Live captures of streams
 *
 * A capture begins and ends by calls of the guest, on the lane of its thread. It also
 * ends when its stream or context is destroyed, and with its thread, unless any thread
 * may end it (relaxed mode). While a capture is live, the dispatcher queues each call to
 * its lane and makes no marks. The number of captures is in the control page for the
 * guest; the worker reads a private count.
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
	struct stream *stream; /* its origin */
	struct lane *lane;
	CUstreamCaptureMode mode;
	uint64_t id;	  /* the driver's; 0 if it has none */
	bool is_to_graph; /* into a graph that the guest has already */
	CUgraph graph;	  /* else the captured graph, if the guest has its handle */
};

struct captures {
	pthread_mutex_t lock; /* also for session->n_captures */
	struct capture *first;
};

/* The driver's information about a capture. */
struct capture_info {
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
	const CUgraphNode *nodes;
	const CUgraphEdgeData *edges;
	size_t n;
};

/* Asks the driver; what an old one does not say stays NULL. */
CUresult capture_ask(struct call *call, CUstream stream, struct capture_info *info);

void captures_init(struct session *session);
void captures_deinit(struct session *session);

/*
 * Around a call that may begin a capture: counts as a live one, so that the dispatcher
 * cannot mark the stream while the driver begins it.
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
 * @is_kept:	the guest owns the graph now; otherwise its handles are removed
 */
void capture_remove(struct session *session, const struct stream *stream, bool is_kept);

/* A context was destroyed: removes the captures of its streams. */
void captures_forget_context(struct session *session, const struct context *context);

/* Ends the captures that only this lane's thread may end, and resets its mode. On that
 * thread. */
void captures_leave_lane(struct call *call, struct lane *lane);
