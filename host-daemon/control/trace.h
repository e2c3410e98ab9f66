/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trace: what a worker does at which time, while somebody looks
 *
 * vgpud writes until when it wants a trace into a page of the worker's file, again and
 * again while a client of vgpuctl asks for events, and the worker clears that when the
 * time is over; so a trace ends by itself whatever happens to client or vgpud. Any thread
 * of the worker adds events to a ring in the same file, which overwrites the oldest ones:
 * it takes a number by n_events, writes the event and stores its number last. vgpud reads
 * by pread(2) and passes the bytes on; the client checks them, since a worker may have
 * been compromised by its guest.
 *
 * Times are of CLOCK_MONOTONIC of the host.
 */

#include <assert.h>
#include <stdint.h>

#include "control/control.h"

#define TRACE_EVENTS (1u << 16)
#define TRACE_NAMES 256u
#define TRACE_NAME_SIZE 64u

enum trace_kind {
	_TRACE_NONE,
	TRACE_TAKE,	/* the dispatcher begins with a call */
	TRACE_TAKEN,	/* and is done with it */
	TRACE_RUN,	/* a lane begins to run a call */
	TRACE_RAN,	/* and has run it; value: the CUresult */
	TRACE_WORK,	/* a kernel, copy, fill or call of the host begins on the device;
			   value: stream << 16 | name */
	TRACE_COMPLETE, /* and is complete */
	_TRACE_KIND_N,
};

struct trace_event {
	uint64_t number; /* from 1 on */
	uint64_t ns;
	uint64_t call_number; /* of the call that it is of, 0: unknown */
	uint16_t call;	      /* its id, 0: unknown */
	uint8_t kind;	      /* enum trace_kind */
	uint8_t reserved;
	uint32_t lane;
	uint64_t value;
};

static_assert(sizeof(struct trace_event) == 40, "no holes");

struct trace {
	uint64_t n_events; /* numbers given so far */
	uint64_t n_names;
	uint64_t reserved[510];
	/* Of kernels and other work, by the order of their first event; not always
	 * terminated. */
	char names[TRACE_NAMES][TRACE_NAME_SIZE];
	struct trace_event events[TRACE_EVENTS];
};

/* What vgpud writes and the worker reads, or clears. */
struct worker_wishes {
	uint64_t trace_until; /* ns; 0: no trace is wanted; atomic */
};

#define WORKER_WISHES_OFF 3072u
#define WORKER_TRACE_OFF (WORKER_FLIGHT_OFF + (2ull << 20))

static_assert(WORKER_TRACE_OFF + sizeof(struct trace) <= WORKER_FILE_SIZE, "it has room");
static_assert(WORKER_WISHES_OFF + sizeof(struct worker_wishes) <= WORKER_DEVICES_OFF,
	"they have room");
