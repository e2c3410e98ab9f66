/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flight recorder: the worker's part, see control/flight.h
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "control/flight.h"
#include "vgpu/cuda.h"
#include "vgpu/frame.h"
#include "worker/base/context.h"
#include "worker/base/session.h"

/*
 * Maps the recorder of a worker's file, before the sandbox is entered. The file of an
 * earlier vgpud has none: the entries are private memory then, and are lost.
 *
 * Return: 0 or -errno.
 */
int flight_map(struct flight **flightp, int fd);

/* Notes the clocks at the start of a session. */
void flight_start(struct flight *flight);

/* The entry of a call, for the thread that runs it. */
static inline struct flight_call *flight_at(struct flight *flight, uint64_t number)
{
	return &flight->calls[number % FLIGHT_CALLS];
}

/*
 * Records a call that was taken off the ring. Dispatcher only. The time is that of the
 * last reading of the counter: one for each call would cost a tenth of a launch. The copy
 * is of constant size, which costs a tenth of a memcpy() of a few bytes, so the frame is
 * in a buffer of VGPU_FRAME_MAX; what is behind a short one is of calls before it.
 */
static inline void flight_begin(
	struct session *session, const struct vgpu_frame *frame, uint64_t ticks)
{
	struct runner *runner = &session->runner;
	struct flight_call *entry = flight_at(session->flight, ++runner->number);
	const uint32_t size = frame->size - (uint32_t)sizeof(*frame);

	entry->number = runner->number;
	entry->ticks = ticks;
	entry->call = frame->call;
	entry->flags = frame->flags;
	entry->lane = frame->lane;
	entry->result = FLIGHT_RUNNING;
	entry->body_size = size;
	memcpy(entry->body, frame->body, FLIGHT_BODY_SIZE);
}

/* Notes a failed call as the session's last error. */
void flight_note_error(struct session *session, uint16_t call, CUresult result);

/* Notes the result of the call that a thread has run. */
static inline void flight_end(
	struct session *session, const struct runner *runner, CUresult result)
{
	struct flight_call *entry = flight_at(session->flight, runner->number);

	/* A call that took long may have lost its entry. */
	if (entry->number == runner->number)
		entry->result = (int32_t)result;
}

/* Keeps what is recorded as it is now, at a fault. */
void flight_freeze(struct flight *flight);

/* Keeps the name of a function or kernel. */
void flight_name(struct session *session, uint64_t handle, const char *name);

/* The same with the name of another one, if that is kept. */
void flight_name_like(struct session *session, uint64_t handle, uint64_t like);
