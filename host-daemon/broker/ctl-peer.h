/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl peer: who a client of the socket for vgpuctl is, and what it may
 */

#include <sys/socket.h>
#include <sys/types.h>

#include "vgpu-ctl.pb-c.h"
#include "vgpud/config.h"

struct ctl_peer {
	struct ucred who; /* as it connected, by SO_PEERCRED */
	VgpuCtl__Access access;
	const char *reason; /* with access NONE: a sentence */
};

/* The groups whose members may use the socket; (gid_t)-1: there is no such group. */
struct ctl_groups {
	gid_t admins;
	gid_t monitors;
};

#define CTL_ADMINS "vgpu-admin"
#define CTL_MONITORS "vgpu-monitor"

/* Those of a configuration, or of the default names. */
void ctl_groups_init(struct ctl_groups *groups, const struct config *config);

/* Return: 0, or -errno for a descriptor that is not a connected UNIX socket. */
int ctl_peer_init(struct ctl_peer *peer, int fd, const struct ctl_groups *groups);

/* Whether it has all rights of vgpud anyway. */
bool ctl_peer_is_root(const struct ctl_peer *peer);
