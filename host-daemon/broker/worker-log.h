/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worker log: the standard error of a worker
 */

#include <stdbool.h>
#include <stddef.h>

#include "broker/loop.h"

struct worker;

/* Longer lines are cut. */
#define WORKER_LOG_LINE 1024

struct worker_log {
	struct worker *worker;
	int fd;
	struct loop_source source;
	struct loop_timer rest;
	char line[WORKER_LOG_LINE + 1];
	size_t n;
	bool refused; /* a line, since the pipe was read last */
};

/* Begins to listen; the descriptor becomes its own in any case. Returns: 0 or -errno. */
int worker_log_init(struct worker_log *log, struct worker *worker, int fd);
void worker_log_deinit(struct worker_log *log);

/* Takes what is left in the pipe of a worker that has ended. */
void worker_log_drain(struct worker_log *log);
