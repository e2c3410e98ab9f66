/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Captures, as the rest of the driver API meets them
 *
 * Calls that give work to a stream ask stream_get_work(), and where that stream is
 * captured they hand over the work in the form of a node. All other calls that name a
 * stream or an event ask one of those that refuse; a refusal invalidates the captures
 * that it would have spoilt, as CUDA has it.
 */

#include "api/graph.h"

struct capture_event; /* what an event holds that was recorded in a captured stream */

/* Return: whether work for the stream is captured. */
static inline bool stream_is_captured(const struct sched_stream *stream)
{
	/* Partner: capture.c, which looks again with its lock. */
	return __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE);
}

/* Adds work to the capture of a stream; it is the capture's then, or gone. */
CUresult capture_add(struct sched_stream *stream, struct graph_work *work);

/* Return: 0 if the stream is not captured, or why it cannot be used so. */
CUresult capture_refuse(struct sched_stream *stream);

/* Return: 0, or IMPLICIT where the legacy stream would have to wait for a capture. */
CUresult capture_refuse_legacy(CUcontext context);

/* Return: 0, or UNSUPPORTED where a stream of the context is captured. */
CUresult capture_refuse_context(CUcontext context);

/* The same for a green context, whose default stream that is. */
CUresult capture_refuse_green(const struct sched_stream *legacy);

/* For calls that may wait for the device in their own way: whether the calling thread may
 * use them now. Return: 0 or UNSUPPORTED. */
CUresult capture_refuse_unsafe(void);

/* Return: 0, or CAPTURED_EVENT. */
CUresult capture_refuse_event(CUevent event);

/* Both return false where no capture takes part, and the call is for others to do. */
bool capture_record(
	struct sched_stream *stream, CUevent event, unsigned int flags, CUresult *rp);
bool capture_wait(
	struct sched_stream *stream, CUevent event, unsigned int flags, CUresult *rp);

/* An event that is recorded again, or destroyed; the second one with graph_lock. */
void capture_forget_event(CUevent event);
void capture_end_event(CUevent event); /* from now on it is not captured */
void capture_drop_event(CUevent event);

/* A stream that is destroyed, or all of a context. */
void capture_forget_stream(struct sched_stream *stream);
void capture_forget_context(CUcontext context);
