/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Latency: how long calls take, for vgpud to read (control/call-times.h)
 *
 * Times are differences of the time-stamp counter, which all threads read; the frequency
 * is measured once, from the start of the process to that of the dispatcher. A session
 * without times, because vgpud is of an earlier build, is not measured.
 */

#include <stdint.h>

#include "control/call-times.h"

struct latency {
	struct call_times *times; /* NULL: none */
	uint64_t scale;	   /* ns of 2^LATENCY_SHIFT ticks; constant once lanes run */
	uint64_t began_ns; /* when it was initialised, for the frequency */
	uint64_t began_ticks;
};

/* All counters run at 1 GHz or more: the scale is at most 2^LATENCY_SHIFT. */
#define LATENCY_SHIFT 20u

/* Maps the times in the worker's file. Return: 0 or -errno. */
int latency_init(struct latency *latency, int fd);

/* Measures the frequency, for at least a millisecond since the initialisation. */
void latency_start(struct latency *latency);

static inline uint64_t latency_now(void)
{
	return __builtin_ia32_rdtsc();
}

/* A time that is negative, on a machine whose counters differ, is 0; one of hours is
 * shortened. */
static inline uint64_t latency_ns(const struct latency *latency, uint64_t ticks)
{
	const uint64_t ticks_max = 1ull << (63 - LATENCY_SHIFT);

	if (ticks >> 63)
		return 0;
	if (ticks > ticks_max)
		ticks = ticks_max;
	return ticks * latency->scale >> LATENCY_SHIFT;
}

/* Calls that are timed together, none of them 0 but those that a lane has timed. */
#define LATENCY_TOGETHER_MAX 16u

struct latency_calls {
	uint32_t n;
	uint16_t differ; /* 0: they are all the same */
	uint16_t calls[LATENCY_TOGETHER_MAX];
};

static inline void latency_collect(struct latency_calls *calls, uint16_t call)
{
	calls->calls[calls->n++] = call;
	calls->differ |= call ^ calls->calls[0];
}

static inline void latency_forget(struct latency_calls *calls)
{
	calls->n = 0;
	calls->differ = 0;
}

/* For the dispatcher: a call, and calls that together took that long, at least one. */
void latency_add(struct latency *latency, uint16_t call, uint64_t ticks);
void latency_add_together(
	struct latency *latency, const struct latency_calls *calls, uint64_t ticks);

/* For lanes. */
void latency_add_shared(struct latency *latency, uint16_t call, uint64_t ticks);
