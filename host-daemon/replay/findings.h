/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Findings: where a replay differs from its recording
 *
 * What the recording has is expected, and what the worker of the replay writes is found.
 * They arrive in any order; those of one call are compared when both are there.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/recording.h"

/* Of either side, that lack their counterpart at a time; fewer for the fuzzer. */
#ifndef FINDINGS_PENDING_MAX
#define FINDINGS_PENDING_MAX 4096u
#endif
/* Calls whose names are known. */
#ifndef FINDINGS_CALLS
#define FINDINGS_CALLS 65536u
#endif

/* Faults of kernels; further ones are not told. */
#ifndef FINDINGS_FAULTS
#define FINDINGS_FAULTS 256u
#endif

struct findings_list {
	struct recording_output outputs[FINDINGS_PENDING_MAX];
	uint32_t n;
};

/* Those of both sides are counted alike: the same place is the same fault. */
struct findings_fault {
	struct recording_fault expected, found;
	uint64_t number; /* of the call that returned it first, 0: none did */
};

struct findings {
	unsigned int n_lines_max;
	bool is_quiet; /* prints no lines */
	/* Ends that the worker has written and the recording has not come to. */
	struct recording_end ends[FINDINGS_PENDING_MAX];
	uint32_t n_ends;
	struct findings_list expected, found;
	struct findings_fault faults[FINDINGS_FAULTS];
	uint32_t n_faults_expected, n_faults_found;
	uint32_t n_faults_named;	/* those that calls have returned */
	uint16_t calls[FINDINGS_CALLS]; /* of the last numbers, for people */
	uint64_t n_compared;
	uint64_t n_outputs;
	uint64_t n_ignored;   /* results that depend on time */
	uint64_t n_different; /* calls */
	uint64_t first;	      /* the lowest number of those, 0: none */
};

void findings_begin(struct findings *findings, uint64_t number, uint16_t call);
const char *findings_name(const struct findings *findings, uint64_t number);

/* The worker has written these. Return: false if there are too many. */
bool findings_add_end(struct findings *findings, const struct recording_end *end);
void findings_add_output(
	struct findings *findings, const struct recording_output *output);

/* The recording has these. An end has to be there: see findings_has_end(). */
void findings_expect_end(struct findings *findings, const struct recording_end *end);
void findings_expect_output(
	struct findings *findings, const struct recording_output *output);

/* Whether a call only waits for something to tell, as those of threads of the guest
 * library do, or depends on time. */
bool findings_is_of_time(uint32_t call);
/* The result of a call that the recording does not have the end of. Return: whether it
 * has ended. */
bool findings_get_end(const struct findings *findings, uint64_t number, int32_t *resultp);

bool findings_has_end(const struct findings *findings, uint64_t number);

/* Whether outputs are expected that have not come. */
bool findings_wait(const struct findings *findings);

/* They do not come any more. */
void findings_give_up(struct findings *findings);

/* Another difference. */
void findings_differ(struct findings *findings, uint64_t number, const char *format, ...)
	__attribute__((__format__(__printf__, 3, 4)));

/* A kernel has broken a context. */
void findings_add_fault(struct findings *findings, const struct recording_fault *found);
void findings_expect_fault(
	struct findings *findings, const struct recording_fault *expected);
/* What there is to say about each that is expected, and about any more. */
void findings_tell_faults(struct findings *findings);
/* Whether one that is expected is missing, or is of another kind. */
bool findings_fault_differs(const struct findings *findings, uint32_t i);
