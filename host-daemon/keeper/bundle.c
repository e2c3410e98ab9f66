/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundle: a socket that has one message with many descriptors in its queue
 *
 * The other end is closed at once: what is in the queue stays there, and nobody can add
 * to it.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "keeper/bundle.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#define MAGIC 0x76677075u

union descriptors {
	char bytes[CMSG_SPACE(BUNDLE_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int bundle_make(const struct bundle_label *label, const int *fds, size_t n_fds)
{
	struct bundle_label out = *label;
	struct iovec iov = { &out, sizeof(out) };
	union descriptors buffer = { 0 };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &buffer,
		.msg_controllen = CMSG_SPACE(n_fds * sizeof(int)),
	};
	struct cmsghdr *cmsg;
	int pair[2], r = 0;

	if (!n_fds || n_fds > BUNDLE_FDS_MAX)
		return vgpu_error_origin(-EINVAL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) <
		0)
		return vgpu_error_origin(-errno);
	out.magic = MAGIC;
	cmsg = CMSG_FIRSTHDR(&header);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	if (sendmsg(pair[1], &header, MSG_NOSIGNAL) != (ssize_t)sizeof(out))
		r = vgpu_error_origin(-errno);
	close(pair[1]);
	if (!r)
		return pair[0];
	close(pair[0]);
	return r;
}

static bool is_label(const struct bundle_label *label, ssize_t n)
{
	return n == (ssize_t)sizeof(*label) && label->magic == MAGIC;
}

int bundle_read_label(int bundle, struct bundle_label *label)
{
	const ssize_t n =
		recv(bundle, label, sizeof(*label), MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return vgpu_error_origin(-errno);
	return is_label(label, n) ? 0 : vgpu_error_origin(-EBADMSG);
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

int bundle_open(int bundle, int *fds, size_t *n_fdsp)
{
	struct bundle_label label;
	struct iovec iov = { &label, sizeof(label) };
	union descriptors buffer = { 0 };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &buffer,
		.msg_controllen = sizeof(buffer),
	};
	const struct cmsghdr *cmsg;
	ssize_t n;

	*n_fdsp = 0;
	n = recvmsg(bundle, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return vgpu_error_origin(-errno);
	cmsg = CMSG_FIRSTHDR(&header);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
		*n_fdsp = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (*n_fdsp > BUNDLE_FDS_MAX)
			*n_fdsp = BUNDLE_FDS_MAX;
		memcpy(fds, CMSG_DATA(cmsg), *n_fdsp * sizeof(int));
	}
	/* Without enough free descriptors the kernel gives some of them. */
	if (is_label(&label, n) && *n_fdsp && !(header.msg_flags & MSG_CTRUNC))
		return 0;
	close_all(fds, *n_fdsp);
	*n_fdsp = 0;
	return vgpu_error_origin(header.msg_flags & MSG_CTRUNC ? -EMFILE : -EBADMSG);
}
