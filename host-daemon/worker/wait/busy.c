/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy: for how long a device has worked for a context
 */

#include <stdlib.h>

#include "worker/wait/busy.h"

void busy_see(struct busy *busy, int64_t device, int64_t host)
{
	if (busy->is_known && device - host <= busy->offset)
		return;
	if (!busy->is_known)
		busy->counted = device;
	busy->offset = device - host;
	busy->is_known = true;
}

void busy_move(struct busy *busy, int64_t by)
{
	busy->counted -= by;
	busy->offset -= by;
}

static int compare(const void *a, const void *b)
{
	const struct busy_interval *one = a, *other = b;

	return (one->begin > other->begin) - (one->begin < other->begin);
}

uint64_t busy_count(
	struct busy *busy, struct busy_interval *intervals, size_t n, int64_t host)
{
	const int64_t now = host + busy->offset;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		if (intervals[i].runs)
			intervals[i].end =
				now > intervals[i].begin ? now : intervals[i].begin;
	qsort(intervals, n, sizeof(*intervals), compare);
	for (size_t i = 0; i < n; i++) {
		const int64_t begin = intervals[i].begin > busy->counted
					      ? intervals[i].begin
					      : busy->counted;

		if (intervals[i].end <= begin)
			continue;
		sum += (uint64_t)(intervals[i].end - begin);
		busy->counted = intervals[i].end;
	}
	return sum;
}
