/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of virtual machines that are replaced whole or not at all
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
	check_eq(drop_in_open(&drop_in, path), 0);
	check_eq(drop_in_write(&drop_in, text), 0);
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

/*
 * The disk: this program's own fsync() and renameat() remember the order. What has not
 * been synchronised may not be there after a power cut.
 */

static struct stat synced[8]; /* as they were then, the oldest first */
static unsigned int n_synced;
static bool is_renamed; /* and nothing was synchronised since */

/* Whether the disk has what the file is now. */
static bool is_on_disk(const struct stat *st)
{
	for (unsigned int i = n_synced; i--;)
		if (synced[i].st_ino == st->st_ino)
			return synced[i].st_size == st->st_size &&
			       synced[i].st_mode == st->st_mode;
	return false;
}

int fsync(int fd)
{
	check(n_synced < sizeof(synced) / sizeof(*synced));
	check_eq(fstat(fd, &synced[n_synced++]), 0);
	is_renamed = false;
	return (int)syscall(SYS_fsync, fd);
}

int renameat(int from, const char *old, int to, const char *new)
{
	struct stat st;

	check_eq(fstatat(from, old, &st, 0), 0);
	check(is_on_disk(&st));
	is_renamed = true;
	return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

static void check_folder_is_on_disk(const char *folder)
{
	char name[256];
	struct stat st;

	snprintf(name, sizeof(name), "%s/%s", test_tmpdir(), folder);
	check_eq(stat(name, &st), 0);
	check(is_on_disk(&st));
	check(!is_renamed);
}

TEST(the_disk_has_each_step_before_the_next_one)
{
	make("old\n");
	/* The new folder itself, and the new file in it. */
	check_folder_is_on_disk("");
	check_folder_is_on_disk("vm.d");
	n_synced = 0;
	make("new and longer\n");
	check_folder_is_on_disk("vm.d");
	n_synced = 0;
	check_eq(drop_in_remove(path), 0);
	check_folder_is_on_disk("vm.d");
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
	check_eq(drop_in_open(&drop_in, path), 0);
	check_eq(drop_in_write(&drop_in, "new\n"), 0);
	check_text("old\n");
	check_eq(count_files(), 2);
	drop_in_close(&drop_in);
	check_text("old\n");
	check_eq(count_files(), 1);
}

/* As a power cut between the two steps: nothing of this process runs any more. */
TEST(what_a_process_that_dies_leaves_is_ignored_and_removed)
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
		if (!drop_in_open(&drop_in, path) &&
			!drop_in_write(&drop_in, "[vm a]\nsocket = /new\n"))
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
	/* The next change of any file removes what was left. */
	snprintf(path, sizeof(path), "%s/vm.d/b.conf", test_tmpdir());
	check_eq(drop_in_open(&drop_in, path), 0);
	drop_in_close(&drop_in);
	check_eq(count_files(), 1);
}

TEST(a_file_is_changed_by_one_at_a_time)
{
	struct drop_in first, second;

	make("old\n");
	check_eq(drop_in_open(&first, path), 0);
	check_eq(drop_in_open(&second, path), -EBUSY);
	check_eq(drop_in_check_remove(path), -EBUSY);
	check_eq(drop_in_remove(path), -EBUSY);
	/* A change of another file does not take it for one that was left. */
	snprintf(path, sizeof(path), "%s/vm.d/b.conf", test_tmpdir());
	check_eq(drop_in_open(&second, path), 0);
	drop_in_close(&second);
	check_eq(drop_in_write(&first, "new\n"), 0);
	check_eq(drop_in_commit(&first), 0);
	drop_in_close(&first);
	snprintf(path, sizeof(path), "%s/vm.d/a.conf", test_tmpdir());
	check_text("new\n");
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
	check_eq(drop_in_open(&drop_in, path), 0);
	check_eq(drop_in_write(&drop_in, "new\n"), -EFBIG);
	drop_in_close(&drop_in);
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
	check_eq(drop_in_open(&drop_in, nowhere), -ENOENT);
	check_eq(drop_in_open(&drop_in, "a.conf"), -EINVAL);
}

TEST(a_file_is_removed_once_and_again)
{
	make("text\n");
	check_eq(drop_in_check_remove(path), 0);
	check_eq(drop_in_remove(path), 0);
	check_eq(count_files(), 0);
	check_eq(drop_in_check_remove(path), 0);
	check_eq(drop_in_remove(path), 0);
}
