/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Child: starting a process with exactly the descriptors that it is given
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The first given descriptor has this number in the child. */
#define CHILD_FIRST_FD 3
#define CHILD_FDS_MAX 4
/* Exit status of a program that could not be executed. */
#define CHILD_EXIT_NOT_EXECUTED 127

struct child {
	const char *path;
	char *const *argv;
	const int *fds; /* become descriptors 3, 4, … of the child */
	size_t n_fds;
	int output;	  /* stdout and stderr of the child; -1: our stderr */
	int network;	  /* network namespace of the child; -1: inherited */
	bool own_session; /* keep it out of the reach of the terminal's ctrl-C */
};

/*
 * Raises the priority of the calling process above that of the children which it starts
 * in sessions of their own: those keep the present one.
 *
 * Return: 0 or -errno. Needs root.
 */
int child_raise_priority(int nice);

/*
 * Executes a program. Its stdin is /dev/null, it has no descriptors but those given and
 * no blocked signals, and it is killed when the calling thread's process ends.
 *
 * Return: 0 or -errno. A program that cannot be executed exits with 127.
 */
int child_spawn(pid_t *pidp, const struct child *child);
