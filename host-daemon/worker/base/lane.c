/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: one for each calling guest thread
 */

#include <stdlib.h>

#include "worker/base/lane.h"
#include "worker/base/session.h"

static struct lane *lane_new(struct session *session, uint32_t index)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->session = session;
	lane->index = index;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->filled, NULL);
	pthread_cond_init(&lane->done, NULL);
	return lane;
}

void lane_free(struct lane *lane)
{
	uint32_t i;

	if (!lane || lane->started)
		return;
	for (i = 0; i < lane->n_streams; i++)
		free(lane->streams[i]);
	pthread_cond_destroy(&lane->filled);
	pthread_cond_destroy(&lane->done);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

bool lane_is_forbidden_unsafe(const struct lane *lane)
{
	const CUstreamCaptureMode mode =
		__atomic_load_n(&lane->capture_mode, __ATOMIC_RELAXED);

	if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	/* Partners: the additions in note_mode() of stream/capture.c. */
	return __atomic_load_n(&lane->n_captures, __ATOMIC_SEQ_CST) ||
	       (mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
		       __atomic_load_n(
			       &lane->session->n_global_captures, __ATOMIC_SEQ_CST));
}

struct lane *lane_get(struct session *session, uint32_t index)
{
	struct lane *lane = __atomic_load_n(&session->lanes[index], __ATOMIC_RELAXED);

	if (lane)
		return lane;
	lane = lane_new(session, index);
	/* Partner: the load in context_forget_contents(). */
	__atomic_store_n(&session->lanes[index], lane, __ATOMIC_RELEASE);
	return lane;
}
