/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session: how it begins and ends
 */

#include "worker/base/session.h"

/*
 * Does what needs to know of no guest, while there is none: makes the tables and touches
 * their memory.
 *
 * Return: 0 or -errno.
 */
int session_prepare(struct session *session, const struct driver *driver);

/* The descriptors of an assignment; all but the memory may be -1. */
struct session_fds {
	int memory;
	int quota;
	int doorbell;
	int interrupt;
};

/*
 * Takes an assignment up, once prepared: copies its numbers after checking them against
 * each other, maps the shared memory into the window. Descriptors become the session's.
 *
 * Return: 0 or -errno.
 */
int session_init(struct session *session, struct worker_stats *stats, int control,
	const struct control_assign *assign, const struct vgpu_window *window,
	const struct session_fds *fds);

/* For tests: a worker never comes back from a session. */
void session_deinit(struct session *session);

/*
 * Ends the session and the process: logs why, notifies vgpud, exits. Any thread.
 *
 * @reason:	enum vgpu_channel_reason
 * @why:	a sentence without its full stop
 */
void session_end(struct session *session, uint32_t reason, const char *why)
	__attribute__((__noreturn__));
