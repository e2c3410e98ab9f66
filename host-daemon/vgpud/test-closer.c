/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing descriptors on a thread
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/closer.h"

/* The pipe of the thread stays open. */
const bool test_keeps_descriptors = true;

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

/* Waits until the other end of a pipe is closed. */
static void wait_for_end(int fd)
{
	struct pollfd end = { .fd = fd };

	check_eq(poll(&end, 1, -1), 1);
	check(end.revents & POLLHUP);
}

TEST(without_the_thread_descriptors_are_closed_at_once)
{
	int pair[2];

	check_eq(pipe(pair), 0);
	check_eq(closer_close(pair[1]), -1);
	check(!is_open(pair[1]));
	check_eq(closer_close(-1), -1);
	close(pair[0]);
}

TEST(the_thread_closes_all_that_it_is_given)
{
	int pairs[100][2];

	check_eq(closer_start(), 0);
	for (int i = 0; i < 100; i++)
		check_eq(pipe(pairs[i]), 0);
	for (int i = 0; i < 100; i++)
		check_eq(closer_close(pairs[i][1]), -1);
	for (int i = 0; i < 100; i++) {
		wait_for_end(pairs[i][0]);
		close(pairs[i][0]);
	}
	check_eq(closer_close(-1), -1);
}
