/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Dispatch: from a frame to the thread that runs it
 */

#include <stdbool.h>

struct session;
struct vgpu_frame;

/* Whether the call of a checked frame is for the lane of its guest thread: that waits for
 * it, and it may block. */
bool dispatch_goes_to_lane(const struct vgpu_frame *frame);

/*
 * One frame, as the dispatcher does it: checks it, and runs the call or hands it to its
 * lane.
 *
 * Return: 0; CALL_E_VIOLATION or -errno, with the reason for the session's end.
 */
int dispatch_frame(
	struct session *session, const struct vgpu_frame *frame, const char **whyp);
