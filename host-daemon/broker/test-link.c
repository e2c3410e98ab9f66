/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeper and broker say to each other
 */

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/link.h"
#include "test.h"

#define N_FDS 20

static int pair[2];

static void send_many(void)
{
	const struct link_message message = { .type = LINK_VM, .id = 7 };
	int fds[N_FDS];

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; i < N_FDS; i++)
		fds[i] = pair[0];
	check_eq(link_send(pair[0], &message, fds, N_FDS), 0);
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(all_descriptors_of_a_message_come_with_it)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	send_many();
	check_eq(link_receive(pair[1], &message, fds, &n_fds), 0);
	check_eq(message.id, 7);
	check_eq(n_fds, N_FDS);
	while (n_fds)
		close(fds[--n_fds]);
	close(pair[0]);
	check_eq(link_receive(pair[1], &message, fds, &n_fds), LINK_E_EOF);
	close(pair[1]);
}

TEST(who_cannot_have_all_descriptors_keeps_none_and_is_told_why)
{
	struct link_message message;
	struct rlimit limit;
	int fds[LINK_FDS_MAX];
	unsigned int n;
	size_t n_fds;

	send_many();
	n = count_fds();
	check_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)pair[1] + 8;
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_eq(link_receive(pair[1], &message, fds, &n_fds), -EMFILE);
	check_eq(n_fds, 0);
	limit.rlim_cur = limit.rlim_max;
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_eq(count_fds(), n);
	close(pair[0]);
	close(pair[1]);
}
