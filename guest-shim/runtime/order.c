/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an operation is ordered
 */

#include "runtime/driver.h"
#include "runtime/order.h"

int rt_order_end(struct rt_order order, int error)
{
	if (error || !order.is_sync_per_thread)
		return error;
	return rt_driver.cuStreamSynchronize(order.stream);
}
