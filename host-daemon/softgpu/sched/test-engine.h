/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine for tests of the scheduler, which only notes what it ran
 *
 * A launch adds one to a counter for each block; its parameters say which counter, what
 * to wait for first, and whether to fault.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sched/sched.h"

struct work {
	uint64_t *counter;
	const uint32_t *gate; /* not before this is not 0: a block polls it */
	uint32_t *opens;      /* is set when a block is done */
	uint32_t *met;	      /* blocks that have begun: not before there are */
	uint32_t meet;	      /* so many */
	uint32_t *resident;   /* blocks that are begun and not done, and the most */
	uint32_t *resident_max;
	uint64_t polls_ns;     /* polls for so long */
	uint64_t works_ns;     /* runs for so long, without polling */
	uint64_t *done;	       /* blocks: each waits for those before it */
	struct charge *charge; /* runs, on the only thread, until it is charged often */
	const struct sched_sms *sms; /* counts blocks that are on other threads */
	uint32_t *n_outside;
	bool is_quiet; /* what it waits for, it awaits without polling */
	const struct softgpu_launch **launchp; /* is set to the launch under way */
	uint64_t *turns;       /* is incremented at each turn of a block */
	uint64_t *numbers;     /* each block takes the next one as it begins */
	struct numbers *notes; /* of the blocks of this launch */
	int fault;
};

/* The least and the greatest number; written by the only thread. */
struct numbers {
	uint64_t first, last;
	uint64_t n;
};

/* What the time limits of several kernels on one thread are charged with. */
struct charge {
	uint64_t timeout_ns;
	uint64_t run_ns;    /* that all of them were at work */
	uint64_t n_between; /* slices before which another was at work */
	uint64_t n_wrong;   /* of those: whose kernel was charged with the other's */
};

/* Makes a scheduler of so many threads, or of three, with a context. */
void start_threads(struct sched_context *context, uint32_t n_threads);
void start(struct sched_context *context);

struct sched_op launch_of(const struct work *work, uint64_t n_blocks);
int submit(struct sched_stream *stream, struct sched_op *op);
int launch(struct sched_stream *stream, const struct work *work, uint64_t n_blocks);

/* In a separate stream that is destroyed when the launch is complete. */
int submit_alone(struct sched_context *context, struct sched_op *op);
int launch_alone(
	struct sched_context *context, const struct work *work, uint64_t n_blocks);

int write_word(struct sched_stream *stream, uint64_t *word, uint64_t value);
struct sched_stream *stream_new(struct sched_context *context, bool is_blocking);
uint64_t load(const uint64_t *word);

extern struct sched sched;
