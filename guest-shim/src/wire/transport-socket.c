/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport: a UNIX socket of vgpud on the same machine
 *
 * The host sends one greeting with the memory and two eventfds, and nothing after it: the
 * connection lasts for the life of both sides, and its end is how each learns that the
 * other has ended. Both map the same memory on the same kernel, so a shared futex works
 * on words that the host writes.
 */

#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"

#include "wire/reason.h"
#include "wire/sentence.h"
#include "wire/transport.h"

/* A host that accepts and stays silent is given up; one that is busy is not. */
#define GREETING_TIMEOUT_MS 10000

static int connect_to(const char *path, int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval timeout = { .tv_sec = GREETING_TIMEOUT_MS / 1000 };

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Bounds connect() too, should the host's backlog be full. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	*fdp = fd;
	fd = -1;
	return 0;
}

/* Takes the descriptors out of a message; those that are not wanted are closed. */
static int take_fds(struct msghdr *message, int fds[VGPU_SOCKET_FDS])
{
	int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < VGPU_SOCKET_FDS)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

static int receive_greeting(int fd, int fds[VGPU_SOCKET_FDS])
{
	union {
		char buffer[CMSG_SPACE(sizeof(int) * VGPU_SOCKET_FDS)];
		struct cmsghdr align;
	} control;
	struct vgpu_socket_greeting greeting = {};
	struct iovec iov = { .iov_base = &greeting, .iov_len = sizeof(greeting) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int r;

	do
		r = poll(&poller, 1, GREETING_TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (!r)
		return -ETIMEDOUT;

	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	r = take_fds(&message, fds);
	if (n == 0)
		return -ECONNRESET;
	if (n < (ssize_t)sizeof(greeting) || greeting.magic != VGPU_SHM_MAGIC)
		return vgpu_error_origin(-EBADMSG);
	if (greeting.protocol_version != VGPU_PROTOCOL_VERSION) {
		shim_reason_of_version(greeting.protocol_version);
		return -EPROTO;
	}
	return r == VGPU_SOCKET_FDS ? 0 : vgpu_error_origin(-EBADMSG);
}

static void socket_close(struct shim_transport *transport)
{
	transport->shm_fd = vgpu_close(transport->shm_fd);
	transport->doorbell_fds[0] = vgpu_close(transport->doorbell_fds[0]);
	transport->doorbell_fds[1] = vgpu_close(transport->doorbell_fds[1]);
	transport->socket_fd = vgpu_close(transport->socket_fd);
}

static int open_path(struct shim_transport *transport, const char *path)
{
	int fds[VGPU_SOCKET_FDS] = { -1, -1, -1 };
	struct stat info;
	int r;

	r = connect_to(path, &transport->socket_fd);
	if (r)
		return r;
	r = receive_greeting(transport->socket_fd, fds);
	transport->shm_fd = fds[0];
	transport->doorbell_fds[0] = fds[1];
	transport->doorbell_fds[1] = fds[2];
	if (!r && fstat(transport->shm_fd, &info))
		r = -errno;
	if (!r)
		r = shim_transport_map_header(transport, (uint64_t)info.st_size);
	if (r)
		socket_close(transport);
	return r;
}

static int socket_open(struct shim_transport *transport)
{
	const char *path = getenv(VGPU_SOCKET_ENV);
	char text[SHIM_SENTENCE_SIZE];
	int r;

	r = open_path(transport, path);
	if (r && r != -EPROTO) {
		shim_sentence_of_socket(text, path, r);
		shim_reason_note(SHIM_REASON_TRANSPORT, "%s", text);
	}
	return r;
}

static void socket_doorbell(struct shim_transport *transport, uint32_t number)
{
	/* A full counter means that it was rung already. */
	vgpu_wake_eventfd(transport->doorbell_fds[number != VGPU_DOORBELL_CONTROL]);
}

static void socket_sleep(struct shim_transport *transport, const uint32_t *word,
	uint32_t seen, uint32_t timeout_us)
{
	struct timespec timeout = {
		.tv_sec = timeout_us / 1000000,
		.tv_nsec = (long)(timeout_us % 1000000) * 1000,
	};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

static uint64_t socket_silence_ns(struct shim_transport *transport)
{
	struct pollfd poller = { .fd = transport->socket_fd, .events = POLLRDHUP };

	return poll(&poller, 1, 0) > 0 &&
			       poller.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)
		       ? SHIM_GONE
		       : 0;
}

const struct shim_transport_ops shim_transport_socket = {
	.name = "socket",
	.open = socket_open,
	.doorbell = socket_doorbell,
	.can_be_woken = true,
	.sleep = socket_sleep,
	.silence_ns = socket_silence_ns,
	.close = socket_close,
};
