/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reasons: why a call failed, for the guest that made it
 *
 * This worker or softgpu notes the reason on the thread that runs the call. If the call
 * fails, its lane keeps the sentence until another call of the lane fails, and a field of
 * the reply slot indicates it. A call that succeeds nevertheless discards it. A sentence
 * refers to this guest's own code and the limits of its VM only, not to other VMs, and
 * contains no path of the host.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/reason.h"

struct call;
struct lane;

/* Whether this thread has noted a reason since the end of its last call. */
extern __thread bool reason_is_said;

/* The reason kept with a lane, under its lock. */
struct reason {
	uint32_t kind; /* enum vgpu_reply_reason */
	size_t size;
	char text[VGPU_REASON_TEXT_MAX];
};

/* Notes why the call that this thread runs is about to fail; the last note counts. */
void reason_say(enum vgpu_reply_reason kind, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

/* For softgpu_config.explain. */
void reason_from_driver(void *data, const char *text, size_t size);

/* The same for the log of a driver's compiler, unless a reason was noted already. */
void reason_from_log(const char *text, size_t size);

/* Keeps the thread's reason with the lane if the call failed, and discards it otherwise.
 * Return: the kind, for the reply slot. */
uint32_t reason_settle(const struct call *call, CUresult result);

/* Copies the reason kept by a lane. Return: its size. */
size_t reason_get(struct lane *lane, char text[VGPU_REASON_TEXT_MAX]);
