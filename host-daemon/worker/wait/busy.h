/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Busy: for how long a device has worked for a context
 *
 * Work is known by intervals of the device's clock: from the event in front of a batch of
 * work to the event behind it. Batches of several streams run at the same time, so the
 * time is that of the union of their intervals. A batch whose end is not known yet counts
 * up to now, so that a long kernel is charged while it runs.
 *
 * The device's clock has an unknown offset to the host's. An event is complete on the
 * device before the host sees it, so each event seen is a lower bound of the device's
 * time now, and the best of these bounds is used: what counts up to now is never more
 * than what the device did.
 *
 * All times are nanoseconds; those of the device are relative to an event of the caller,
 * and may be negative. It has neither threads nor a driver.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct busy {
	int64_t counted; /* on the device's clock: all until then is counted */
	int64_t offset;	 /* at least the device's time less the host's */
	bool is_known;	 /* the fields above are valid */
};

struct busy_interval {
	int64_t begin;
	int64_t end; /* of one that runs: set by busy_count() */
	bool runs;   /* it has begun, and is not known to have ended */
};

/* An event at `device` was complete when the host's clock was read. */
void busy_see(struct busy *busy, int64_t device, int64_t host);

/* The event to which times of the device are relative is another one, which is later by
 * so much. */
void busy_move(struct busy *busy, int64_t by);

/*
 * Counts intervals: all that run, and those that have ended since the last time.
 *
 * @intervals:	are sorted, and those that run get an end
 * @host:	the host's clock
 *
 * Return: for how long the device has worked that was not counted before.
 */
uint64_t busy_count(
	struct busy *busy, struct busy_interval *intervals, size_t n, int64_t host);
