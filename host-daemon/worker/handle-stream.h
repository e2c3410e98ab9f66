/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the dispatcher does for a wait before the lane does the waiting
 */

#include <stdbool.h>

struct lane;
struct session;
struct vgpu_frame;

/*
 * Looks into a call that would go to its lane. For a cuStreamSynchronize it makes the
 * mark that covers all that was submitted before, so that the guest may see the end
 * before the reply does.
 *
 * Return: whether it is a wait for a stream that has nothing left to do.
 */
bool stream_wait_is_over(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame);
