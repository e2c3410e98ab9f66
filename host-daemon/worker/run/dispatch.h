/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Dispatch: from a frame to the thread that runs it
 */

#include <stdbool.h>

struct session;
struct vgpu_frame;

/* Whether this host has the call: a guest of a later release may make others. */
bool dispatch_knows(const struct vgpu_frame *frame);

/* Whether the call of a frame, which this host knows, is run by the lane of its guest
 * thread, because it has a reply and may block. */
bool dispatch_goes_to_lane(const struct vgpu_frame *frame);

/* Whether the call of a frame, which this host knows, may use device memory, or allocates
 * some. */
bool dispatch_uses_memory(const struct vgpu_frame *frame);

/*
 * Ends the call of a frame without running it.
 *
 * Return: as dispatch_frame().
 */
int dispatch_refuse(struct session *session, const struct vgpu_frame *frame,
	CUresult result, const char **whyp);

/*
 * Checks a frame, and runs its call or queues it to its lane. Dispatcher only.
 *
 * Return: 0; CALL_E_VIOLATION or -errno, with the reason for the session's end.
 */
int dispatch_frame(
	struct session *session, const struct vgpu_frame *frame, const char **whyp);
