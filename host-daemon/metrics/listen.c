/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listen: the socket where metrics are served
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/listen.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#define BACKLOG 128

static const char *parse_path(struct listen_address *address, const char *text)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&address->storage;

	if (strlen(text) >= sizeof(un->sun_path))
		return "the path is too long for a socket";
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, text);
	address->size = sizeof(*un);
	address->path = text;
	return NULL;
}

/* Return: the port, or 0 for a text that is none. */
static in_port_t parse_port(const char *text)
{
	char *end;
	const unsigned long port =
		*text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;

	return port && !*end && port <= UINT16_MAX ? htons((uint16_t)port) : 0;
}

/* The host's part of "HOST:PORT", without brackets. Return: whether there is one. */
static bool split(const char *text, char host[static 64], in_port_t *portp)
{
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;

	if (!size || size >= 64)
		return false;
	if (text[0] == '[' && text[size - 1] == ']') {
		text++;
		size -= 2;
	}
	memcpy(host, text, size);
	host[size] = '\0';
	*portp = parse_port(colon + 1);
	return *portp;
}

const char *listen_parse(struct listen_address *address, const char *text)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&address->storage;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address->storage;
	char host[64];
	in_port_t port;

	*address = (struct listen_address){ 0 };
	if (*text == '/')
		return parse_path(address, text);
	if (!split(text, host, &port))
		return "it is neither a path nor ADDRESS:PORT";
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = port;
		address->size = sizeof(*in);
		if (ntohl(in->sin_addr.s_addr) >> 24 == 127)
			return NULL;
		return "it is not an address of the loopback";
	}
	if (text[0] != '[' || inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
		return "it is neither a path nor ADDRESS:PORT";
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	address->size = sizeof(*in6);
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr)
		       ? NULL
		       : "it is not an address of the loopback";
}

/* Removes a socket that a killed process has left. Return: 0 or -errno. */
static int remove_left(const struct listen_address *address)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	struct stat st;

	if (lstat(address->path, &st))
		return errno == ENOENT ? 0 : vgpu_error_origin(-errno);
	if (!S_ISSOCK(st.st_mode))
		return vgpu_error_origin(-EEXIST);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return vgpu_error_origin(-errno);
	if (!connect(fd, (const struct sockaddr *)&address->storage, address->size) ||
		errno == EAGAIN)
		return vgpu_error_origin(-EADDRINUSE);
	return unlink(address->path) ? vgpu_error_origin(-errno) : 0;
}

int listen_open(int *fdp, const struct listen_address *address)
{
	static const int yes = 1;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	mode_t mask;
	int r = address->path ? remove_left(address) : 0;

	if (r)
		return vgpu_error_trace(r);
	fd = socket(address->storage.ss_family,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return vgpu_error_origin(-errno);
	if (!address->path && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)))
		return vgpu_error_origin(-errno);
	/* Nobody else may connect before its mode is right. */
	mask = umask(0117);
	r = bind(fd, (const struct sockaddr *)&address->storage, address->size) ? -errno
										: 0;
	umask(mask);
	if (!r && listen(fd, BACKLOG))
		r = -errno;
	if (r)
		return vgpu_error_origin(r);
	*fdp = fd;
	fd = -1;
	return 0;
}
