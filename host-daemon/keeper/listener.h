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
	bool is_borrowed; /* from the owner of the socket's file, which stays */
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

/*
 * Locks PATH.lock and serves a socket at that path which belongs to another process, as
 * that of a unit of systemd: its file is neither removed nor made again. Takes ownership
 * of the descriptor on success.
 *
 * Return: 0, LISTENER_E_TAKEN or -errno.
 */
int listener_borrow(struct listener *listener, const char *path, int fd);

/* Changes mode and group of the socket. Return: 0 or -errno. */
int listener_permit(const struct listener *listener, mode_t mode, gid_t group);

/* Whether both files are still at their paths: somebody may have removed them. Of a
 * borrowed socket only the lock counts. */
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

/* The same, but the socket at the path is another process's by now, and stays. */
void listener_leave(struct listener *listener);
