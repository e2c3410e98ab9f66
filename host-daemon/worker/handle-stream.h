/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the dispatcher does for a wait before the lane does the waiting
 */

struct lane;
struct session;
struct vgpu_frame;

/*
 * Looks into a cuStreamSynchronize that goes to its lane: makes the mark that covers all
 * that was submitted before, so that the guest may see the end before the reply does.
 */
void stream_before_wait(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame);
