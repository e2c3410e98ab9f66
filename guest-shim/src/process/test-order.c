/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of streams by events
 */

#include "test.h"

#include "process/order.h"

TEST(the_later_of_two_points_stays)
{
	struct shim_order order = {};

	shim_order_note(&order, 7, 3);
	shim_order_note(&order, 7, 2);
	check_eq(shim_order_count(&order, 7), 3);
	shim_order_note(&order, 7, 9);
	check_eq(shim_order_count(&order, 7), 9);
	check_eq(order.n, 1);
	check_eq(shim_order_count(&order, 8), 0);
}

TEST(what_is_forgotten_is_unknown_and_nothing_else_changes)
{
	struct shim_order order = {};

	for (uint64_t i = 1; i <= SHIM_ORDER_MAX + 3; i++)
		shim_order_note(&order, i, 10 * i);
	check_eq(order.n, SHIM_ORDER_MAX);
	for (uint64_t i = 1; i <= SHIM_ORDER_MAX + 3; i++)
		check_eq(shim_order_count(&order, i), i <= 3 ? 0 : 10 * i);
}

TEST(an_order_passes_on_what_it_has_but_for_the_streams_own)
{
	struct shim_order order = { .life = 2 }, other = {};

	shim_order_note(&order, 1, 5);
	shim_order_note(&other, 1, 4);
	shim_order_note(&other, 2, 6);
	shim_order_note(&other, 3, 8);
	shim_order_add(&order, &other);
	check_eq(shim_order_count(&order, 1), 5);
	check_eq(shim_order_count(&order, 2), 0);
	check_eq(shim_order_count(&order, 3), 8);
}
