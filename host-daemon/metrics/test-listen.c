/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where metrics are served: paths, and the loopback alone
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/listen.h"
#include "test.h"

static struct listen_address address;

TEST(paths_and_loopback_addresses_are_places)
{
	static const char *const texts[] = { "/run/x", "127.0.0.1:9835", "127.9.9.9:1",
		"[::1]:65535" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check(!listen_parse(&address, texts[i]));
	check_eq(listen_parse(&address, "/run/x") != NULL, 0);
	check_str(address.path, "/run/x");
	check(!listen_parse(&address, "127.0.0.1:9835"));
	check(!address.path);
}

TEST(other_addresses_and_words_are_refused)
{
	static const char *const texts[] = { "", "x", ":", ":1", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1",
		"127.0.0.1:1x", "0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[fe80::1]:1",
		"::1:1", "localhost:1", "[127.0.0.2]:", "[::1:1", "[]:1" };
	char path[200];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check(listen_parse(&address, texts[i]));
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	check(listen_parse(&address, path));
	memset(path, '1', sizeof(path) - 1);
	path[150] = ':';
	check(listen_parse(&address, path));
}

TEST(a_socket_is_for_its_group_and_one_that_was_left_is_replaced)
{
	char path[256];
	struct stat st;
	int fd, second = -1;

	snprintf(path, sizeof(path), "%s/socket", test_tmpdir());
	check(!listen_parse(&address, path));
	check_eq(listen_open(&fd, &address), 0);
	check_eq(stat(path, &st), 0);
	check_eq(st.st_mode & 0777, 0660);
	/* Somebody serves it. */
	check_eq(listen_open(&second, &address), -EADDRINUSE);
	close(fd);
	check_eq(listen_open(&fd, &address), 0);
	close(fd);
}

TEST(a_file_that_is_no_socket_stays)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/file", test_tmpdir());
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	check(fd >= 0);
	close(fd);
	check(!listen_parse(&address, path));
	check_eq(listen_open(&fd, &address), -EEXIST);
	check_eq(access(path, F_OK), 0);
}
