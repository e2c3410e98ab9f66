/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify: reports progress to the service manager
 *
 * There are no replies, and failures do not matter: a datagram that cannot be sent at
 * once is logged and dropped.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "vgpud/notify.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

/* Constant after notify_init(); the length is 0 without a receiver. */
static struct sockaddr_un listener;
static socklen_t listener_size;
static unsigned int interval_ms;

/* An hour is as good as any longer time. */
#define INTERVAL_MS_MAX 3600000u

/* Removes both variables. Return: ms, 0 without a watchdog for this process. */
static unsigned int take_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	const bool is_ours = !pid || strtol(pid, NULL, 10) == getpid();
	unsigned long long ms;

	ms = usec && is_ours ? strtoull(usec, NULL, 10) / 1000 / 2 : 0;
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return ms < INTERVAL_MS_MAX ? ms : INTERVAL_MS_MAX;
}

void notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t size = path ? strlen(path) : 0;

	listener_size = 0;
	interval_ms = take_watchdog();
	if (!size)
		return;
	if ((*path != '/' && *path != '@') || size >= sizeof(listener.sun_path)) {
		vgpu_log_warning("NOTIFY_SOCKET is \"%s\", which is not the address of a "
				 "socket: the service manager is not notified",
			path);
	} else {
		listener.sun_family = AF_UNIX;
		memcpy(listener.sun_path, path, size);
		/* An abstract address begins with NUL, and has no NUL at its end. */
		if (*path == '@')
			listener.sun_path[0] = '\0';
		listener_size = offsetof(struct sockaddr_un, sun_path) + size;
	}
	unsetenv("NOTIFY_SOCKET");
}

void notify_restore(void)
{
	char path[sizeof(listener.sun_path) + 1], number[24];
	const size_t size = listener_size - offsetof(struct sockaddr_un, sun_path);

	if (!listener_size)
		return;
	memcpy(path, listener.sun_path, size);
	path[size] = '\0';
	if (!*path)
		*path = '@';
	setenv("NOTIFY_SOCKET", path, 1);
	if (!interval_ms)
		return;
	snprintf(number, sizeof(number), "%llu", 2000ull * interval_ms);
	setenv("WATCHDOG_USEC", number, 1);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("WATCHDOG_PID", number, 1);
}

static void send_text(const char *text)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	if (!listener_size)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
			      (struct sockaddr *)&listener, listener_size) < 0)
		vgpu_log_warning("the service manager cannot be notified: %m");
}

/* Return: 0 or -errno. */
static int send_with(const char *text, int passed)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	struct iovec iov = { (void *)text, strlen(text) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} buffer = { 0 };
	struct msghdr header = {
		.msg_name = &listener,
		.msg_namelen = listener_size,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	struct cmsghdr *cmsg;

	if (!listener_size)
		return vgpu_error_origin(-ENOTCONN);
	if (passed >= 0) {
		header.msg_control = &buffer;
		header.msg_controllen = sizeof(buffer);
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &passed, sizeof(int));
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -EAGAIN : vgpu_error_origin(-errno);
	return 0;
}

/* FDPOLL=0: it would remove a socket whose other end is closed. */
int notify_store(uint32_t number, int fd)
{
	char text[96];

	snprintf(text, sizeof(text),
		"FDSTORE=1\nFDNAME=" NOTIFY_STORED "%" PRIx32 "\nFDPOLL=0\n", number);
	return send_with(text, fd);
}

int notify_unstore_name(const char *name)
{
	char text[320];

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%.255s\n", name);
	return send_with(text, -1);
}

int notify_unstore(uint32_t number)
{
	char name[24];

	snprintf(name, sizeof(name), NOTIFY_STORED "%" PRIx32, number);
	return notify_unstore_name(name);
}

void notify_ready(void)
{
	send_text("READY=1\n");
}

void notify_reloading(void)
{
	struct timespec now;
	char text[96];

	/* Services of Type=notify-reload must send the time. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n",
		(uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	send_text(text);
}

void notify_stopping(void)
{
	send_text("STOPPING=1\n");
}

unsigned int notify_interval_ms(void)
{
	return listener_size ? interval_ms : 0;
}

void notify_alive(void)
{
	send_text("WATCHDOG=1\n");
}
