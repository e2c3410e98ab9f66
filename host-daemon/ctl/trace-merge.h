/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trace merge: puts the calls of a guest's own trace on a timeline
 */

#include <stddef.h>
#include <stdint.h>

#include "ctl/ctl.h"
#include "ctl/timeline.h"

struct trace_merge {
	const char *path; /* of the guest's trace; NULL: none */
	/* Processes of the timeline. */
	struct {
		uint32_t pid; /* in the guest */
		uint64_t number;
	} * processes;
	size_t n_processes;
};

/* Notes a process. Return: CTL_OK, or the status of a failure, which is printed. */
enum ctl_status trace_merge_add(struct trace_merge *merge, uint32_t pid, uint64_t number);

/* Adds the calls, when the timeline has all others. Return: the same. */
enum ctl_status trace_merge(struct trace_merge *merge, struct timeline *timeline);
