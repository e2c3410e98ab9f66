/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices: tell the guest that its VM's quota was lowered below its use
 */

#include <time.h>

#include "control/quota.h"
#include "vgpu/wake.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/notice.h"

/* A charge that goes beyond the limit is withdrawn within microseconds, unless its thread
 * is interrupted: an excess of so many looks, so far apart, is not one of those. */
#define LOOKS 4
#define LOOK_NS 1000000

void notices_init(struct session *session)
{
	pthread_mutex_init(&session->notices->lock, NULL);
}

void notices_deinit(struct session *session)
{
	pthread_mutex_destroy(&session->notices->lock);
}

CUresult notices_arm(struct session *session)
{
	struct notices *notices = session->notices;

	if (!session->memory->page)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&notices->lock);
	/* Not again: a limit that the waiting lane is about to look at would be lost. */
	if (!notices->is_armed)
		notices->n_lowered = quota_n_lowered(session->memory->page);
	notices->is_armed = true;
	pthread_mutex_unlock(&notices->lock);
	return CUDA_SUCCESS;
}

static bool take_turn(struct notices *notices)
{
	bool may_wait;

	pthread_mutex_lock(&notices->lock);
	may_wait = notices->is_armed && !notices->is_asked;
	if (may_wait)
		notices->is_asked = true;
	pthread_mutex_unlock(&notices->lock);
	return may_wait;
}

static void end_turn(struct notices *notices)
{
	pthread_mutex_lock(&notices->lock);
	notices->is_asked = false;
	pthread_mutex_unlock(&notices->lock);
}

/* Return: whether the limit was lowered since the last look. */
static bool look(struct session *session, uint32_t *n_loweredp)
{
	struct notices *notices = session->notices;
	bool was_lowered;

	pthread_mutex_lock(&notices->lock);
	*n_loweredp = quota_n_lowered(session->memory->page);
	was_lowered = *n_loweredp != notices->n_lowered;
	notices->n_lowered = *n_loweredp;
	pthread_mutex_unlock(&notices->lock);
	return was_lowered;
}

static uint64_t lasting_excess(struct session *session)
{
	const struct timespec pause = { 0, LOOK_NS };
	uint64_t least = device_memory_excess(session);

	for (int i = 1; i < LOOKS && least; i++) {
		uint64_t excess;

		nanosleep(&pause, NULL);
		excess = device_memory_excess(session);
		if (excess < least)
			least = excess;
	}
	return least;
}

CUresult notices_next(struct session *session, uint64_t *excessp)
{
	struct notices *notices = session->notices;
	struct vgpu_nap nap = {};
	uint32_t n_lowered;

	if (!take_turn(notices))
		return CUDA_ERROR_NOT_PERMITTED;
	*excessp = 0;
	while (!*excessp) {
		if (look(session, &n_lowered))
			*excessp = lasting_excess(session);
		else
			quota_nap(session->memory->page, n_lowered, vgpu_nap_ms(&nap));
	}
	end_turn(notices);
	return CUDA_SUCCESS;
}
