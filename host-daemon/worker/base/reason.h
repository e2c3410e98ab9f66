/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reasons: why a call failed, for the guest that made it
 *
 * This worker or softgpu notes the reason on the thread that runs the call. If the call
 * ends with an error the sentence is kept with its lane until another call of the lane
 * fails, and the reply's slot shows that there is one; a call that succeeds all the same
 * leaves none. A sentence refers to this guest's own code and the limits of its VM only,
 * not to other VMs, and contains no path of the host.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/reason.h"

struct call;
struct lane;

/* Of the thread: whether something was said since its last call ended. */
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

/* As struct softgpu_config wants it. */
void reason_from_driver(void *data, const char *text, size_t size);

/* The same for the log of a driver's compiler, unless something was said already. */
void reason_from_log(const char *text, size_t size);

/* For a call that failed, or one of whose thread something was said: keeps or drops it.
 * Return: the kind, for the reply's slot. */
uint32_t reason_settle(const struct call *call, CUresult result);

/* Copies what is kept with a lane. Return: its size. */
size_t reason_get(struct lane *lane, char text[VGPU_REASON_TEXT_MAX]);
