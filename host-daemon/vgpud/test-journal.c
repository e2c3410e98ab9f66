/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log messages as entries of the journal
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/log.h"
#include "vgpud/journal.h"

static int journal;
static char entry[8192];

/* A journal of the test. The process ends with it, so the descriptor of vgpud's end stays
 * open. */
const bool test_keeps_descriptors = true;

static void start(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/j", test_tmpdir());
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	check(journal >= 0);
	check_eq(bind(journal, (struct sockaddr *)&address, sizeof(address)), 0);
	vgpu_log_init("test", VGPU_LOG_DEBUG);
	check_eq(journal_open(address.sun_path), 0);
}

/* Return: the next entry. */
static const char *read_entry(void)
{
	const ssize_t n = recv(journal, entry, sizeof(entry) - 1, 0);

	check(n > 0);
	entry[n] = '\0';
	return entry;
}

TEST(keys_of_a_message_are_fields)
{
	start();
	vgpu_log_warning("vm=one channel=3 pid=77: it works");
	check_str(read_entry(), "PRIORITY=4\nSYSLOG_IDENTIFIER=test\n"
				"MESSAGE=vm=one channel=3 pid=77: it works\n"
				"VGPU_VM=one\nVGPU_CHANNEL=3\nVGPU_PID=77\n");
	vgpu_log_error("session ended vm=a-b.c channel=0 reason=closed");
	check_str(read_entry(), "PRIORITY=3\nSYSLOG_IDENTIFIER=test\n"
				"MESSAGE=session ended vm=a-b.c channel=0 reason=closed\n"
				"VGPU_VM=a-b.c\nVGPU_CHANNEL=0\n");
	vgpu_log_info("vgpud ready");
	check_str(read_entry(),
		"PRIORITY=6\nSYSLOG_IDENTIFIER=test\nMESSAGE=vgpud ready\n");
}

TEST(what_a_guest_has_named_is_no_field)
{
	start();
	/* The name of a process has any printable characters. */
	vgpu_log_info("session opened vm=one channel=1 pid=7 comm=x vm=two pid=8");
	check(strstr(read_entry(), "\nVGPU_VM=one\nVGPU_CHANNEL=1\nVGPU_PID=7\n"));
	check(!strstr(entry, "VGPU_VM=two") && !strstr(entry, "VGPU_PID=8"));
	vgpu_log_info("worker=5: vm=two: forged");
	check(!strstr(read_entry(), "VGPU_VM="));
	vgpu_log_info("vm=o\x01ne channel=x pid=-1: wrong values");
	check(!strstr(read_entry(), "VGPU_"));
	vgpu_log_info("vm=one: two\nPRIORITY=0");
	check(strstr(read_entry(), "\nMESSAGE=vm=one: two PRIORITY=0\n"));
}

TEST(long_messages_are_cut_and_keep_their_fields)
{
	char text[4000];

	start();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	vgpu_log_info("vm=one: %s", text);
	check(strstr(read_entry(), "xxx\nVGPU_VM=one\n"));
}

TEST(a_journal_that_does_not_read_loses_messages_and_learns_how_many)
{
	unsigned int n_sent = 0, n_read = 0, n_lost = 0;

	start();
	/* More than a socket queues. */
	for (; n_sent < 5000; n_sent++)
		vgpu_log_info("vm=one: %u", n_sent);
	while (recv(journal, entry, sizeof(entry), 0) > 0)
		n_read++;
	check_eq(errno, EAGAIN);
	check(n_read && n_read < n_sent);
	vgpu_log_info("again");
	read_entry();
	check_eq(sscanf(strstr(entry, "MESSAGE="), "MESSAGE=%u lines could not", &n_lost),
		1);
	check_eq(n_read + n_lost, n_sent);
	check(strstr(read_entry(), "MESSAGE=again\n"));
}

/* The stream of another file is that of a parent, or of nobody. */
TEST(without_the_journal_as_standard_error_it_is_written_there)
{
	char path[256], value[64];
	struct stat st;
	int fd;

	start();
	snprintf(path, sizeof(path), "%s/log", test_tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	check_eq(fstat(fd, &st), 0);
	snprintf(value, sizeof(value), "%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev,
		(uint64_t)st.st_ino + 1);
	check_eq(setenv("JOURNAL_STREAM", value, 1), 0);
	journal_use();
	vgpu_log_info("vm=one: to the file");
	check(recv(journal, entry, sizeof(entry), 0) < 0);
	check(pread(fd, entry, sizeof(entry) - 1, 0) > 0);
	check(strstr(entry, " test[") && strstr(entry, "] info: vm=one: to the file\n"));
	snprintf(value, sizeof(value), "%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev,
		(uint64_t)st.st_ino);
	check_eq(setenv("JOURNAL_STREAM", value, 1), 0);
	journal_use();
	vgpu_log_info("vm=one: to the journal");
	check(strstr(read_entry(), "MESSAGE=vm=one: to the journal\n"));
	close(fd);
}
