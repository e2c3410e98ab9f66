/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Growth: more arena while the session runs
 *
 * The extents of an answer that arrives after its lane gave up belong to the channel
 * nevertheless: they are spare, and the next request that they satisfy takes them.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "worker/base/ask.h"

struct session;

/* Spare grants; vgpud cannot send more unless it is faulty. */
#define GROWTH_SPARES_MAX 8

/* A grant of arena for which a lane waits. */
struct growth {
	struct ask ask;
	/* The answer and spare grants, under the lock of `ask`. */
	struct control_grant grant;
	struct control_grant spares[GROWTH_SPARES_MAX];
	uint32_t n_spares;
};

void growth_init(struct session *session);

/*
 * Requests one run of extents and adds it to the arena.
 *
 * Return: 0 or -errno.
 */
int growth_request(struct session *session, uint32_t n_extents, uint32_t *firstp,
	uint32_t *n_grantedp);

/* First thread: handles an answer. */
void growth_granted(struct session *session, const struct control_grant *grant);
