/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl peer: who a client of the socket for vgpuctl is, and what it may
 *
 * The kernel keeps user and groups of a process as it connects. What it does later, and
 * to whom it passes the socket, changes nothing.
 */

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/ctl-peer.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

/* As many as the kernel allows a process. */
#define CTL_GROUPS_MAX 65536u

static gid_t find_group(gid_t configured, const char *name)
{
	const struct group *group;

	if (configured != (gid_t)-1)
		return configured;
	group = getgrnam(name);
	return group ? group->gr_gid : (gid_t)-1;
}

void ctl_groups_init(struct ctl_groups *groups, const struct config *config)
{
	groups->admins = find_group(config->ctl_admins, CTL_ADMINS);
	groups->monitors = find_group(config->ctl_monitors, CTL_MONITORS);
}

/* Return: the supplementary groups, to be freed, or NULL: none, or they are unknown. */
static gid_t *read_groups(int fd, size_t *np)
{
	socklen_t size = 64 * sizeof(gid_t);
	gid_t *list = NULL, *more;

	*np = 0;
	while (size <= CTL_GROUPS_MAX * sizeof(gid_t)) {
		more = realloc(list, size);
		if (!more)
			break;
		list = more;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &size)) {
			*np = size / sizeof(gid_t);
			return list;
		}
		/* The kernel has written the size that it needs. */
		if (errno != ERANGE)
			break;
	}
	free(list);
	return NULL;
}

static bool is_member(gid_t own, const gid_t *list, size_t n, gid_t group)
{
	if (group == (gid_t)-1)
		return false;
	for (size_t i = 0; i < n; i++)
		if (list[i] == group)
			return true;
	return own == group;
}

bool ctl_peer_is_root(const struct ctl_peer *peer)
{
	return peer->who.uid == 0 || peer->who.uid == geteuid();
}

int ctl_peer_init(struct ctl_peer *peer, int fd, const struct ctl_groups *groups)
{
	_vgpu_cleanup_(vgpu_freep) gid_t *list = NULL;
	socklen_t size = sizeof(peer->who);
	size_t n;

	*peer = (struct ctl_peer){ .access = VGPU_CTL__ACCESS__NONE };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer->who, &size) < 0)
		return vgpu_error_origin(-errno);
	/* What is no UNIX socket has no process either. */
	if (size != sizeof(peer->who) || peer->who.pid <= 0)
		return vgpu_error_origin(-ENOTCONN);
	list = read_groups(fd, &n);
	if (ctl_peer_is_root(peer) || is_member(peer->who.gid, list, n, groups->admins))
		peer->access = VGPU_CTL__ACCESS__ADMIN;
	else if (is_member(peer->who.gid, list, n, groups->monitors))
		peer->access = VGPU_CTL__ACCESS__MONITOR;
	else
		peer->reason = "only root and members of the groups vgpu-admin and "
			       "vgpu-monitor, or of those that vgpud.conf names, may ask "
			       "vgpud";
	return 0;
}
