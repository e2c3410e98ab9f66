/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pace: what a thread learns from its waits
 *
 *	long		the waits before this one took many times a spin: then spinning
 *			buys little, and only its eager part is left
 *	crowded		when the processor was given up, it was away for a time slice:
 *			others had work to do. Who sleeps is woken before them, who yields
 *			goes behind them; so no more yields
 *	together	what was waited for came while the processor was given up: the
 *			host runs here, and can do so only when this thread does not
 *	late		work whose length is known was not over when it should have been:
 *			other work lies in front of it; it is spun for with the
 *			processor kept, no longer
 *	slow wake	a host that slept was not awake in the time that this takes where
 *			it has a processor of its own: nobody spins for that longer
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

/* Whether this wait may give the processor up and look again, once it was eager. */
bool shim_pace_yields(const struct shim_pace *pace);

/* The processor was given up for so long, and what is waited for has not come. */
void shim_pace_note_away(struct shim_pace *pace, uint64_t away_ns);

/* A wait ended while spinning; the processor had just been given up for so long, or 0. */
void shim_pace_note_come(struct shim_pace *pace, uint64_t away_ns);

/* Work was not over in the time that it takes. */
void shim_pace_note_late(struct shim_pace *pace);

/* A host that slept was not awake in time. */
void shim_pace_note_slow_wake(struct shim_pace *pace);

/* A wait ended by being woken, after so long. */
void shim_pace_note_woken(struct shim_pace *pace, uint64_t waited_ns);
