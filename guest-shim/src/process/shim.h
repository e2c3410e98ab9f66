/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * State of the process
 *
 *	new	before cuInit, or after one that failed: it may be tried again
 *	ready	the channel is open
 *	closed	the process is ending: late calls fail softly
 *
 * The state is in a page that the kernel wipes in a forked child (MADV_WIPEONFORK), so
 * that every kind of fork is detected before any lock is taken. The child cannot use
 * anything else that it inherits: it may neither call nor initialise again.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "g-entries.h"
#include "wire/channel.h"

enum shim_state {
	SHIM_NEW, /* what a wiped page reads as */
	SHIM_READY,
	SHIM_CLOSED,
};

extern const uint32_t *shim_statep;

/* Returns: the error of a call in a process that is not ready. */
CUresult shim_why_not_ready(void);

static inline bool shim_is_ready(void)
{
	return __builtin_expect(
		__atomic_load_n(shim_statep, __ATOMIC_ACQUIRE) == SHIM_READY, 1);
}

/* Called first by every entry point but cuInit and those that need no state. */
#define SHIM_CHECK_READY()                                                               \
	do {                                                                             \
		if (!shim_is_ready())                                                    \
			return shim_why_not_ready();                                     \
	} while (0)
