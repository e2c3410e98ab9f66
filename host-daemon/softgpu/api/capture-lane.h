/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Captures, as their own files see them; all with graph_lock
 */

#include "api/capture.h"

struct capture;

struct capture_lane {
	struct capture *capture;
	struct sched_stream *stream; /* NULL: it is gone */
	struct graph_list before;    /* of what comes next */
	TAILQ_ENTRY(capture_lane) link;
};

struct capture {
	uint32_t n_refs; /* being under way, and events */
	uint64_t id;
	CUstreamCaptureMode mode;
	uint64_t thread; /* that began it, see capture_thread() */
	bool is_over, is_invalid;
	bool has_graph; /* was given one */
	CUgraph graph;
	struct capture_lane *origin;
	TAILQ_HEAD(capture_lanes, capture_lane) lanes;
	TAILQ_ENTRY(capture) link;
};

struct capture_event {
	struct capture *capture;
	struct graph_list before;
};

TAILQ_HEAD(captures, capture);

/* Those that are not over; the number is read without the lock too. */
extern struct captures captures;
extern uint32_t n_captures;

/* Return: NULL if the stream is not captured. */
static inline struct capture_lane *capture_lane_of(const struct sched_stream *stream)
{
	return stream->capture;
}

/* A stream takes part from now on, or does not any more. */
CUresult capture_lane_new(struct capture_lane **lanep, struct capture *capture,
	struct sched_stream *stream);
void capture_lane_leave(struct capture_lane *lane);

/* Ends a capture without returning its graph; a graph that it was given stays. */
void capture_abandon(struct capture *capture);
uint64_t capture_thread(void);
void capture_unref(struct capture *capture);

/* Adds work after the stream's last node. Return: 0, and the node takes ownership of the
 * work. */
CUresult capture_lane_add(struct capture_lane *lane, struct graph_work *work);

CUresult capture_list_copy(struct graph_list *to, const struct graph_list *from);

/* Adds those that are not in it. */
CUresult capture_list_join(
	struct graph_list *to, const CUgraphNode *nodes, size_t n_nodes);
