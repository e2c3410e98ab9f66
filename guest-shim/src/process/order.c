/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order
 */

#include <stddef.h>

#include "process/order.h"

static struct shim_order_point *find(struct shim_order *order, uint64_t stream)
{
	for (uint32_t i = 0; i < order->n; i++)
		if (order->points[i].stream == stream)
			return &order->points[i];
	return NULL;
}

void shim_order_note(struct shim_order *order, uint64_t stream, uint64_t count)
{
	struct shim_order_point *point = find(order, stream);

	if (point && point->count >= count)
		return;
	if (!point && order->n < SHIM_ORDER_MAX)
		point = &order->points[order->n++];
	else if (!point)
		point = &order->points[order->next++ % SHIM_ORDER_MAX];
	*point = (struct shim_order_point){ stream, count };
}

void shim_order_add(struct shim_order *order, const struct shim_order *other)
{
	for (uint32_t i = 0; i < other->n; i++)
		if (other->points[i].stream != order->life)
			shim_order_note(
				order, other->points[i].stream, other->points[i].count);
}

uint64_t shim_order_count(const struct shim_order *order, uint64_t stream)
{
	for (uint32_t i = 0; i < order->n; i++)
		if (order->points[i].stream == stream)
			return order->points[i].count;
	return 0;
}
