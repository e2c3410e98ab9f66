/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trace: the worker's part, see control/trace.h
 *
 * While no trace is wanted a call costs one read of a word that hardly ever changes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/trace.h"
#include "vgpu/frame.h"
#include "worker/base/session.h"

/* The call that this thread runs, for work that it starts; 0: unknown. */
extern __thread uint64_t trace_call_number;

/*
 * Maps the parts of a worker's file, before the sandbox is entered. The file of an
 * earlier vgpud has none: then no trace is ever wanted.
 *
 * Return: 0 or -errno.
 */
int trace_map(struct trace **tracep, struct worker_wishes **wishesp, int fd);

static inline bool trace_is_on(const struct session *session)
{
	/* Partners: vgpud's write of the word, and its end in trace_add(). */
	return __builtin_expect(
		__atomic_load_n(&session->wishes->trace_until, __ATOMIC_RELAXED) != 0, 0);
}

/* Adds an event about a call unless the time of the trace is over. Any thread. */
void trace_add(struct session *session, enum trace_kind kind,
	const struct vgpu_frame *frame, uint64_t call_number, uint64_t value);

/* For softgpu_trace: an event about work on the device. */
void trace_add_work(void *session, uint64_t call_number, uint64_t stream,
	const char *name, int is_end);
uint64_t trace_get_number(void *session);
