/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Program: the worker process of a replay, started as vgpud starts it
 */

#include <stdbool.h>
#include <sys/types.h>

#include "control/recording.h"
#include "vgpud/config.h"

/* What the command line says. */
struct replay_options {
	const char *driver;	     /* NULL: that of the recording */
	const char *softgpu_threads; /* NULL: as in the recording */
	bool is_unprivileged;	     /* NVIDIA's driver without a user id of its own */
	bool is_verbose;
	bool is_json;
	unsigned int timeout_s; /* of anything that does not go on */
	unsigned int n_lines;	/* differences that are printed */
};

struct program {
	pid_t pid;
	int control; /* our end */
	int stats;   /* its file of counters */
};

#define PROGRAM_NULL                                                                     \
	(struct program)                                                                 \
	{                                                                                \
		.control = -1, .stats = -1                                               \
	}

/*
 * Starts a worker.
 *
 * @paths:	of programs and libraries, see vgpud/paths.h
 *
 * Return: 0 or -errno.
 */
int program_start(struct program *program, const struct config *paths,
	const struct recording_header *header, const struct replay_options *options);

/* Closes its socket, by which it ends, and waits. Return: the status of waitpid(2). */
int program_end(struct program *program);
