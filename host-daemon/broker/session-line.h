/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session line: the log line that sums up a session when it ends
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/control.h"

struct session_line {
	const char *vm;
	uint32_t channel;
	uint32_t guest_pid;
	pid_t worker;
	const char *reason;
	struct worker_stats stats;
};

/* Reads the counters of a worker; all are 0 if they cannot be read. */
void session_line_read_stats(int fd, struct worker_stats *stats);

/* Writes the line into a buffer. Return: its length, as snprintf() does. */
int session_line_format(const struct session_line *session, char *line, size_t size);

/* The name of an enum vgpu_channel_reason; never NULL. */
const char *session_line_reason(uint32_t reason);
