/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flight recorder: the last calls of a worker
 *
 * A worker writes each call that it takes off the ring into a ring of entries in the file
 * that it shares with vgpud, which reads them after a fault or the worker's death. An
 * entry has the first bytes of the call's message as they arrived: so recording one is a
 * copy, and the reader decodes them, if anyone ever reads them.
 *
 * The dispatcher gives out the numbers and writes the entries; the thread that has run a
 * call writes its result, if the entry has not been reused meanwhile. When a context
 * breaks, all entries are copied to a second place: the program usually makes more calls
 * before anyone looks.
 *
 * vgpud reads all of this by pread(2), and trusts none of it.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "control/control.h"

/* Calls that are kept; a power of two. */
#define FLIGHT_CALLS 256u
/* Bytes of a message that are kept: a launch up to its third parameter or so. */
#define FLIGHT_BODY_SIZE 96u
/* Functions whose names are kept. */
#define FLIGHT_NAMES 512u
/* The result of a call that has not returned. */
#define FLIGHT_RUNNING INT32_MIN

struct flight_call {
	uint64_t number; /* from 1 on, in the order of the ring */
	/* The time-stamp counter at the call, or at most a few calls before it. */
	uint64_t ticks;
	uint16_t call; /* its id */
	uint16_t flags;
	uint32_t lane;
	int32_t result;	    /* a CUresult, or FLIGHT_RUNNING */
	uint32_t body_size; /* of the whole message */
	uint8_t body[FLIGHT_BODY_SIZE];
};

static_assert(sizeof(struct flight_call) == 128, "two cache lines");

/* The name of the function with that handle; not always terminated. */
struct flight_name {
	uint64_t handle;
	char text[120];
};

struct flight {
	/* The time-stamp counter and CLOCK_MONOTONIC when the session began; 0: there was
	 * none. */
	uint64_t base_ticks;
	uint64_t base_ns;
	/* The last call that failed, and when by CLOCK_MONOTONIC; 0: none has. */
	uint64_t error_ns;
	uint32_t error_call;
	int32_t error_result;
	uint64_t n_names; /* noted so far; the last FLIGHT_NAMES of them are kept */
	uint64_t reserved[507];
	struct flight_call calls[FLIGHT_CALLS];
	struct flight_call at_fault[FLIGHT_CALLS]; /* as `calls` was at the last fault */
	struct flight_name names[FLIGHT_NAMES];
};

static_assert(offsetof(struct flight, calls) == 4096, "a page of its own");
static_assert(sizeof(struct flight) % 4096 == 0, "whole pages");
static_assert(sizeof(struct flight) <= 1u << 20, "they have room");
