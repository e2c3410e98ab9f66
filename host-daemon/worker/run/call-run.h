/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Runs a call from its frame to its reply
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct lane;
struct runner;
struct session;
struct vgpu_frame;

/*
 * Runs the call in a frame to its end: enters the context, dispatches, counts.
 *
 * @context:	handle of the lane's context when the call was submitted
 * @whyp:	on failure, the reason for the session's end
 *
 * Return: 0 or CALL_E_VIOLATION.
 */
int call_run(struct session *session, struct runner *runner, struct lane *lane,
	uint64_t context, const struct vgpu_frame *frame, const char **whyp);

/* Ends a call with that result without running it; for the dispatcher. */
int call_refuse(struct session *session, struct lane *lane,
	const struct vgpu_frame *frame, CUresult result, const char **whyp);
