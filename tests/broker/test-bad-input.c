/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes of an administrator or a machine: each is reported
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest;

static void expect_no_socket(const char *path, const char *reason)
{
	char sections[256], text[256];

	snprintf(sections, sizeof(sections), "[vm other]\nsocket = %s\n", path);
	pair_spawn(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .sections = sections,
			  });
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 1);
	snprintf(text, sizeof(text), "vm=other: cannot listen on %s: %s", path, reason);
	check_eq(pair_count_log(&pair, text), 1);
	check_eq(pair_count_log(&pair, "vgpud ready"), 0);
	/* The socket of the other section is removed. */
	check(access(pair.socket, F_OK) < 0);
}

TEST(a_socket_in_a_folder_that_does_not_exist_is_named)
{
	expect_no_socket("/nonexistent/socket", "No such file or directory");
}

TEST(a_socket_in_a_folder_that_is_closed_to_vgpud_is_named)
{
	char path[160];

	if (geteuid() == 0)
		check_eq(setresuid(65534, 65534, 65534), 0);
	snprintf(path, sizeof(path), "%s/closed", test_tmpdir());
	check_eq(mkdir(path, 0500), 0);
	strcat(path, "/socket");
	if (access(VGPUD, X_OK) < 0)
		test_skip("user %d may not run %s", (int)getuid(), VGPUD);
	expect_no_socket(path, "Permission denied");
}

static void expect_no_log(const char *path, const char *reason)
{
	char lines[256];

	snprintf(lines, sizeof(lines), "log-file = %s\n", path);
	pair_spawn(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = lines,
			  });
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 1);
	check_eq(pair_count_log(&pair, reason), 1);
}

TEST(a_log_that_others_can_have_put_there_is_not_written_to)
{
	char path[160], other[160];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/log", test_tmpdir());
	snprintf(other, sizeof(other), "%s/other", test_tmpdir());
	fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	check_eq(symlink(other, path), 0);
	expect_no_log(path, "it is a symbolic link");
	check_eq(unlink(path), 0);
	check_eq(link(other, path), 0);
	expect_no_log(path, "it has another name besides");
	check_eq(unlink(path), 0);
	check_eq(chmod(other, 0602), 0);
	expect_no_log(other, "other users may write to it");
	check_eq(stat(other, &st), 0);
	check_eq(st.st_size, 0);
}

TEST(a_process_without_permission_is_not_let_in)
{
	struct stat st;

	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = "socket-mode = 0600\n",
			  });
	check_eq(stat(pair.socket, &st), 0);
	check_eq(st.st_mode & 0777, 0600);
	if (geteuid() == 0) {
		check_eq(chmod(pair.dir, 0755), 0);
		check_eq(setresuid(65534, 65534, 0), 0);
		check(guest_try_connect(pair.socket) < 0);
		check_eq(setresuid(0, 0, 0), 0);
	}
	check_eq(chmod(pair.socket, 0666), 0);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_log_that_cannot_be_written_stops_no_service)
{
	int status, fd = -1;

	pair_spawn(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "log-file = /dev/full\n",
			  });
	guest_wait_for((fd = guest_try_connect(pair.socket)) >= 0);
	close(fd);
	guest_connect(&guest, pair.socket);
	for (int i = 0; i < 5; i++) {
		guest_open(&guest, 0, i ? "app" : "chatty");
		guest_close(&guest, 0);
	}
	guest_disconnect(&guest);
	check_eq(kill(pair.pid, SIGTERM), 0);
	status = pair_wait_exit(&pair);
	check(WIFEXITED(status) && !WEXITSTATUS(status));
	check(access(pair.socket, F_OK) < 0);
}

TEST(a_log_file_that_cannot_be_opened_is_named)
{
	pair_spawn(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "log-file = /nonexistent/log\n",
			  });
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 1);
	check_eq(pair_count_log(&pair, "/nonexistent/log: No such file or directory"), 1);
	check(access(pair.socket, F_OK) < 0);
}
