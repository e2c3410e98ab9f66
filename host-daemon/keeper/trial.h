/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trial: whether another program can be the keeper's successor
 *
 * That program reads state and configuration in a process of its own, and says so by its
 * exit status.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct trial {
	pid_t pid;   /* 0: none */
	int64_t end; /* ms: then it is killed */
	const char *program;
};

/*
 * Starts the program.
 *
 * @program:	its path, the caller's
 * @state:	file of the state
 * @sources:	of the configuration
 *
 * Return: 0 or -errno.
 */
int trial_begin(struct trial *trial, const char *program, int state, int sources);

/* Kills a program whose time is over. */
void trial_watch(struct trial *trial, int64_t now);

/*
 * Ends the trial, if the process was the program's; a refusal is logged.
 * @canp:	whether it can be the successor
 * Return: whether it was.
 */
bool trial_handle_exit(struct trial *trial, pid_t pid, int status, bool *canp);
