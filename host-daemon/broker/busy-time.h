/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Busy time: how much of the last second something worked
 */

#include <stdint.h>

#define BUSY_TIME_WINDOW_MS 1000
/* One more than fit into the window at the rate of samples, see status.c. */
#define BUSY_TIME_SAMPLES 6u

struct busy_time {
	struct {
		int64_t at_ms;
		uint64_t busy_ns; /* since it began */
	} samples[BUSY_TIME_SAMPLES];
	unsigned int n;
};

/* Adds a sample; the oldest ones are dropped. */
void busy_time_add(struct busy_time *time, int64_t now_ms, uint64_t busy_ns);

/*
 * Return: per cent of the window, 0 to 100.
 *
 * @n_units:	how many of it can work at the same time
 */
uint32_t busy_time_percent(const struct busy_time *time, uint32_t n_units);
