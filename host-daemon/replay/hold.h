/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hold: lets the kernels of a replay run, or holds them
 *
 * How far a device has come when a call is made depends on time. Of a recording with a
 * fault that decides which calls return it, so a replay lets kernels run only while it
 * waits for what they do. Only softgpu can be held, by the allowance that vgpud uses for
 * pauses; with other drivers this has no effect.
 */

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/softgpu.h"

struct hold {
	void *file; /* of the worker's counters */
	struct softgpu_allowance *allowance;
	bool is_wanted; /* else kernels always run */
};

/* Maps the file, which is sealed. Return: 0 or -errno. */
int hold_init(struct hold *hold, int stats);
void hold_deinit(struct hold *hold);

/* Whether to hold kernels at all; they run from here on if not. */
void hold_want(struct hold *hold, bool is_wanted);

/* Lets kernels run for as long as there is something to wait for. */
void hold_release(struct hold *hold);
void hold_again(struct hold *hold);

/* Whether kernels run, and how many contexts they have broken. The worker writes both. */
bool hold_is_busy(const struct hold *hold);
uint64_t hold_faults(const struct hold *hold);
