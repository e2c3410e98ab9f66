/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gate: work waits here until the session may have more of the device's time
 *
 * With softgpu its threads keep to the limit of struct softgpu_allowance, in the middle
 * of a kernel. A kernel of another driver cannot be interrupted, so calls that submit
 * work wait instead, in front of the driver. The limit counts what is measured, and an
 * estimate of what is submitted and not complete: otherwise a program would submit as
 * much as it likes before the first of it is measured.
 *
 * Work that is under way may depend on a call behind the one that waits, such as the end
 * of a callback. So a call waits for it no longer than GATE_PATIENCE_NS without progress,
 * and a session that is below its limit always continues.
 *
 * Whoever shares the device sets the limit. All words are atomic.
 */

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/softgpu.h"

#define GATE_PATIENCE_NS UINT64_C(20000000)

struct gate {
	struct softgpu_allowance *allowance;
	/* Device time of what is submitted and not measured, as estimated. Atomic. */
	uint64_t ahead_ns;
	/* Incremented when some of that is complete. Atomic. */
	uint32_t n_complete;
};

enum gate_state {
	GATE_OPEN,
	GATE_AHEAD, /* too much is submitted, though the limit is not reached */
	GATE_SHUT,
};

/* The host's clock, by which limits lapse. */
uint64_t gate_now(void);

/* Whether a call has to wait. */
enum gate_state gate_look(const struct gate *gate, uint64_t now);

/* Whether there may be a limit: a test of one word, for each call. */
static inline bool gate_is_limited(const struct gate *gate)
{
	/* Acquire: the limit belongs to it. Partner: who shares the device. */
	return __atomic_load_n(&gate->allowance->is_limited, __ATOMIC_ACQUIRE) !=
	       SOFTGPU_ALLOWANCE_UNLIMITED;
}

/* Waits until the gate is open, and counts the time. Any thread, with no lock. */
void gate_wait(struct gate *gate);

/* Wakes those that wait, to look again: some work is complete. */
void gate_wake(struct gate *gate);
