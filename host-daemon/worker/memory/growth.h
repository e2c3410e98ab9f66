/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Growth: more arena while the session runs
 *
 * A lane asks vgpud and waits; the control thread receives the answer. One request at a
 * time, identified by a cookie, because an answer may arrive after its lane gave up. The
 * extents of such an answer belong to the channel all the same: they are spare, and the
 * next request that fits takes them instead of asking.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"

struct session;

/* How long vgpud may take: it only looks into a table, but may be restarting. */
#define GROWTH_TIMEOUT_S 5

/* Late grants that are remembered; more come from a vgpud that is out of its mind. */
#define GROWTH_SPARES_MAX 8

/* A grant of arena that a lane waits for. */
struct growth {
	pthread_mutex_t growing; /* held by the lane that grows the arena */
	pthread_mutex_t lock;	 /* for what follows */
	pthread_cond_t granted;
	struct control_grant grant;
	uint32_t cookie;
	bool has_arrived;
	bool is_awaited;
	struct control_grant spares[GROWTH_SPARES_MAX];
	uint32_t n_spares;
};

void growth_init(struct session *session);

/*
 * Asks for one run of extents and adds it to the arena.
 *
 * Return: 0 or -errno.
 */
int growth_request(struct session *session, uint32_t n_extents, uint32_t *firstp,
	uint32_t *n_grantedp);

/* Control thread: an answer has come. */
void growth_granted(struct session *session, const struct control_grant *grant);
