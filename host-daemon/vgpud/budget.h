/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Budget: how often something may happen
 *
 * A bucket of tokens that fills with time and starts full. It is the one measure for
 * what guests can cause at will: lines of log, new processes.
 */

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint32_t burst;	    /* most tokens */
	uint32_t period_ms; /* one more in each such time */
	uint32_t n;	    /* tokens left */
	uint32_t n_refused; /* since the last that was not */
	int64_t time;	    /* up to when tokens were counted, ms */
};

void budget_init(struct budget *budget, uint32_t burst, uint32_t period_ms, int64_t now);

/* Takes a token. Returns: whether there was one. */
bool budget_take(struct budget *budget, int64_t now);

/* Returns: ms until there is a token, 0 if there is one. */
uint32_t budget_wait(struct budget *budget, int64_t now);

/* Returns: how many were refused since it was asked last, once there is a token again. */
uint32_t budget_refused(struct budget *budget, int64_t now);
