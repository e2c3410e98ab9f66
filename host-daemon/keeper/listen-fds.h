/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Listen fds: the descriptors that the service manager gives to a process that it starts
 *
 * They are those of sd_listen_fds(3): of its socket units, and what vgpud has stored.
 */

#include <stddef.h>

struct listen_fd {
	int fd; /* -1: taken */
	const char *name;
};

struct listen_fds {
	struct listen_fd *list;
	size_t n;
	char *names; /* all of them, in one piece of memory */
};

/*
 * Takes them, and removes the variables that announce them: no child is to find these.
 *
 * Return: 0 or -ENOMEM.
 */
int listen_fds_init(struct listen_fds *fds);

/* Closes those that nobody has taken. */
void listen_fds_deinit(struct listen_fds *fds);

/* Takes the first of that name out. Return: the descriptor, or -1: there is none. */
int listen_fds_take(struct listen_fds *fds, const char *name);
