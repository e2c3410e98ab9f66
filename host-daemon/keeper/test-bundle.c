/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundle: a socket that has one message with many descriptors in its queue
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/bundle.h"
#include "test.h"

static int files[BUNDLE_FDS_MAX];

static void make_files(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		files[i] = memfd_create("file", MFD_CLOEXEC);
		check(files[i] >= 0);
		check_eq(pwrite(files[i], &i, sizeof(i), 0), sizeof(i));
	}
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_eq(close(fds[i]), 0);
}

static int make(size_t n)
{
	const struct bundle_label label = { .number = 5, .identity = 6, .key = 7 };
	int bundle;

	make_files(n);
	bundle = bundle_make(&label, files, n);
	check(bundle >= 0);
	close_all(files, n);
	return bundle;
}

static void check_files(int bundle, size_t n)
{
	int fds[BUNDLE_FDS_MAX];
	size_t n_fds, number;

	check_eq(bundle_open(bundle, fds, &n_fds), 0);
	check_eq(n_fds, n);
	for (size_t i = 0; i < n; i++) {
		check_eq(pread(fds[i], &number, sizeof(number), 0), sizeof(number));
		check_eq(number, i);
	}
	close_all(fds, n);
}

TEST(what_is_in_it_can_be_had_more_than_once)
{
	struct bundle_label label;
	const int bundle = make(BUNDLE_FDS_MAX);

	for (int i = 0; i < 3; i++) {
		check_eq(bundle_read_label(bundle, &label), 0);
		check(label.number == 5 && label.identity == 6 && label.key == 7);
		check_files(bundle, BUNDLE_FDS_MAX);
	}
	close(bundle);
}

TEST(it_alone_keeps_the_other_end_of_a_connection)
{
	const struct bundle_label label = { .number = 1 };
	int pair[2], bundle, fds[BUNDLE_FDS_MAX];
	size_t n_fds;
	char byte;

	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	bundle = bundle_make(&label, &pair[0], 1);
	close(pair[0]);
	check_eq(bundle_open(bundle, fds, &n_fds), 0);
	check_eq(write(fds[0], "x", 1), 1);
	close(fds[0]);
	check_eq(read(pair[1], &byte, 1), 1);
	check(recv(pair[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close(bundle);
	check_eq(read(pair[1], &byte, 1), 0);
	close(pair[1]);
}

TEST(none_and_too_many_are_refused)
{
	const struct bundle_label label = { .number = 1 };

	check_eq(bundle_make(&label, files, 0), -EINVAL);
	check_eq(bundle_make(&label, files, BUNDLE_FDS_MAX + 1), -EINVAL);
	check_eq(bundle_make(&label, (int[]){ -1 }, 1), -EBADF);
}

static void refuse(int fd)
{
	struct bundle_label label;
	int fds[BUNDLE_FDS_MAX];
	size_t n_fds;

	check(bundle_read_label(fd, &label) < 0);
	check(bundle_open(fd, fds, &n_fds) < 0);
	check_eq(n_fds, 0);
}

TEST(other_descriptors_are_recognised)
{
	char bytes[sizeof(struct bundle_label) + 1] = "";
	int pair[2];

	refuse(-1);
	check_eq(pipe(pair), 0);
	refuse(pair[0]);
	close_all(pair, 2);
	for (size_t size = 1; size <= sizeof(bytes); size++) {
		check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		refuse(pair[0]);
		check_eq(send(pair[1], bytes, size, 0), size);
		refuse(pair[0]);
		close_all(pair, 2);
	}
}

TEST(without_room_for_all_none_is_open)
{
	struct rlimit limit, low;
	int fds[BUNDLE_FDS_MAX], bundle, next;
	size_t n_fds;

	bundle = make(20);
	check_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	next = dup(bundle);
	close(next);
	low = limit;
	low.rlim_cur = next + 10;
	check_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	check_eq(bundle_open(bundle, fds, &n_fds), -EMFILE);
	check_eq(n_fds, 0);
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_files(bundle, 20);
	close(bundle);
}
