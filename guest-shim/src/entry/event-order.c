/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What records and waits of events say about the order of streams
 *
 * Before the first block of a pool is freed there is nothing to know. In a capture
 * records and waits become edges of a graph, so nothing is noted while one is live.
 */

#include "entry/event-order.h"
#include "entry/pool-block.h"
#include "process/stream.h"
#include "wait/event.h"
#include "wire/channel.h"

static bool is_of_use(const struct shim_event *event)
{
	return shim_pools_n_frees() && !shim_channel_has_capture() && !event->share &&
	       !__atomic_load_n(&event->is_of_graph, __ATOMIC_RELAXED);
}

static bool find_stream(struct shim_event_order *order, CUstream handle)
{
	if (shim_stream_find_checked(handle, &order->stream) != CUDA_SUCCESS)
		return false;
	order->life = __atomic_load_n(&order->stream->id, __ATOMIC_ACQUIRE);
	return true;
}

void shim_event_order_begin_record(
	struct shim_event_order *order, struct shim_event *event, CUstream stream)
{
	order->event = NULL;
	if (!shim_pools_n_frees())
		return;
	order->n_records = shim_event_forget_order(event);
	if (!is_of_use(event) || !find_stream(order, stream))
		return;
	/* Before the record: what other threads submit meanwhile may be behind it. */
	shim_stream_get_order(order->stream, &order->order);
	shim_order_note(&order->order, order->life, shim_stream_reach(order->stream));
	if (order->order.life == order->life)
		order->event = event;
}

void shim_event_order_end_record(struct shim_event_order *order, CUresult result)
{
	if (order->event && result == CUDA_SUCCESS && is_of_use(order->event))
		shim_event_set_order(order->event, order->n_records, &order->order);
}

void shim_event_order_begin_wait(
	struct shim_event_order *order, CUevent handle, CUstream stream)
{
	struct shim_event *event = shim_event_find(handle);

	order->event = NULL;
	if (event && is_of_use(event) &&
		shim_event_get_order(event, &order->n_records, &order->order) &&
		find_stream(order, stream))
		order->event = event;
}

void shim_event_order_end_wait(struct shim_event_order *order, CUresult result)
{
	if (order->event && result == CUDA_SUCCESS && is_of_use(order->event) &&
		shim_event_has_order(order->event, order->n_records))
		shim_stream_add_order(order->stream, order->life, &order->order);
}
