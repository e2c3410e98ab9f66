/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What records and waits of events say about the order of streams, for the blocks of
 * pools (CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES)
 *
 * An event has, from its last record, what was in front of it; a stream that waits for
 * the event adds that to what it knows. Each record and each wait is noted in two steps,
 * before and after its message: what an event has is forgotten before its next record is
 * sent, and a wait counts only if there was no record in between. So a wait never counts
 * for more than it is on the ring.
 */

#include <stdint.h>

#include "process/order.h"
#include "vgpu/cuda.h"

struct shim_event;
struct shim_stream;

struct shim_event_order {
	struct shim_event *event; /* NULL: nothing is to be noted */
	struct shim_stream *stream;
	uint64_t life;
	uint32_t n_records; /* of the event */
	struct shim_order order;
};

/* Around the message of a record. */
void shim_event_order_begin_record(
	struct shim_event_order *order, struct shim_event *event, CUstream stream);
void shim_event_order_end_record(struct shim_event_order *order, CUresult result);

/* Around the message of a wait. */
void shim_event_order_begin_wait(
	struct shim_event_order *order, CUevent handle, CUstream stream);
void shim_event_order_end_wait(struct shim_event_order *order, CUresult result);
