/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy time: how much of the last second something worked
 */

#include <string.h>

#include "broker/busy-time.h"

static void drop_first(struct busy_time *time)
{
	time->n--;
	memmove(&time->samples[0], &time->samples[1], time->n * sizeof(time->samples[0]));
}

void busy_time_add(struct busy_time *time, int64_t now_ms, uint64_t busy_ns)
{
	if (time->n == BUSY_TIME_SAMPLES)
		drop_first(time);
	while (time->n && now_ms - time->samples[0].at_ms > BUSY_TIME_WINDOW_MS)
		drop_first(time);
	time->samples[time->n].at_ms = now_ms;
	time->samples[time->n].busy_ns = busy_ns;
	time->n++;
}

uint32_t busy_time_percent(const struct busy_time *time, uint32_t n_units)
{
	uint64_t busy_ns, possible_ns;

	if (time->n < 2 || !n_units)
		return 0;
	busy_ns = time->samples[time->n - 1].busy_ns - time->samples[0].busy_ns;
	possible_ns =
		(uint64_t)(time->samples[time->n - 1].at_ms - time->samples[0].at_ms) *
		1000000 * n_units;
	/* A clock that was read late, or work that moved between processors. */
	if (busy_ns >= possible_ns)
		return possible_ns ? 100 : 0;
	return (uint32_t)((busy_ns * 100 + possible_ns / 2) / possible_ns);
}
