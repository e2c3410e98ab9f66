/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes and descriptors over a UNIX socket
 */

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "control/packet.h"
#include "vgpu/error.h"

union packet_buffer {
	char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int packet_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds)
{
	struct iovec iov = { (void *)data, size };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	union packet_buffer buffer = { 0 };
	struct cmsghdr *cmsg;
	ssize_t n;

	assert(n_fds <= PACKET_FDS_MAX);
	if (n_fds) {
		header.msg_control = &buffer;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)size)
		return 0;
	if (n >= 0)
		return vgpu_error_origin(-EMSGSIZE);
	if (errno == EPIPE || errno == ECONNRESET)
		return PACKET_E_EOF;
	if (errno == EAGAIN)
		return PACKET_E_AGAIN;
	return vgpu_error_origin(-errno);
}

static int receive_header(int fd, struct msghdr *header, int flags, size_t *sizep)
{
	unsigned int n_resets = 0;
	ssize_t n;

	/* If a peer closes with unread messages, the kernel reports ECONNRESET once,
	 * before the messages that the peer sent. */
	do
		n = recvmsg(fd, header, flags);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !n_resets++)));
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return PACKET_E_EOF;
	if (n < 0 && errno == EAGAIN)
		return PACKET_E_AGAIN;
	if (n < 0)
		return vgpu_error_origin(-errno);
	*sizep = n;
	return 0;
}

static int receive(int fd, void *data, size_t size, size_t *sizep, int *fds,
	size_t n_fds_max, size_t *n_fdsp, bool *cutp, int flags)
{
	struct iovec iov = { data, size };
	union packet_buffer buffer = { 0 };
	/* CMSG_LEN, not CMSG_SPACE: the kernel could put one more descriptor into the
	 * padding. */
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &buffer,
		.msg_controllen = CMSG_LEN(n_fds_max * sizeof(int)),
	};
	struct cmsghdr *cmsg;
	int r;

	assert(n_fds_max <= PACKET_FDS_MAX);
	*n_fdsp = 0;
	r = receive_header(fd, &header, MSG_CMSG_CLOEXEC | flags, sizep);
	if (r)
		return r;
	for (cmsg = CMSG_FIRSTHDR(&header); cmsg; cmsg = CMSG_NXTHDR(&header, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		*n_fdsp = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cmsg), *n_fdsp * sizeof(int));
	}
	*cutp = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	return 0;
}

int packet_receive(int fd, void *data, size_t size, size_t *sizep, int *fds,
	size_t n_fds_max, size_t *n_fdsp, bool *cutp)
{
	return receive(fd, data, size, sizep, fds, n_fds_max, n_fdsp, cutp, 0);
}

int packet_peek(int fd, void *data, size_t size, size_t *sizep, int *fds,
	size_t n_fds_max, size_t *n_fdsp, bool *cutp)
{
	return receive(fd, data, size, sizep, fds, n_fds_max, n_fdsp, cutp, MSG_PEEK);
}
