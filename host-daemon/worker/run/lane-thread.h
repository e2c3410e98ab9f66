/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lane threads: run the calls of a guest thread that may block
 */

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct vgpu_frame;

/* Queued calls of one guest thread; the guest library sends one at a time. */
#define LANE_QUEUE_MAX 8u

enum {
	_LANE_E_SUCCESS,
	LANE_E_FULL, /* more calls than a guest thread can have in flight */
};

/* Queues a private copy of the frame. Return: 0, LANE_E_FULL or -errno. */
int lane_post(struct lane *lane, const struct vgpu_frame *frame, bool ordered);

/* The same, and waits until the call has run. */
int lane_run(struct lane *lane, const struct vgpu_frame *frame, bool ordered);

/* Waits until all queued calls have run, for that time at most. Return: 0 or
 * -ETIMEDOUT. */
int lane_wait(struct lane *lane, uint32_t ms);
