/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Listener: a UNIX socket at a path that one process owns
 */

#include <sys/types.h>

struct listener {
	char *path;
	char *lock_path;
	int lock; /* flock()ed while the path is owned */
	int fd;
};

#define LISTENER_NULL                                                                    \
	{                                                                                \
		.lock = -1, .fd = -1                                                     \
	}

enum {
	_LISTENER_E_SUCCESS,
	LISTENER_E_TAKEN, /* another process serves this path */
	LISTENER_E_ALIEN, /* the path exists and is not a socket */
};

/*
 * Takes the path: makes its folder if that alone is missing, locks PATH.lock, replaces a
 * socket that a dead process left, listens.
 *
 * Return: 0, LISTENER_E_TAKEN, LISTENER_E_ALIEN or -errno.
 */
int listener_init(struct listener *listener, const char *path, mode_t mode, gid_t group);

/* Gives the socket another mode and group. Returns: 0 or -errno. */
int listener_permit(const struct listener *listener, mode_t mode, gid_t group);

/* Stops listening and removes both files. */
void listener_deinit(struct listener *listener);
