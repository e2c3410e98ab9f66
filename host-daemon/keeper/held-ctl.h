/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Held ctl: the listening socket for vgpuctl, and the client that waits for another
 * configuration, owned by the keeper
 *
 * The keeper reads nothing from either. The broker accepts and serves; it passes a client
 * on with the configuration that this one has made, and the next broker answers it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/listener.h"
#include "vgpud/config.h"

struct held_ctl {
	struct listener listener;
	int given; /* the service manager's listening socket; -1: there is none */
	char *given_path;
	int client; /* -1: none waits */
	uint64_t request;
};

#define HELD_CTL_NULL                                                                    \
	(struct held_ctl)                                                                \
	{                                                                                \
		.listener = LISTENER_NULL, .given = -1, .client = -1                     \
	}

/*
 * Takes the listening socket of a socket unit. It is served while the configuration names
 * its path, and remains as it is when this process ends: so clients that come while there
 * is no vgpud wait for the next one.
 *
 * Return: 0, or -EINVAL: it is not such a socket, which is logged, and closed.
 */
int held_ctl_take(struct held_ctl *ctl, int fd);

/* Takes over a predecessor's own listener, see listener_adopt(). If there is a given one
 * at its path by now, whose file has replaced its file, it is closed instead. */
int held_ctl_adopt(struct held_ctl *ctl, const char *path, int fd, int lock);

/* Whether the socket that is served is the given one. */
bool held_ctl_is_given(const struct held_ctl *ctl);

/*
 * Listens where a configuration says, unless it listens there already. The reason of a
 * failure is logged.
 *
 * @nextp:	its listener, or LISTENER_NULL: the present one stays, or there is none
 *
 * Return: 0 or -errno.
 */
int held_ctl_open(
	const struct held_ctl *ctl, const struct config *config, struct listener *nextp);

/* Replaces the listener, or removes it, as the configuration says. One that stays is
 * renewed if its files are gone. */
void held_ctl_use(
	struct held_ctl *ctl, const struct config *config, struct listener *nextp);

void held_ctl_close(struct held_ctl *ctl);

/* Gives the listening socket to a new broker. */
void held_ctl_tell(const struct held_ctl *ctl, int link);

/* Returns a client to the broker, with the error of its request. */
void held_ctl_return(int client, uint64_t request, int error, int link);

/* Keeps the client of a configuration that is in force for the next broker, and returns
 * it to that one. */
void held_ctl_keep(struct held_ctl *ctl, int client, uint64_t request);
void held_ctl_return_kept(struct held_ctl *ctl, int link);
