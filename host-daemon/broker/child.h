/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Child: starting a process that holds exactly what it is given
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The first given descriptor has this number in the child. */
#define CHILD_FIRST_FD 3
#define CHILD_FDS_MAX 4

/*
 * Runs a program. It has stdin from /dev/null, stdout and stderr to our stderr, fds[0],
 * fds[1], … as descriptors 3, 4, …, no other; no blocked signals; it is killed when the
 * calling thread's process ends.
 *
 * @own_session:	keep it out of the reach of the terminal's ctrl-C
 *
 * Return: 0 or -errno. A program that cannot be executed exits with 127.
 */
int child_spawn(pid_t *pidp, const char *path, char *const argv[], const int *fds,
	size_t n_fds, bool own_session);
