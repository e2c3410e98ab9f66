/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages between vgpud and its workers
 */

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/control.h"
#include "test.h"

static void make_pair(int *pair)
{
	check_eq(socketpair(
			 AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		0);
}

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

TEST(a_message_arrives_with_its_descriptors)
{
	struct control_message sent = { .type = CONTROL_ASSIGN, .n_fds = 2 }, message;
	int pair[2], mine[2], fds[CONTROL_FDS_MAX];
	uint64_t count = 3;

	make_pair(pair);
	mine[0] = eventfd(0, EFD_NONBLOCK);
	mine[1] = eventfd(0, EFD_NONBLOCK);
	memset(sent.assign.vm, 'x', sizeof(sent.assign.vm));
	sent.assign.channel = 7;
	check_eq(control_send(pair[0], &sent, mine), 0);

	check_eq(control_peek(pair[1], &message, fds), 0);
	check_eq(message.type, CONTROL_ASSIGN);
	close_all(fds, CONTROL_FDS_MAX);
	check_eq(control_receive(pair[1], &message, fds), 0);
	check_eq(message.assign.channel, 7);
	check_eq(strlen(message.assign.vm), CONTROL_VM_NAME_MAX - 1);
	check(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1);
	check(fcntl(fds[1], F_GETFD) & FD_CLOEXEC);
	check_eq(write(fds[1], &count, 8), 8);
	count = 0;
	check_eq(read(mine[1], &count, 8), 8);
	check_eq(count, 3);
	close_all(fds, CONTROL_FDS_MAX);

	check_eq(control_receive(pair[1], &message, fds), CONTROL_E_AGAIN);
	close_all(mine, 2);
	close_all(pair, 1);
	check_eq(control_receive(pair[1], &message, fds), CONTROL_E_EOF);
	sent.n_fds = 0;
	check_eq(control_send(pair[1], &sent, NULL), CONTROL_E_EOF);
	close(pair[1]);
}

TEST(last_messages_of_a_peer_with_unread_messages_are_received)
{
	struct control_message words = { .type = CONTROL_ENDED, .ended = { 6, 0 } };
	struct control_message stop = { .type = CONTROL_STOP }, message;
	int pair[2], fds[CONTROL_FDS_MAX];

	make_pair(pair);
	check_eq(control_send(pair[0], &stop, NULL), 0);
	check_eq(control_send(pair[1], &words, NULL), 0);
	close(pair[1]);
	check_eq(control_peek(pair[0], &message, fds), 0);
	check_eq(control_receive(pair[0], &message, fds), 0);
	check_eq(message.type, CONTROL_ENDED);
	check_eq(message.ended.reason, 6);
	check_eq(control_receive(pair[0], &message, fds), CONTROL_E_EOF);
	close(pair[0]);
}

/* The broker relies on it, which may be killed between a look and the receipt. */
TEST(a_message_that_was_looked_at_still_has_its_descriptors)
{
	struct control_message sent = { .type = CONTROL_KEEP, .n_fds = 1 }, message;
	int pair[2], fds[CONTROL_FDS_MAX], mine;
	uint64_t count = 1;

	make_pair(pair);
	mine = eventfd(0, EFD_NONBLOCK);
	sent.image.size = 99;
	check_eq(control_send(pair[0], &sent, &mine), 0);
	for (int i = 0; i < 3; i++) {
		check_eq(i < 2 ? control_peek(pair[1], &message, fds)
			       : control_receive(pair[1], &message, fds),
			0);
		check_eq(message.type, CONTROL_KEEP);
		check_eq(message.image.size, 99);
		check(fds[0] >= 0 && fds[0] != mine && fds[1] == -1);
		check(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
		check_eq(write(fds[0], &count, 8), 8);
		close_all(fds, CONTROL_FDS_MAX);
	}
	check_eq(read(mine, &count, 8), 8);
	check_eq(count, 3);
	check_eq(control_peek(pair[1], &message, fds), CONTROL_E_AGAIN);
	close_all(&mine, 1);
	close_all(pair, 2);
}

/* Sends raw bytes with that many descriptors. */
static void send_raw(int fd, const void *data, size_t size, int n_fds, int passed)
{
	char buffer[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)data, size };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (n_fds) {
		header.msg_control = buffer;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (int i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &passed, sizeof(int));
	}
	check_eq(sendmsg(fd, &header, 0), (ssize_t)size);
}

TEST(invalid_messages_are_refused_and_their_descriptors_closed)
{
	struct control_message message, good = { .type = CONTROL_WANT };
	char long_one[sizeof(message) + 1] = { 0 };
	int pair[2], fds[CONTROL_FDS_MAX];

	make_pair(pair);
	send_raw(pair[0], &good, sizeof(good) - 1, 0, -1);
	check_eq(control_receive(pair[1], &message, fds), CONTROL_E_INVALID);
	memcpy(long_one, &good, sizeof(good));
	send_raw(pair[0], long_one, sizeof(long_one), 0, -1);
	check_eq(control_peek(pair[1], &message, fds), CONTROL_E_INVALID);
	check_eq(control_receive(pair[1], &message, fds), CONTROL_E_INVALID);
	for (int n_fds = 1; n_fds <= 16; n_fds++) {
		good.n_fds = n_fds > 8 ? (uint32_t)n_fds : 0;
		send_raw(pair[0], &good, sizeof(good), n_fds, pair[0]);
		check_eq(control_receive(pair[1], &message, fds), CONTROL_E_INVALID);
		check(fds[0] == -1 && fds[1] == -1 && fds[2] == -1);
	}
	good.n_fds = 1;
	send_raw(pair[0], &good, sizeof(good), 0, -1);
	check_eq(control_receive(pair[1], &message, fds), CONTROL_E_INVALID);
	good.n_fds = 0;
	for (uint64_t type = _CONTROL_N; type <= UINT32_MAX; type += 0x0fffffffu) {
		good.type = type;
		send_raw(pair[0], &good, sizeof(good), 0, -1);
		check_eq(control_receive(pair[1], &message, fds), CONTROL_E_INVALID);
	}
	close_all(pair, 2);
}
