/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Held ctl: the listening socket for vgpuctl, and the client that waits for another
 * configuration, owned by the keeper
 *
 * The keeper reads nothing from either. The broker accepts and serves; it passes a client
 * on with the configuration that this one has made, and the next broker answers it.
 */

#include <stdint.h>

#include "keeper/listener.h"
#include "vgpud/config.h"

struct held_ctl {
	struct listener listener;
	int client; /* -1: none waits */
	uint64_t request;
};

#define HELD_CTL_NULL                                                                    \
	(struct held_ctl)                                                                \
	{                                                                                \
		.listener = LISTENER_NULL, .client = -1                                  \
	}

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
