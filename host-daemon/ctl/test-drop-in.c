/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of virtual machines that are replaced whole or not at all
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/drop-in.h"
#include "test.h"
#include "vgpud/config.h"

static char path[256];

static void make(const char *text)
{
	struct drop_in drop_in;

	snprintf(path, sizeof(path), "%s/vm.d/a.conf", test_tmpdir());
	check_eq(drop_in_prepare(&drop_in, path, text), 0);
	check_eq(drop_in_commit(&drop_in), 0);
	drop_in_close(&drop_in);
}

static void check_text(const char *expected)
{
	char *text;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	check(fd >= 0);
	check_eq(config_read(fd, &text), 0);
	check_str(text, expected);
	free(text);
	close(fd);
}

/* Return: the number of files in the folder. */
static unsigned int count_files(void)
{
	char folder[256];
	unsigned int n = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/vm.d", test_tmpdir());
	dir = opendir(folder);
	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

TEST(a_file_and_its_folder_are_made)
{
	struct stat st;

	umask(0077);
	make("text\n");
	check_text("text\n");
	check_eq(stat(path, &st), 0);
	check_eq(st.st_mode & 0777, 0644);
	check_eq(count_files(), 1);
}

TEST(a_file_is_replaced)
{
	make("old\n");
	make("new\n");
	check_text("new\n");
	check_eq(count_files(), 1);
}

TEST(without_a_commit_the_old_file_stays_alone)
{
	struct drop_in drop_in;

	make("old\n");
	check_eq(drop_in_prepare(&drop_in, path, "new\n"), 0);
	check_text("old\n");
	check_eq(count_files(), 2);
	drop_in_close(&drop_in);
	check_text("old\n");
	check_eq(count_files(), 1);
}

/* As a power cut between the two steps: nothing of this process runs any more. */
TEST(a_process_that_dies_in_between_leaves_the_old_file)
{
	struct drop_in drop_in;
	struct config_sources sources;
	char config[256], *failed;
	int status;
	pid_t pid;

	make("[vm a]\nsocket = /old\n");
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		if (!drop_in_prepare(&drop_in, path, "[vm a]\nsocket = /new\n"))
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFSIGNALED(status));
	check_eq(count_files(), 2);
	snprintf(config, sizeof(config), "%s/vm.d/../vgpud.conf", test_tmpdir());
	close(open(config, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	check_eq(config_sources_read(&sources, config, &failed), 0);
	check_eq(sources.n, 2);
	check_str(sources.list[1].text, "[vm a]\nsocket = /old\n");
	config_sources_deinit(&sources);
	/* The next change takes the place of what was left. */
	make("[vm a]\nsocket = /newer\n");
	check_eq(count_files(), 1);
}

/* A limit on the size of files is to write() what a full disk is. */
TEST(a_disk_without_room_leaves_the_old_file)
{
	const struct rlimit limit = { 2, RLIM_INFINITY };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct drop_in drop_in;

	make("old\n");
	signal(SIGXFSZ, SIG_IGN);
	check_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	check_eq(drop_in_prepare(&drop_in, path, "new\n"), -EFBIG);
	check_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	check_text("old\n");
	check_eq(count_files(), 1);
}

TEST(links_are_not_followed)
{
	char temporary[256], target[256];
	struct stat st;

	make("old\n");
	snprintf(temporary, sizeof(temporary), "%s/vm.d/.a.conf.new", test_tmpdir());
	snprintf(target, sizeof(target), "%s/target", test_tmpdir());
	check_eq(symlink(target, temporary), 0);
	make("new\n");
	check_text("new\n");
	check(stat(target, &st) < 0);
}

TEST(a_folder_whose_folder_is_missing_is_an_error)
{
	struct drop_in drop_in;
	char nowhere[256];

	snprintf(nowhere, sizeof(nowhere), "%s/none/vm.d/a.conf", test_tmpdir());
	check_eq(drop_in_prepare(&drop_in, nowhere, "text\n"), -ENOENT);
	check_eq(drop_in_prepare(&drop_in, "a.conf", "text\n"), -EINVAL);
}

TEST(a_file_is_removed_once_and_again)
{
	make("text\n");
	check_eq(drop_in_remove(path), 0);
	check_eq(count_files(), 0);
	check_eq(drop_in_remove(path), 0);
}
