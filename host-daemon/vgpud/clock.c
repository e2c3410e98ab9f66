/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock: the monotonic clock of vgpud
 *
 * A separate file because fuzz targets have a clock that their input advances.
 */

#include <time.h>

#include "vgpud/clock.h"

int64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
