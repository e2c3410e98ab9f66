/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The dispatcher's part of a wait that runs on a lane
 */

#include <stdbool.h>

struct lane;
struct session;
struct vgpu_frame;

/*
 * Examines a call that is about to be queued to its lane. For a cuStreamSynchronize it
 * makes the mark that covers all earlier work, so that the guest may see the end before
 * the reply.
 *
 * Return: whether it is a wait for a stream that is complete.
 */
bool stream_wait_is_over(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame);
