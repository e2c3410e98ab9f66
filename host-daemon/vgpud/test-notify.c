/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify: what reaches the socket of the one who started vgpud
 */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/log.h"
#include "vgpud/notify.h"

/* Listens at a path, or at the abstract address that it begins with '@' to name. */
static int listen_at(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, name, strlen(name));
	if (*name == '@')
		address.sun_path[0] = '\0';
	check_eq(bind(fd, (struct sockaddr *)&address,
			 offsetof(struct sockaddr_un, sun_path) + strlen(name)),
		0);
	check_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
	notify_init();
	return fd;
}

static void expect(int fd, const char *text)
{
	char got[256] = "";

	check(recv(fd, got, sizeof(got) - 1, 0) > 0);
	check(!strncmp(got, text, strlen(text)));
}

static void expect_all(const char *name)
{
	int fd = listen_at(name);
	char none;

	check(recv(fd, &none, 1, 0) < 0);
	notify_ready();
	expect(fd, "READY=1\n");
	notify_reloading();
	expect(fd, "RELOADING=1\nMONOTONIC_USEC=");
	notify_stopping();
	expect(fd, "STOPPING=1\n");
	check(recv(fd, &none, 1, 0) < 0);
	check(!getenv("NOTIFY_SOCKET"));
	close(fd);
	/* The receiver has gone, which has no effect. */
	notify_ready();
}

TEST(a_socket_in_the_file_system_is_notified_of_each_step)
{
	char path[108];

	snprintf(path, sizeof(path), "%s/notify", test_tmpdir());
	expect_all(path);
}

TEST(an_abstract_socket_is_notified_of_each_step)
{
	char name[64];

	snprintf(name, sizeof(name), "@vgpu-test-notify-%d", (int)getpid());
	expect_all(name);
}

/* The descriptor that came with a notification must be that pipe. */
static void expect_descriptor(int fd, const char *text, int end)
{
	char got[256] = "", byte = 0;
	struct iovec iov = { got, sizeof(got) - 1 };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} buffer = { 0 };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &buffer,
		.msg_controllen = sizeof(buffer),
	};
	int received;

	check(recvmsg(fd, &header, MSG_CMSG_CLOEXEC) > 0);
	check(!strcmp(got, text));
	check(CMSG_FIRSTHDR(&header) != NULL);
	memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(received));
	check_eq(write(end, "x", 1), 1);
	check_eq(read(received, &byte, 1), 1);
	check_eq(byte, 'x');
	close(received);
}

TEST(descriptors_are_stored_and_removed_by_their_numbers)
{
	char path[108];
	int fd, pair[2], r;

	snprintf(path, sizeof(path), "%s/notify", test_tmpdir());
	fd = listen_at(path);
	check_eq(pipe(pair), 0);
	check_eq(notify_store(0x1a, pair[0]), 0);
	expect_descriptor(fd, "FDSTORE=1\nFDNAME=vgpud-1a\nFDPOLL=0\n", pair[1]);
	check_eq(notify_unstore(0xffffffff), 0);
	expect(fd, "FDSTOREREMOVE=1\nFDNAME=vgpud-ffffffff\n");
	check_eq(notify_unstore_name("other"), 0);
	expect(fd, "FDSTOREREMOVE=1\nFDNAME=other\n");
	/* A receiver whose queue is full is not waited for. */
	do
		r = notify_store(1, pair[0]);
	while (!r);
	check_eq(r, -EAGAIN);
	close(fd);
	check_eq(notify_store(1, pair[0]), -ECONNREFUSED);
	close(pair[0]);
	close(pair[1]);
	unsetenv("NOTIFY_SOCKET");
	notify_init();
	check_eq(notify_unstore(1), -ENOTCONN);
}

TEST(a_watchdog_hears_of_vgpud_twice_in_its_time)
{
	static const struct {
		const char *usec, *pid;
		unsigned int interval_ms;
	} cases[] = { { "3000000", NULL, 1500 }, { "1000", NULL, 0 }, { "x", NULL, 0 },
		{ NULL, NULL, 0 }, { "3000000", "1", 0 },
		{ "18446744073709551615", NULL, 3600000 } };
	char path[108];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/notify", test_tmpdir());
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (cases[i].usec)
			setenv("WATCHDOG_USEC", cases[i].usec, 1);
		if (cases[i].pid)
			setenv("WATCHDOG_PID", cases[i].pid, 1);
		fd = listen_at(path);
		check_eq(notify_interval_ms(), cases[i].interval_ms);
		check(!getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));
		notify_alive();
		expect(fd, "WATCHDOG=1\n");
		close(fd);
		unlink(path);
	}
	setenv("WATCHDOG_USEC", "3000000", 1);
	unsetenv("NOTIFY_SOCKET");
	notify_init();
	check_eq(notify_interval_ms(), 0);
}

TEST(without_a_socket_nothing_is_sent_and_nothing_is_said)
{
	int log = memfd_create("log", MFD_CLOEXEC);

	vgpu_log_init("test", VGPU_LOG_INFO);
	vgpu_log_use(log);
	unsetenv("NOTIFY_SOCKET");
	notify_init();
	notify_ready();
	notify_reloading();
	notify_stopping();
	check_eq(lseek(log, 0, SEEK_END), 0);
	/* An invalid address is logged once. */
	check_eq(setenv("NOTIFY_SOCKET", "relative", 1), 0);
	notify_init();
	check(lseek(log, 0, SEEK_END) > 0);
	check_eq(ftruncate(log, 0), 0);
	notify_ready();
	check_eq(lseek(log, 0, SEEK_END), 0);
	vgpu_log_use(STDERR_FILENO);
	close(log);
}
