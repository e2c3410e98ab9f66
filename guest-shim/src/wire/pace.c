/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pace: what a thread learns from its waits
 */

#include "wire/pace.h"

/* Four times a spin. Less is no sign: two wake-ups, of the host and of this thread, take
 * up to 200 us where processors sleep deeply, and a thread that took them for work of the
 * device would never spin again. So many in a row say what comes next. */
#define LONG_NS 240000ull
#define LONG_WAITS 8u
/* A processor that was away for this long ran other work: the least time slice of Linux
 * is 0.75 ms. The host takes far less for a call. */
#define SLICE_NS 400000ull
#define CROWDED_WAITS 64u
/* sched_yield() takes less than this if no other thread wants the processor. */
#define YIELD_NS 3000ull
#define TOGETHER_WAITS 16u
#define LATE_WAITS 16u
#define SLOW_WAKE_WAITS 16u

static void count_down(uint32_t *n)
{
	if (*n)
		--*n;
}

/* One more wait that something was assumed for. */
static void count_wait(struct shim_pace *pace)
{
	count_down(&pace->n_crowded);
	count_down(&pace->n_together);
	count_down(&pace->n_late);
	count_down(&pace->n_slow_wake);
}

bool shim_pace_yields(const struct shim_pace *pace)
{
	return !pace->n_crowded && pace->n_long < LONG_WAITS;
}

void shim_pace_note_away(struct shim_pace *pace, uint64_t away_ns)
{
	if (away_ns > SLICE_NS)
		pace->n_crowded = CROWDED_WAITS;
}

void shim_pace_note_come(struct shim_pace *pace, uint64_t away_ns)
{
	pace->n_long = 0;
	count_wait(pace);
	/* After another thread's time slice an arrival has no significance. */
	if (away_ns > YIELD_NS && away_ns <= SLICE_NS)
		pace->n_together = TOGETHER_WAITS;
	shim_pace_note_away(pace, away_ns);
}

void shim_pace_note_late(struct shim_pace *pace)
{
	/* A thread that was not scheduled has learned nothing about the device. */
	if (!pace->n_crowded)
		pace->n_late = LATE_WAITS;
}

void shim_pace_note_slow_wake(struct shim_pace *pace)
{
	pace->n_slow_wake = SLOW_WAKE_WAITS;
}

void shim_pace_note_woken(struct shim_pace *pace, uint64_t waited_ns)
{
	count_wait(pace);
	if (waited_ns < LONG_NS)
		pace->n_long = 0;
	else if (pace->n_long < LONG_WAITS)
		pace->n_long++;
}
