/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ask: one request to vgpud at a time, and its answer
 */

#include <errno.h>
#include <time.h>

#include "control/control.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"
#include "worker/base/ask.h"
#include "worker/base/session.h"

void ask_init(struct ask *ask)
{
	*ask = (struct ask){};
	pthread_mutex_init(&ask->turn, NULL);
	pthread_mutex_init(&ask->lock, NULL);
	pthread_cond_init(&ask->answered, NULL);
}

void ask_deinit(struct ask *ask)
{
	pthread_cond_destroy(&ask->answered);
	pthread_mutex_destroy(&ask->lock);
	pthread_mutex_destroy(&ask->turn);
}

static int wait_locked(struct ask *ask)
{
	struct vgpu_nap nap = {};
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ASK_TIMEOUT_S;
	while (!ask->has_arrived && !r)
		r = vgpu_nap_cond_until(&nap, &ask->answered, &ask->lock, &until);
	return ask->has_arrived ? 0 : vgpu_error_origin(r);
}

int ask_locked(struct session *session, struct ask *ask,
	const struct control_message *message, const int *fds)
{
	int r;

	ask->has_arrived = false;
	ask->is_awaited = true;
	r = control_send(session->control, message, fds) ? vgpu_error_origin(-EPIPE)
							 : wait_locked(ask);
	ask->is_awaited = false;
	return r;
}

bool ask_answer(struct ask *ask, uint32_t cookie)
{
	if (!ask->is_awaited || ask->has_arrived || cookie != ask->cookie)
		return false;
	ask->has_arrived = true;
	vgpu_wake_all(&ask->answered);
	return true;
}
