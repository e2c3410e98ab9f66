/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which wake-ups are lost: every other one, at random
 *
 * For the test that runs programs which may not rely on any of them.
 */

#include <x86intrin.h>

#include "vgpu/wake.h"

bool vgpu_wake_is_lost(void)
{
	static __thread uint64_t state;

	/* Each thread's own, and another in each run. */
	if (!state)
		state = __rdtsc() ^ (uintptr_t)&state;
	/* xorshift64 by G. Marsaglia */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 63;
}
