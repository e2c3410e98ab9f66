/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Timeline: events of workers as a file in the JSON format of Chrome's traces
 *
 * A session is a process there, with one thread for the dispatcher, one for each lane and
 * one for each stream of the device. Times are microseconds of the host's
 * CLOCK_MONOTONIC. Events come from workers, which may lie: what makes no sense is left
 * out and counted, and names have printable characters only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "control/trace.h"
#include "ctl/guest-trace.h"

/* Calls of a session whose place is known when work of theirs begins; fewer for the
 * fuzzer. */
#ifndef TIMELINE_CALLS
#define TIMELINE_CALLS 65536u
#endif
/* Slices of a session that have begun, on different threads of it. */
#ifndef TIMELINE_OPEN_MAX
#define TIMELINE_OPEN_MAX 4096u
#endif

struct timeline {
	FILE *file;
	bool has_any;
	uint64_t n_slices;
	uint64_t n_flows;
	/* Events that were overwritten before they were read, at most INT64_MAX. */
	uint64_t n_lost;
	uint64_t n_wrong;  /* those that make no sense, or lack their other half */
	uint64_t first_ns; /* of all events; 0: there are none */
	uint64_t last_ns;
	struct guest_waits waits; /* calls that lanes have run */
	/* Of a guest's clock, host minus guest, if its trace was merged. */
	size_t n_pairs;
	int64_t guest_offset_ns;
	int64_t guest_error_ns;
};

/* One session of it. */
struct timeline_session {
	struct timeline *timeline;
	uint64_t number; /* of the session */
	char names[TRACE_NAMES][TRACE_NAME_SIZE];
	uint64_t last; /* number of the last event that was taken */
	uint64_t last_ns;
	struct {
		uint64_t thread;
		struct trace_event begin;
	} open[TIMELINE_OPEN_MAX];
	size_t n_open;
	struct {
		uint64_t number;
		uint64_t thread;
		uint64_t ns;
	} calls[TIMELINE_CALLS];
};

/* Begins a file, which remains the caller's. */
void timeline_begin(struct timeline *timeline, FILE *file);

/* Ends it, when all sessions have ended. */
void timeline_end(struct timeline *timeline, const char *vm);

/* @label:	of the process, printable. Return: NULL without memory */
struct timeline_session *timeline_session_new(
	struct timeline *timeline, uint64_t number, const char *label);

/* Ends slices that are open, and frees the session. */
void timeline_session_free(struct timeline_session *session);

/* Takes names of work, as many whole ones as the bytes have. */
void timeline_set_names(
	struct timeline_session *session, const uint8_t *bytes, size_t size);

/* Return: how many of the events come before the first that is not complete yet: a thread
 * of the worker has its number, and has not written it. */
size_t timeline_complete(uint64_t first, const struct trace_event *events, size_t n);

/* Takes events, of which the first has that number; those between it and the last one
 * that was taken are lost. */
void timeline_add(struct timeline_session *session, uint64_t first,
	const struct trace_event *events, size_t n);

/* Adds a slice of a program's own trace to the process with that number, by the host's
 * clock. Those that are not within the time of other events are left out. */
void timeline_add_guest(struct timeline *timeline, uint64_t process, uint64_t thread,
	const char *name, uint64_t begin_ns, uint64_t end_ns);

/* Names a process or, with thread not 0, one of its threads. */
void timeline_label(
	struct timeline *timeline, uint64_t process, uint64_t thread, const char *label);
