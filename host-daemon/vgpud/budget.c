/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budget: a token bucket
 */

#include <assert.h>

#include "vgpud/budget.h"

void budget_init(struct budget *budget, uint32_t burst, uint32_t period_ms, int64_t now)
{
	assert(burst && period_ms);
	*budget = (struct budget){
		.burst = burst,
		.period_ms = period_ms,
		.n = burst,
		.time = now,
	};
}

static void fill(struct budget *budget, int64_t now)
{
	int64_t n = (now - budget->time) / budget->period_ms;

	if (n <= 0)
		return;
	if (n >= budget->burst - budget->n) {
		budget->n = budget->burst;
		budget->time = now;
		return;
	}
	budget->n += n;
	budget->time += n * budget->period_ms;
}

bool budget_take(struct budget *budget, int64_t now)
{
	fill(budget, now);
	if (!budget->n) {
		if (budget->n_refused < UINT32_MAX)
			budget->n_refused++;
		return false;
	}
	/* A full bucket counts time from now on. */
	if (budget->n == budget->burst)
		budget->time = now;
	budget->n--;
	return true;
}

uint32_t budget_wait(struct budget *budget, int64_t now)
{
	fill(budget, now);
	return budget->n ? 0 : budget->time + budget->period_ms - now;
}

uint32_t budget_refused(struct budget *budget, int64_t now)
{
	uint32_t n = budget->n_refused;

	if (!n || budget_wait(budget, now))
		return 0;
	budget->n_refused = 0;
	return n;
}
