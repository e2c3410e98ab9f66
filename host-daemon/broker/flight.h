/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flight recorder: the broker's part, see control/flight.h
 */

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Logs the last calls before a fault of a session, and writes all of them to a file. */
void flight_report_fault(const struct worker *worker, int32_t result);

/*
 * The same at the end of a session, unless the end is a normal one.
 *
 * @reason:	enum vgpu_channel_reason
 */
void flight_report_end(const struct worker *worker, uint32_t reason);

/* The last call of a session that failed. */
struct flight_error {
	int32_t result; /* 0: none has */
	uint32_t call;
	uint64_t age_ms;
};

void flight_last_error(const struct worker *worker, struct flight_error *error);
