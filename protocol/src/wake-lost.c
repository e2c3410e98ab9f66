/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which wake-ups are lost: every other one, at random
 *
 * For the test that runs programs which may not rely on any of them.
 */

#include <time.h>

#include "vgpu/wake.h"

bool vgpu_wake_is_lost(void)
{
	static __thread uint64_t state;
	struct timespec now;

	/* Each thread's own, and another in each run; never 0, which would stay 0. */
	if (!state) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		state = ((uint64_t)now.tv_nsec << 20 ^ (uintptr_t)&state) | 1;
	}
	/* xorshift64 by G. Marsaglia */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 63;
}
