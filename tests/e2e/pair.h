/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fixture of the end-to-end tests with two processes: a socket between them
 */

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

static int line = -1;

static inline void send_fd(int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	check_eq(sendmsg(line, &message, 0), 1);
	close(fd);
}

static inline int receive_fd(void)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	check_eq(recvmsg(line, &message, MSG_CMSG_CLOEXEC), 1);
	check(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static inline void tell(void)
{
	check_eq(write(line, "", 1), 1);
}

static inline void hear(void)
{
	char byte;

	check_eq(read(line, &byte, 1), 1);
}

/* Starts the other process, before this one uses the library. */
static inline pid_t start(void (*run)(void))
{
	int ends[2];
	pid_t pid;

	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	check(pid >= 0);
	line = ends[!pid];
	close(ends[pid > 0]);
	if (!pid) {
		run();
		_exit(0);
	}
	return pid;
}

static inline void finish(pid_t pid)
{
	int status;

	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
}

static inline void send_bytes(const void *bytes, size_t size)
{
	check_eq(write(line, bytes, size), (ssize_t)size);
}

static inline void receive_bytes(void *bytes, size_t size)
{
	check_eq(recv(line, bytes, size, MSG_WAITALL), (ssize_t)size);
}
