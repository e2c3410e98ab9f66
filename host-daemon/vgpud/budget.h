/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Budget: a token bucket
 *
 * The bucket fills with time and starts full. It limits everything that guests can cause
 * at will: log lines, new processes.
 */

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint32_t burst;	    /* maximum of tokens */
	uint32_t period_ms; /* time per token */
	uint32_t n;	    /* tokens left */
	uint32_t n_refused; /* since the last success */
	int64_t time;	    /* ms: tokens are counted up to this time */
};

void budget_init(struct budget *budget, uint32_t burst, uint32_t period_ms, int64_t now);

/* Takes a token. Return: false if there is none. */
bool budget_take(struct budget *budget, int64_t now);

/* Return: ms until there is a token, 0 if there is one. */
uint32_t budget_wait(struct budget *budget, int64_t now);

/* Return: the number of refusals since the last call, or 0 while there is no token. */
uint32_t budget_refused(struct budget *budget, int64_t now);
