/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clock: the one that never jumps
 */

#include <stdint.h>
#include <time.h>

static inline uint64_t shim_clock_of(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t shim_clock_ns(void)
{
	return shim_clock_of(CLOCK_MONOTONIC);
}
