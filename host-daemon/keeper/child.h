/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Child: starts a process with exactly the given descriptors
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Number of the first given descriptor in the child. */
#define CHILD_FIRST_FD 3
#define CHILD_FDS_MAX 4
/* Exit status of a program that could not be executed. */
#define CHILD_EXIT_NOT_EXECUTED 127

struct child {
	const char *path;
	char *const *argv;
	const int *fds; /* become descriptors 3, 4, … of the child */
	size_t n_fds;
	int output;	  /* stdout and stderr of the child; -1: stderr of this process */
	int network;	  /* network namespace of the child; -1: inherited */
	bool own_session; /* so that it gets no ctrl-C of the terminal */
	bool outlives;	  /* it is not killed when the calling process exits */
};

/*
 * Raises the priority of the calling process. Children with own_session get the original
 * one.
 *
 * Return: 0 or -errno. Needs root.
 */
int child_raise_priority(int nice);

/* Gives the calling process its original priority back. */
void child_restore_priority(void);

/*
 * Executes a program. Its stdin is /dev/null, it has only the given descriptors and no
 * blocked signals, and unless it outlives the calling process it is killed when that one
 * exits.
 *
 * Return: 0 or -errno. A program that cannot be executed exits with 127.
 */
int child_spawn(pid_t *pidp, const struct child *child);
