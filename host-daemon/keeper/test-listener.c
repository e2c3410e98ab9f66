/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listener: a UNIX socket at a path with exclusive ownership
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper/listener.h"
#include "test.h"

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	return path;
}

static int try_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	strcpy(address.sun_path, path);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return r;
}

TEST(a_listener_removes_its_files)
{
	struct listener listener;
	struct stat st;

	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0640, -1), 0);
	check_eq(try_connect(path_of("s")), 0);
	check_eq(stat(path_of("s"), &st), 0);
	check_eq(st.st_mode & 0777, 0640);
	listener_deinit(&listener);
	check(access(path_of("s"), F_OK) < 0);
	check(access(path_of("s.lock"), F_OK) < 0);
}

TEST(a_path_has_one_listener_at_a_time)
{
	struct listener listener, second;

	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(listener_init(&second, path_of("s"), SOCK_STREAM, 0600, -1),
		LISTENER_E_TAKEN);
	check_eq(try_connect(path_of("s")), 0);
	listener_deinit(&second);
	check_eq(try_connect(path_of("s")), 0);
	listener_deinit(&listener);
	check_eq(listener_init(&second, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	listener_deinit(&second);
}

/* Return: a socket that another process would have made and listens on. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	check_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq(listen(fd, 1), 0);
	return fd;
}

TEST(a_borrowed_socket_stays_when_its_listener_ends)
{
	struct listener listener, second;
	const int fd = listen_at(path_of("s"));

	check_eq(listener_borrow(&listener, path_of("s"), dup(fd)), 0);
	check(listener_is_whole(&listener));
	/* A vgpud by hand would replace the file. */
	check_eq(listener_init(&second, path_of("s"), SOCK_STREAM, 0600, -1),
		LISTENER_E_TAKEN);
	check_eq(listener_borrow(&second, path_of("s"), fd), LISTENER_E_TAKEN);
	listener_deinit(&listener);
	check_eq(try_connect(path_of("s")), 0);
	check(access(path_of("s.lock"), F_OK) < 0);
	close(fd);
}

TEST(only_the_lock_of_a_borrowed_socket_is_made_again)
{
	struct listener listener;
	const int fd = listen_at(path_of("s"));

	check_eq(listener_borrow(&listener, path_of("s"), dup(fd)), 0);
	check_eq(unlink(path_of("s")), 0);
	check(listener_is_whole(&listener));
	check_eq(unlink(path_of("s.lock")), 0);
	check(!listener_is_whole(&listener));
	check_eq(listener_renew(&listener, SOCK_STREAM, 0600, -1), 0);
	check(listener_is_whole(&listener));
	check(access(path_of("s"), F_OK) < 0);
	listener_deinit(&listener);
	close(fd);
}

TEST(a_listener_leaves_its_path_to_another_socket)
{
	struct listener listener;
	int fd;

	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(unlink(path_of("s")), 0);
	fd = listen_at(path_of("s"));
	listener_leave(&listener);
	check_eq(try_connect(path_of("s")), 0);
	check(access(path_of("s.lock"), F_OK) < 0);
	close(fd);
}

TEST(a_socket_left_by_a_dead_process_is_replaced)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct listener listener;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, path_of("s"));
	check_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	check(try_connect(path_of("s")) < 0);
	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(try_connect(path_of("s")), 0);
	listener_deinit(&listener);
}

TEST(a_link_in_place_of_the_socket_opens_nothing_to_others)
{
	struct listener listener;
	struct stat st;
	int fd;

	fd = open(path_of("private"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(unlink(path_of("s")), 0);
	check_eq(symlink("private", path_of("s")), 0);
	check_eq(listener_permit(&listener, 0666, -1), -EPERM);
	check_eq(stat(path_of("private"), &st), 0);
	check_eq(st.st_mode & 0777, 0600);
	listener_deinit(&listener);
	unlink(path_of("private"));
}

TEST(a_file_that_is_no_socket_is_not_removed)
{
	struct listener listener;
	int fd = open(path_of("s"), O_CREAT | O_WRONLY, 0600);

	check_eq(write(fd, "x", 1), 1);
	close(fd);
	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1),
		LISTENER_E_ALIEN);
	check_eq(access(path_of("s"), F_OK), 0);
	check(access(path_of("s.lock"), F_OK) < 0);
}

TEST(a_folder_that_is_missing_is_made_and_others_can_pass_through)
{
	struct listener listener;
	struct stat st;

	umask(077);
	check_eq(listener_init(&listener, path_of("run/s"), SOCK_STREAM, 0660, -1), 0);
	check_eq(try_connect(path_of("run/s")), 0);
	check_eq(stat(path_of("run"), &st), 0);
	check_eq(st.st_mode & 07777, 0755);
	check_eq(st.st_uid, geteuid());
	listener_deinit(&listener);
	/* One that is there is left as it is. */
	check_eq(chmod(path_of("run"), 0700), 0);
	check_eq(listener_init(&listener, path_of("run/s"), SOCK_STREAM, 0660, -1), 0);
	check_eq(stat(path_of("run"), &st), 0);
	check_eq(st.st_mode & 07777, 0700);
	listener_deinit(&listener);
}

TEST(more_than_one_folder_that_is_missing_is_a_mistake)
{
	struct listener listener;

	check_eq(listener_init(&listener, path_of("none/run/s"), SOCK_STREAM, 0600, -1),
		-ENOENT);
	check(access(path_of("none"), F_OK) < 0);
}

static void try_renewal(struct listener *listener)
{
	struct stat st;

	check(!listener_is_whole(listener));
	check(try_connect(path_of("s")) < 0);
	check_eq(listener_renew(listener, SOCK_STREAM, 0640, -1), 0);
	check(listener_is_whole(listener));
	check_eq(try_connect(path_of("s")), 0);
	check_eq(stat(path_of("s"), &st), 0);
	check_eq(st.st_mode & 0777, 0640);
}

TEST(a_listener_whose_files_were_removed_is_renewed)
{
	struct listener listener, second;

	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check(listener_is_whole(&listener));
	check_eq(unlink(path_of("s")), 0);
	try_renewal(&listener);
	check_eq(unlink(path_of("s")), 0);
	check_eq(unlink(path_of("s.lock")), 0);
	try_renewal(&listener);
	check_eq(listener_init(&second, path_of("s"), SOCK_STREAM, 0600, -1),
		LISTENER_E_TAKEN);
	listener_deinit(&listener);
	check(access(path_of("s"), F_OK) < 0);
	check(access(path_of("s.lock"), F_OK) < 0);
}

/* The folder as well. */
TEST(a_listener_whose_folder_was_removed_is_renewed)
{
	struct listener listener;

	check_eq(listener_init(&listener, path_of("run/s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(unlink(path_of("run/s")), 0);
	check_eq(unlink(path_of("run/s.lock")), 0);
	check_eq(rmdir(path_of("run")), 0);
	check_eq(listener_renew(&listener, SOCK_STREAM, 0600, -1), 0);
	check_eq(try_connect(path_of("run/s")), 0);
	listener_deinit(&listener);
}

TEST(a_path_that_another_owns_by_now_is_not_taken_back)
{
	struct listener listener, other;

	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(unlink(path_of("s")), 0);
	check_eq(unlink(path_of("s.lock")), 0);
	check_eq(listener_init(&other, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check(!listener_is_whole(&listener));
	check_eq(listener_renew(&listener, SOCK_STREAM, 0600, -1), LISTENER_E_TAKEN);
	check(listener_is_whole(&other));
	check_eq(try_connect(path_of("s")), 0);
	listener_deinit(&other);
	/* And then it can be. */
	try_renewal(&listener);
	listener_deinit(&listener);
}

TEST(a_file_in_place_of_the_socket_is_not_removed)
{
	struct listener listener;
	int fd;

	check_eq(listener_init(&listener, path_of("s"), SOCK_STREAM, 0600, -1), 0);
	check_eq(unlink(path_of("s")), 0);
	fd = open(path_of("s"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	check(fd >= 0);
	close(fd);
	check(!listener_is_whole(&listener));
	check_eq(listener_renew(&listener, SOCK_STREAM, 0600, -1), LISTENER_E_ALIEN);
	/* The lock is still there. */
	check_eq(unlink(path_of("s")), 0);
	try_renewal(&listener);
	listener_deinit(&listener);
}
