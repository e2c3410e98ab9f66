/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often something may happen
 */

#include "test.h"
#include "vgpud/budget.h"

static struct budget budget;

static unsigned int take_all(int64_t now)
{
	unsigned int n = 0;

	while (budget_take(&budget, now))
		n++;
	return n;
}

TEST(a_budget_starts_full_and_is_exhausted)
{
	budget_init(&budget, 5, 200, 1000);
	check_eq(budget_wait(&budget, 1000), 0);
	check_eq(take_all(1000), 5);
	check_eq(budget_wait(&budget, 1000), 200);
	check(!budget_take(&budget, 1199));
	check_eq(budget_wait(&budget, 1199), 1);
}

TEST(a_budget_refills_with_time_up_to_its_limit)
{
	budget_init(&budget, 5, 200, 0);
	check_eq(take_all(0), 5);
	check_eq(take_all(450), 2);
	/* The 50 ms over are not lost. */
	check_eq(take_all(600), 1);
	check_eq(take_all(1000000), 5);
	check_eq(take_all(1000199), 0);
}

TEST(a_stopped_clock_refills_nothing)
{
	budget_init(&budget, 3, 10, 7);
	check_eq(take_all(7), 3);
	for (int i = 0; i < 100; i++)
		check(!budget_take(&budget, 7));
}

TEST(refusals_are_counted_and_reported_once_there_is_room)
{
	budget_init(&budget, 2, 100, 0);
	check_eq(take_all(0), 2);
	for (int i = 0; i < 6; i++)
		check(!budget_take(&budget, 0));
	check_eq(budget_refused(&budget, 99), 0);
	check_eq(budget_refused(&budget, 100), 7);
	check_eq(budget_refused(&budget, 100), 0);
	check(budget_take(&budget, 100));
}
