/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held ctl: the listening socket for vgpuctl, and the client that waits for another
 * configuration
 *
 * Everybody may connect: the broker looks at who it is, and tells those whom it refuses.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper/held-ctl.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/link.h"

#define HELD_CTL_MODE 0666

/*
 * The socket of a socket unit
 */

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

/* Return: NULL, or why it cannot be served. */
static const char *look_at(int fd, struct sockaddr_un *address)
{
	socklen_t size = sizeof(*address) - 1;

	memset(address, 0, sizeof(*address));
	if (option_of(fd, SO_DOMAIN) != AF_UNIX)
		return "is no UNIX socket";
	if (option_of(fd, SO_TYPE) != SOCK_SEQPACKET)
		return "is not of ListenSequentialPacket=";
	if (option_of(fd, SO_ACCEPTCONN) != 1)
		return "does not listen, as with Accept=yes";
	if (getsockname(fd, (struct sockaddr *)address, &size) < 0 ||
		address->sun_path[0] != '/')
		return "has no path";
	/* Several processes accept from it, so none may wait in accept(). */
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return "cannot be used without waiting";
	return NULL;
}

int held_ctl_take(struct held_ctl *ctl, int fd)
{
	struct sockaddr_un address;
	const char *why = look_at(fd, &address);

	if (!why) {
		ctl->given_path = strdup(address.sun_path);
		why = ctl->given_path ? NULL : strerror(ENOMEM);
	}
	if (!why) {
		ctl->given = fd;
		return 0;
	}
	vgpu_log_error("the descriptor \"control\" of the service manager %s: it is not "
		       "used",
		why);
	close(fd);
	return -EINVAL;
}

static bool is_given(const struct held_ctl *ctl, const char *path)
{
	return ctl->given >= 0 && path && !strcmp(ctl->given_path, path);
}

bool held_ctl_is_given(const struct held_ctl *ctl)
{
	return ctl->listener.is_borrowed;
}

int held_ctl_adopt(struct held_ctl *ctl, const char *path, int fd, int lock)
{
	const int r = listener_adopt(&ctl->listener, path, fd, lock);

	if (!r && is_given(ctl, path))
		listener_leave(&ctl->listener);
	return r;
}

/* Return: as listener_borrow(). */
static int borrow(const struct held_ctl *ctl, struct listener *listener)
{
	_vgpu_cleanup_(vgpu_closep) int fd = fcntl(ctl->given, F_DUPFD_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return vgpu_error_origin(-errno);
	r = listener_borrow(listener, ctl->given_path, fd);
	if (!r)
		fd = -1;
	return r;
}

/*
 * The socket of the configuration
 */

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
	if (ctl->given >= 0 && !is_given(ctl, path))
		vgpu_log_error("ctl-socket is %s: the socket %s of the service manager "
			       "is not served",
			path ? path : "no", ctl->given_path);
	if (!path || is_at(ctl, path))
		return 0;
	r = is_given(ctl, path) ? borrow(ctl, nextp)
				: listener_init(nextp, path, SOCK_SEQPACKET,
					  HELD_CTL_MODE, (gid_t)-1);
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
	ctl->given = vgpu_close(ctl->given);
	free(ctl->given_path);
	ctl->given_path = NULL;
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
