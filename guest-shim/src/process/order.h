/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Order: how much of other streams' work is complete before a stream goes on
 *
 * A stream that waits for an event goes on when the operations in front of the event's
 * record are complete, and those for which that stream had waited before. This is noted
 * for the streams of the last few such waits: for others nothing is known, which is
 * always true.
 */

#include <stdint.h>

/* What one stream or event can know: programs order few streams by events at a time, and
 * each event has room for that much. */
#define SHIM_ORDER_MAX 8u

/* The first operations of a stream. */
struct shim_order_point {
	uint64_t stream; /* shim_stream.id */
	uint64_t count;
};

struct shim_order {
	uint64_t life; /* of a stream's own: its id, as that of another life is of no use
			*/
	uint32_t n;
	uint32_t next; /* the one to be replaced */
	struct shim_order_point points[SHIM_ORDER_MAX];
};

/* Notes that so many operations of a stream are complete. */
void shim_order_note(struct shim_order *order, uint64_t stream, uint64_t count);

/* Notes all that another order has. */
void shim_order_add(struct shim_order *order, const struct shim_order *other);

/* Returns: how many operations of a stream are known to be complete. */
uint64_t shim_order_count(const struct shim_order *order, uint64_t stream);
