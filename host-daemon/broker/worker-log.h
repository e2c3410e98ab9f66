/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worker log: the standard error of a worker
 */

#include <stdbool.h>
#include <stddef.h>

#include "broker/loop.h"

struct worker;

/* Longer lines are truncated. */
#define WORKER_LOG_LINE 1024

struct worker_log {
	struct worker *worker;
	int fd;
	struct loop_source source;
	struct loop_timer rest;
	char line[WORKER_LOG_LINE + 1];
	size_t n;
	bool refused; /* a line exceeded the budget since the last read */
};

/* Adds the pipe to the loop. Takes ownership of the descriptor in any case. Return: 0 or
 * -errno. */
int worker_log_init(struct worker_log *log, struct worker *worker, int fd);
void worker_log_deinit(struct worker_log *log);

/* Reads the rest of the pipe of a worker that has exited. */
void worker_log_drain(struct worker_log *log);
