/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held ctl: the listening socket for vgpuctl, and the client that waits for another
 * configuration
 *
 * Everybody may connect: the broker looks at who it is, and tells those whom it refuses.
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "keeper/held-ctl.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/link.h"

#define HELD_CTL_MODE 0666

static bool is_at(const struct held_ctl *ctl, const char *path)
{
	return ctl->listener.path && path && !strcmp(ctl->listener.path, path);
}

/* @r:	of a listener */
static void log_failure(const char *path, int r)
{
	if (r == LISTENER_E_TAKEN)
		vgpu_log_error("ctl-socket: another vgpud serves %s (%s.lock is locked)",
			path, path);
	else if (r == LISTENER_E_ALIEN)
		vgpu_log_error("ctl-socket: %s exists and is not a socket", path);
	else if (r)
		vgpu_log_error("ctl-socket: cannot listen on %s: %s", path, strerror(-r));
}

int held_ctl_open(
	const struct held_ctl *ctl, const struct config *config, struct listener *nextp)
{
	const char *path = config_ctl_socket(config);
	int r;

	*nextp = (struct listener)LISTENER_NULL;
	if (!path || is_at(ctl, path))
		return 0;
	r = listener_init(nextp, path, SOCK_SEQPACKET, HELD_CTL_MODE, (gid_t)-1);
	log_failure(path, r);
	return r > 0 ? -EADDRINUSE : r;
}

/* Its files may be gone, as a folder of /run that somebody has emptied. */
static void renew(struct held_ctl *ctl)
{
	const char *path = ctl->listener.path;
	int r;

	if (listener_is_whole(&ctl->listener))
		return;
	r = listener_renew(&ctl->listener, SOCK_SEQPACKET, HELD_CTL_MODE, (gid_t)-1);
	log_failure(path, r);
	if (!r)
		vgpu_log_warning("ctl-socket: %s or its lock was gone and has been made "
				 "again",
			path);
}

void held_ctl_use(
	struct held_ctl *ctl, const struct config *config, struct listener *nextp)
{
	if (is_at(ctl, config_ctl_socket(config))) {
		renew(ctl);
		return;
	}
	listener_deinit(&ctl->listener);
	ctl->listener = *nextp;
	*nextp = (struct listener)LISTENER_NULL;
}

void held_ctl_close(struct held_ctl *ctl)
{
	listener_deinit(&ctl->listener);
	ctl->client = vgpu_close(ctl->client);
}

void held_ctl_tell(const struct held_ctl *ctl, int link)
{
	const struct link_message message = { .type = LINK_CTL };

	if (ctl->listener.fd >= 0)
		link_send(link, &message, &ctl->listener.fd, 1);
}

/* A client that cannot be returned sees the end of its connection. */
void held_ctl_return(int client, uint64_t request, int error, int link)
{
	const struct link_message message = {
		.type = LINK_CONFIGURED,
		.id = request,
		.configured.error = error,
	};

	if (link >= 0)
		link_send(link, &message, &client, 1);
	vgpu_close(client);
}

void held_ctl_keep(struct held_ctl *ctl, int client, uint64_t request)
{
	vgpu_close(ctl->client);
	ctl->client = client;
	ctl->request = request;
}

void held_ctl_return_kept(struct held_ctl *ctl, int link)
{
	if (ctl->client >= 0)
		held_ctl_return(ctl->client, ctl->request, 0, link);
	ctl->client = -1;
}
