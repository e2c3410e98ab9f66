/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rate: how often a guest may make the host log the same thing
 *
 * A limit keeps a guest that misbehaves at full speed from filling the host's disk.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define RATE_PER_SECOND 5u

struct rate {
	uint64_t window; /* second and count in it: second << 8 | count; atomic */
};

static inline bool rate_allows(struct rate *rate)
{
	uint64_t old = __atomic_load_n(&rate->window, __ATOMIC_RELAXED), window;
	uint64_t now = (uint64_t)time(NULL) << 8;

	do {
		window = old >> 8 == now >> 8 ? old : now;
		if ((window & 0xff) >= RATE_PER_SECOND)
			return false;
		window++;
	} while (!__atomic_compare_exchange_n(
		&rate->window, &old, window, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}
