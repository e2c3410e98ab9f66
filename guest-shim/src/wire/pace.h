/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pace: what a thread learns from its waits
 *
 *	long		recent waits took many times as long as a spin: spinning gains
 *			little, so only its eager part remains
 *	crowded		the processor, once yielded, was away for a time slice: other
 *			threads are runnable. A sleeper is scheduled before them when it
 *			wakes up, a thread that yields after them; so no more yields
 *	together	the result arrived while the processor was yielded: the host runs
 *			on the same one, and only while this thread does not
 *	late		work of known duration was not complete in time: other work is
 *			queued before it. The thread spins without yielding, and no longer
 *	slow wake	a sleeping host was not awake after the time that it needs if it
 *			has a processor: no thread spins longer than that for a wake-up
 *
 * All but the first are assumed for a number of waits, then tried again.
 */

#include <stdbool.h>
#include <stdint.h>

/* Counts that make the thread spin less; initialised as {}. */
struct shim_pace {
	uint32_t n_long;      /* waits in a row that were far longer than a spin */
	uint32_t n_crowded;   /* waits to come for which others want the processor */
	uint32_t n_together;  /* waits to come for which the host runs here */
	uint32_t n_late;      /* waits to come for which a device is late */
	uint32_t n_slow_wake; /* waits to come for which a host that sleeps is late */
	uint64_t asked_ns;    /* when a poller let its query travel */
	bool rang;	      /* the host slept when this thread last submitted */
};

/* Whether this wait may yield the processor after its eager part. */
bool shim_pace_yields(const struct shim_pace *pace);

/* The processor was yielded for that time, and the result has not arrived. */
void shim_pace_note_away(struct shim_pace *pace, uint64_t away_ns);

/* A wait ended while spinning; the processor had just been yielded for that time, or 0.
 */
void shim_pace_note_come(struct shim_pace *pace, uint64_t away_ns);

/* Work was not over in the time that it takes. */
void shim_pace_note_late(struct shim_pace *pace);

/* A host that slept was not awake in time. */
void shim_pace_note_slow_wake(struct shim_pace *pace);

/* A wait ended by being woken, after so long. */
void shim_pace_note_woken(struct shim_pace *pace, uint64_t waited_ns);
