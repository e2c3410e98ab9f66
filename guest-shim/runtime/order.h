/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How an operation is ordered, and whether the caller waits for it
 */

#include <stdbool.h>

#include "runtime/types.h"

struct rt_order {
	/* By a call of the driver that has no stream: as cudaMemcpy() is. */
	bool is_sync;
	/* In the default stream of the thread; the caller waits for it. */
	bool is_sync_per_thread;
	cudaStream_t stream;
};

#define SYNC ((struct rt_order){ .is_sync = true })
#define SYNC_PER_THREAD                                                                  \
	((struct rt_order){ .is_sync_per_thread = true, .stream = CU_STREAM_PER_THREAD })

static inline struct rt_order rt_async(cudaStream_t stream)
{
	return (struct rt_order){ .stream = stream };
}

/* Stream 0 in code that was compiled for one default stream a thread. */
static inline cudaStream_t rt_per_thread(cudaStream_t stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* Ends a call that submitted an operation with that result: waits if the order says so.
 */
int rt_order_end(struct rt_order order, int error);
