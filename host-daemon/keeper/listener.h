/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Listener: a UNIX socket at a path that one process owns
 */

#include <stdbool.h>
#include <sys/types.h>

struct listener {
	char *path;
	char *lock_path;
	int lock; /* locked by flock() while the path is owned */
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
 * Takes ownership of the path: creates its folder if only that is missing, locks
 * PATH.lock, replaces the socket of a dead process, listens.
 *
 * @type:	SOCK_STREAM or SOCK_SEQPACKET
 *
 * Return: 0, LISTENER_E_TAKEN, LISTENER_E_ALIEN or -errno.
 */
int listener_init(
	struct listener *listener, const char *path, int type, mode_t mode, gid_t group);

/* Takes ownership of both descriptors of a listener, which is open already, on success.
 * Return: 0 or -errno. */
int listener_adopt(struct listener *listener, const char *path, int fd, int lock);

/* Changes mode and group of the socket. Return: 0 or -errno. */
int listener_permit(const struct listener *listener, mode_t mode, gid_t group);

/* Whether both files are still at their paths: somebody may have removed them. */
bool listener_is_whole(const struct listener *listener);

/*
 * Listens at the path again, with another socket. Who has connected to the present one
 * and was not accepted sees the end of the connection.
 *
 * Return: as listener_init(); on failure nothing has changed.
 */
int listener_renew(struct listener *listener, int type, mode_t mode, gid_t group);

/* Stops listening and removes both files, if they are ours still. */
void listener_deinit(struct listener *listener);
