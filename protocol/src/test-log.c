/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log where it cannot be written
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/log.h"

/* The log keeps the file it was sent to. */
const bool test_keeps_descriptors = true;

static char path[160];
static char text[8192];

static const char *read_file(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	check(n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static void send_to_file(void)
{
	snprintf(path, sizeof(path), "%s/log", test_tmpdir());
	check_eq(vgpu_log_open(path), 0);
}

TEST(lines_that_a_full_disk_refuses_are_counted_and_reported)
{
	unsetenv("VGPU_LOG");
	vgpu_log_init("test", VGPU_LOG_INFO);
	check_eq(vgpu_log_open("/dev/full"), 0);
	errno = EDOM;
	for (int i = 0; i < 7; i++)
		vgpu_log_info("lost %d", i);
	check_eq(errno, EDOM);
	/* Messages above the level do not count as lost. */
	vgpu_log_debug("not asked for");
	send_to_file();
	vgpu_log_info("found");
	vgpu_log_info("and again");
	read_file();
	check(strstr(text, "test[") && strstr(text, "warning: 7 lines could not be"));
	check(strstr(text, "could not be") < strstr(text, "info: found\n"));
	check(!strstr(text, "lost"));
	check(!strstr(strstr(text, "info: found"), "could not be"));
}

TEST(a_pipe_that_is_full_loses_whole_lines_and_never_waits)
{
	int fds[2];
	char bytes[4096];
	ssize_t n, room = 0;

	check_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	check_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	unsetenv("VGPU_LOG");
	vgpu_log_init("test", VGPU_LOG_INFO);
	memset(bytes, 'x', sizeof(bytes));
	while ((n = write(fds[1], bytes, sizeof(bytes))) > 0)
		room += n;
	vgpu_log_info("lost");
	while ((n = read(fds[0], bytes, sizeof(bytes))) > 0)
		room -= n;
	check_eq(room, 0);
	vgpu_log_info("found");
	n = read(fds[0], bytes, sizeof(bytes) - 1);
	check(n > 0);
	bytes[n] = '\0';
	check(strstr(bytes, "1 lines could not be written here\n"));
	check(strstr(bytes, "info: found\n"));
}

/* Fills a descriptor's buffer, so that further writes block. */
static void fill(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLOUT };
	char bytes[4096];

	memset(bytes, 'x', sizeof(bytes));
	while (poll(&poller, 1, 0) > 0 && poller.revents & POLLOUT)
		check(write(fd, bytes, 256) > 0);
}

/* Lines written by a process that may block to a pipe without a reader. */
static void expect_loss(int from, int to)
{
	char bytes[4096];
	ssize_t n, size = 0;
	int flags;

	check_eq(dup2(to, STDERR_FILENO), STDERR_FILENO);
	unsetenv("VGPU_LOG");
	vgpu_log_init("test", VGPU_LOG_INFO);
	vgpu_log_never_wait();
	fill(to);
	/* Had it to wait, the test's time would end it. */
	for (int i = 0; i < 5000; i++)
		vgpu_log_info("lost %d", i);
	flags = fcntl(to, F_GETFL);
	check(flags >= 0 && !(flags & O_NONBLOCK));
	check_eq(fcntl(from, F_SETFL, O_NONBLOCK), 0);
	while (read(from, bytes, sizeof(bytes)) > 0)
		;
	vgpu_log_info("found");
	while (size < (ssize_t)sizeof(bytes) - 1 &&
		(n = read(from, bytes + size, sizeof(bytes) - 1 - (size_t)size)) > 0)
		size += n;
	bytes[size] = '\0';
	check(strstr(bytes, " lines could not be written here\n"));
	check(strstr(bytes, "info: found\n"));
	check(!strstr(strstr(bytes, "info: found"), "lost"));
}

TEST(a_pipe_without_reader_does_not_block_a_nonblocking_logger)
{
	int fds[2];

	check_eq(pipe2(fds, O_CLOEXEC), 0);
	expect_loss(fds[0], fds[1]);
}

TEST(a_socket_that_nobody_reads_does_not_either)
{
	int fds[2];

	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	expect_loss(fds[0], fds[1]);
}

TEST(a_terminal_that_was_stopped_does_not_either)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	struct termios mode;

	check(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	check(slave >= 0);
	check_eq(tcgetattr(slave, &mode), 0);
	cfmakeraw(&mode);
	check_eq(tcsetattr(slave, TCSANOW, &mode), 0);
	expect_loss(master, slave);
}
