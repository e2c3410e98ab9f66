/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Guest trace: the lines that the guest library writes for VGPU_TRACE, and the difference
 * between a guest's clock and the host's
 *
 * The lines have times of the guest's CLOCK_REALTIME, the timeline those of the host's
 * CLOCK_MONOTONIC. A call that waits for its reply begins in the guest before the host
 * runs it, and ends after that, as a query of NTP does: so each such call has a range of
 * differences that are possible. Which line is which call on the host is not known, but
 * the true difference is in the ranges of all true pairs, while false pairs agree by
 * chance only. So the difference that most pairs permit is taken.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls of each side that are compared: the longest, which are the same on both. */
#define GUEST_TRACE_PAIRS 512u
/* How far the guess may be off, to either side. */
#define GUEST_TRACE_OFF_NS 10000000000

/* One line; times are ns since 1970 by the guest's clock. */
struct guest_call {
	char name[64];
	uint32_t pid;
	uint32_t tid;
	uint64_t begin_ns;
	uint64_t end_ns;
};

/* Return: false for a line that is of no call. */
bool guest_trace_parse(const char *line, struct guest_call *call);

/* A call that waited, by one of the clocks. */
struct guest_wait {
	char name[64];
	int64_t begin_ns;
	int64_t end_ns;
};

struct guest_waits {
	size_t shortest; /* once it is full */
	struct guest_wait list[GUEST_TRACE_PAIRS];
	size_t n;
};

/* Adds a call, in the place of the shortest if there are too many. */
void guest_waits_add(
	struct guest_waits *waits, const char *name, uint64_t begin_ns, uint64_t end_ns);

/*
 * Finds the difference, host minus guest.
 *
 * @guess:	where to look
 * @offsetp:	the middle of what most pairs permit
 * @errorp:	by how much it may be wrong
 *
 * Return: how many pairs permit it; 0: there is none.
 */
size_t guest_trace_match(const struct guest_waits *host, const struct guest_waits *guest,
	int64_t guess, int64_t *offsetp, int64_t *errorp);
