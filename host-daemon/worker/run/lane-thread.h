/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lane threads: what runs the calls of a guest thread that may block
 */

#include <stdbool.h>

struct lane;
struct vgpu_frame;

/* Calls of one guest thread that wait; honest threads have one. */
#define LANE_QUEUE_MAX 8u

enum {
	_LANE_E_SUCCESS,
	LANE_E_FULL, /* more calls at once than a thread can make */
};

/* Queues a private copy of the frame. Return: 0, LANE_E_FULL or -errno. */
int lane_post(struct lane *lane, const struct vgpu_frame *frame, bool ordered);

/* The same, and waits until it has run; a guest thread has one call at a time. */
int lane_run(struct lane *lane, const struct vgpu_frame *frame, bool ordered);
