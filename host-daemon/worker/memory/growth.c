/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: more arena while the session runs
 */

#include <time.h>

#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/session.h"
#include "worker/memory/growth.h"

static int wait_locked(struct session *session)
{
	struct vgpu_nap nap = {};
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += GROWTH_TIMEOUT_S;
	while (!session->grant_arrived && !r)
		r = vgpu_nap_cond_until(
			&nap, &session->granted, &session->grant_lock, &until);
	return session->grant_arrived ? session->grant.error : vgpu_error_origin(r);
}

static int ask_locked(struct session *session, uint32_t n_extents)
{
	struct control_message message = {
		.type = CONTROL_WANT,
		.want = { .n_extents = n_extents, .cookie = ++session->grant_cookie },
	};

	int r;

	session->grant_arrived = false;
	session->grant_awaited = true;
	r = control_send(session->control, &message, NULL) ? -EPIPE
							   : wait_locked(session);
	session->grant_awaited = false;
	return r;
}

/* Returns: whether an earlier answer that came too late will do. */
static bool take_spare_locked(struct session *session, uint32_t n_extents)
{
	uint32_t i;

	for (i = 0; i < session->n_spares; i++) {
		if (session->spares[i].n_extents < n_extents)
			continue;
		session->grant = session->spares[i];
		session->spares[i] = session->spares[--session->n_spares];
		return true;
	}
	return false;
}

/* Whether the answer came before. */
static bool is_known_locked(struct session *session, const struct control_grant *grant)
{
	if (arena_has_extent(session, grant->first_extent))
		return true;
	for (uint32_t i = 0; i < session->n_spares; i++)
		if (session->spares[i].first_extent == grant->first_extent)
			return true;
	/* Its lane may be about to add it. */
	return session->grant.n_extents && !session->grant.error &&
	       session->grant.first_extent == grant->first_extent;
}

static void keep_spare_locked(struct session *session, const struct control_grant *grant)
{
	if (!grant->error && session->n_spares < GROWTH_SPARES_MAX &&
		!is_known_locked(session, grant))
		session->spares[session->n_spares++] = *grant;
}

int growth_request(struct session *session, uint32_t n_extents, uint32_t *firstp,
	uint32_t *n_grantedp)
{
	struct control_grant grant;
	int r;

	if (!n_extents || n_extents > session->arena.n_extents)
		return -ENOSPC;
	pthread_mutex_lock(&session->growth_lock);
	pthread_mutex_lock(&session->grant_lock);
	r = take_spare_locked(session, n_extents) ? 0 : ask_locked(session, n_extents);
	grant = session->grant;
	pthread_mutex_unlock(&session->grant_lock);
	if (!r)
		r = arena_add_run(session, grant.first_extent, grant.n_extents);
	pthread_mutex_unlock(&session->growth_lock);
	if (r)
		return r;
	*firstp = grant.first_extent;
	*n_grantedp = grant.n_extents;
	return 0;
}

void growth_granted(struct session *session, const struct control_grant *grant)
{
	pthread_mutex_lock(&session->grant_lock);
	if (grant->cookie != session->grant_cookie || session->grant_arrived ||
		!session->grant_awaited) {
		keep_spare_locked(session, grant);
	} else {
		session->grant = *grant;
		session->grant_arrived = true;
		vgpu_wake_all(&session->granted);
	}
	pthread_mutex_unlock(&session->grant_lock);
}
