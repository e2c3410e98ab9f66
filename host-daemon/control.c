/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages over a SOCK_SEQPACKET socket
 */

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "control.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

union control_buffer {
	char bytes[CMSG_SPACE(CONTROL_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int control_send(int fd, const struct control_message *message, const int *fds)
{
	struct iovec iov = { (void *)message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t size = message->n_fds * sizeof(int);
	union control_buffer buffer = { 0 };
	struct cmsghdr *cmsg;
	ssize_t n;

	assert(message->n_fds <= CONTROL_FDS_MAX);
	if (message->n_fds) {
		header.msg_control = &buffer;
		header.msg_controllen = CMSG_SPACE(size);
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(cmsg), fds, size);
	}
	do
		n = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return CONTROL_E_EOF;
	if (errno == EAGAIN)
		return CONTROL_E_AGAIN;
	return vgpu_error_origin(-errno);
}

/* Takes the descriptors out of the header. Returns: how many. */
static uint32_t take_fds(struct msghdr *header, int *fds)
{
	struct cmsghdr *cmsg;
	uint32_t n_fds = 0;

	for (cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n_fds = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cmsg), n_fds * sizeof(int));
	}
	return n_fds;
}

static bool is_valid(struct control_message *message, const struct msghdr *header,
	ssize_t size)
{
	if (size != sizeof(*message) || header->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return false;
	if (message->type == _CONTROL_NONE || message->type >= _CONTROL_N)
		return false;
	if (message->type == CONTROL_READY)
		message->ready.driver[sizeof(message->ready.driver) - 1] = '\0';
	if (message->type == CONTROL_ASSIGN) {
		message->assign.vm[sizeof(message->assign.vm) - 1] = '\0';
		message->assign.guest_comm[sizeof(message->assign.guest_comm) - 1] = '\0';
	}
	return true;
}

static int receive_header(int fd, struct msghdr *header, int flags, ssize_t *sizep)
{
	do
		*sizep = recvmsg(fd, header, flags);
	while (*sizep < 0 && errno == EINTR);
	if (*sizep == 0 || (*sizep < 0 && errno == ECONNRESET))
		return CONTROL_E_EOF;
	if (*sizep < 0 && errno == EAGAIN)
		return CONTROL_E_AGAIN;
	return *sizep < 0 ? vgpu_error_origin(-errno) : 0;
}

int control_receive(int fd, struct control_message *message, int *fds)
{
	struct iovec iov = { message, sizeof(*message) };
	union control_buffer buffer = { 0 };
	/* CMSG_LEN, not the whole buffer: its padding would hold a fourth descriptor. */
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &buffer,
		.msg_controllen = CMSG_LEN(CONTROL_FDS_MAX * sizeof(int)),
	};
	uint32_t n_fds;
	ssize_t size;
	int r;

	for (int i = 0; i < CONTROL_FDS_MAX; i++)
		fds[i] = -1;
	r = receive_header(fd, &header, MSG_CMSG_CLOEXEC, &size);
	if (r)
		return r;
	n_fds = take_fds(&header, fds);
	if (is_valid(message, &header, size) && message->n_fds == n_fds)
		return 0;
	for (int i = 0; i < CONTROL_FDS_MAX; i++)
		fds[i] = vgpu_close(fds[i]);
	return CONTROL_E_INVALID;
}

int control_peek(int fd, struct control_message *message)
{
	struct iovec iov = { message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t size;
	int r;

	r = receive_header(fd, &header, MSG_PEEK, &size);
	if (r)
		return r;
	header.msg_flags &= ~MSG_CTRUNC;
	return is_valid(message, &header, size) ? 0 : CONTROL_E_INVALID;
}
