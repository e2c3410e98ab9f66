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
#include "worker/base/ask.h"

struct session;

/* Late grants that are remembered; more come from a vgpud that is out of its mind. */
#define GROWTH_SPARES_MAX 8

/* A grant of arena that a lane waits for. */
struct growth {
	struct ask ask;
	/* The answer and those that came too late, under the lock of `ask`. */
	struct control_grant grant;
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
