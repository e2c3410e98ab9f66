/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: more arena while the session runs
 */

#include <errno.h>

#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/base/session.h"
#include "worker/memory/arena.h"
#include "worker/memory/growth.h"

void growth_init(struct session *session)
{
	ask_init(&session->growth->ask);
}

static int ask_extents_locked(struct session *session, uint32_t n_extents)
{
	struct growth *growth = session->growth;
	struct control_message message = {
		.type = CONTROL_WANT,
		.want = { .n_extents = n_extents, .cookie = ++growth->ask.cookie },
	};
	int r;

	r = ask_locked(session, &growth->ask, &message, NULL);
	return r ? vgpu_error_trace(r) : growth->grant.error;
}

/* Return: true if a spare grant is large enough; it becomes the answer. */
static bool take_spare_locked(struct session *session, uint32_t n_extents)
{
	struct growth *growth = session->growth;
	uint32_t i;

	for (i = 0; i < growth->n_spares; i++) {
		if (growth->spares[i].n_extents < n_extents)
			continue;
		growth->grant = growth->spares[i];
		growth->spares[i] = growth->spares[--growth->n_spares];
		return true;
	}
	return false;
}

/* Whether the grant is known already: vgpud may answer twice. */
static bool is_known_locked(struct session *session, const struct control_grant *grant)
{
	struct growth *growth = session->growth;
	if (arena_has_extent(session, grant->first_extent))
		return true;
	for (uint32_t i = 0; i < growth->n_spares; i++)
		if (growth->spares[i].first_extent == grant->first_extent)
			return true;
	/* The lane may be about to add it. */
	return growth->grant.n_extents && !growth->grant.error &&
	       growth->grant.first_extent == grant->first_extent;
}

static void keep_spare_locked(struct session *session, const struct control_grant *grant)
{
	struct growth *growth = session->growth;
	if (!grant->error && growth->n_spares < GROWTH_SPARES_MAX &&
		!is_known_locked(session, grant))
		growth->spares[growth->n_spares++] = *grant;
}

int growth_request(struct session *session, uint32_t n_extents, uint32_t *firstp,
	uint32_t *n_grantedp)
{
	struct growth *growth = session->growth;
	struct control_grant grant;
	int r;

	if (!n_extents || n_extents > session->arena->n_extents)
		return vgpu_error_origin(-ENOSPC);
	pthread_mutex_lock(&growth->ask.turn);
	pthread_mutex_lock(&growth->ask.lock);
	r = take_spare_locked(session, n_extents)
		    ? 0
		    : ask_extents_locked(session, n_extents);
	grant = growth->grant;
	pthread_mutex_unlock(&growth->ask.lock);
	if (!r)
		r = arena_add_run(session, grant.first_extent, grant.n_extents);
	pthread_mutex_unlock(&growth->ask.turn);
	if (r)
		return vgpu_error_trace(r);
	*firstp = grant.first_extent;
	*n_grantedp = grant.n_extents;
	return 0;
}

void growth_granted(struct session *session, const struct control_grant *grant)
{
	struct growth *growth = session->growth;
	pthread_mutex_lock(&growth->ask.lock);
	if (ask_answer(&growth->ask, grant->cookie))
		growth->grant = *grant;
	else
		keep_spare_locked(session, grant);
	pthread_mutex_unlock(&growth->ask.lock);
}
