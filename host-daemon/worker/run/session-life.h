/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session life: the beginning and end of a session
 */

#include "worker/base/session.h"

/*
 * The preparation that is independent of the guest, done before there is one: creates the
 * tables and populates their memory.
 *
 * Return: 0 or -errno.
 */
int session_prepare(struct session *session, const struct driver *driver);

/* The descriptors of an assignment; all except the memory may be -1. */
struct session_fds {
	int memory;
	int quota;
	int doorbell;
	int interrupt;
};

/*
 * Begins a prepared session with an assignment: checks its numbers against each other,
 * copies them, and maps the shared memory into the window. Takes ownership of the
 * descriptors.
 *
 * Return: 0 or -errno.
 */
int session_init(struct session *session, struct worker_stats *stats,
	struct worker_use *use, struct flight *flight, int control,
	const struct control_assign *assign, const struct vgpu_window *window,
	const struct session_fds *fds);

/* For tests: a worker exits at the end of its session. */
void session_deinit(struct session *session);

/*
 * Ends the session and the process: logs why, notifies vgpud, exits. Any thread.
 *
 * @reason:	enum vgpu_channel_reason
 * @why:	a sentence without its full stop
 */
void session_end(struct session *session, uint32_t reason, const char *why)
	__attribute__((__noreturn__));
