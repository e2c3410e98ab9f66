/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of vgpud: paths, and files with a folder in its place
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/cgroup.h"

#define MOUNT "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"

TEST(the_folder_is_found_by_group_and_mount)
{
	static const struct {
		const char *groups, *mounts, *path;
	} cases[] = {
		{ "0::/system.slice/vgpud.service\n", MOUNT,
			"/sys/fs/cgroup/system.slice/vgpud.service" },
		{ "0::/\n", MOUNT, "/sys/fs/cgroup/" },
		/* Beside version 1. */
		{ "9:name=systemd:/a\n1:cpu:/b\n0::/c\n",
			"29 24 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
			"30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"/sys/fs/cgroup/unified/c" },
		/* A part of the hierarchy is mounted, as containers have it. */
		{ "0::/pod/one/x\n",
			"30 24 0:26 /pod/one /cg rw shared:9 - cgroup2 c rw\n", "/cg/x" },
		{ "0::/pod/one\n", "30 24 0:26 /pod/one /cg rw - cgroup2 c rw\n", "/cg" },
		{ "0::/pod/onex\n", "30 24 0:26 /pod/one /cg rw - cgroup2 c rw\n", NULL },
		{ "0::/pod\n", "30 24 0:26 /pod/one /cg rw - cgroup2 c rw\n", NULL },
		{ "0::/x\n", "30 24 0:26 / /a\\040b rw - cgroup2 c rw\n", NULL },
		/* The group is outside of the namespace. */
		{ "0::/../x\n", MOUNT, NULL },
		{ "1:cpu:/b\n", MOUNT, NULL },
		{ "0::/c\n", "29 24 0:25 / /s rw - cgroup cgroup rw,cpu\n", NULL },
		{ "", MOUNT, NULL },
		{ "0::/c\n", "", NULL },
		{ "0::", MOUNT, NULL },
		{ "0::/c", "30 24", NULL },
	};
	char path[CGROUP_PATH_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const bool found = cgroup_find(cases[i].groups, cases[i].mounts, path);

		check_eq(found, cases[i].path != NULL);
		if (found)
			check_str(path, cases[i].path);
	}
}

TEST(a_path_that_is_too_long_is_none)
{
	static char groups[2 * CGROUP_PATH_MAX];
	char path[CGROUP_PATH_MAX];

	memset(groups, 'x', sizeof(groups) - 1);
	memcpy(groups, "0::/", 4);
	check(!cgroup_find(groups, MOUNT, path));
	groups[CGROUP_PATH_MAX - 10] = '\n';
	check(!cgroup_find(groups, MOUNT, path));
}

static void make(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	check_eq(mkdir(path, 0755), 0);
}

static int open_own(struct cgroup_own *own, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	return cgroup_own_open_at(own, path, CGROUP_MAIN);
}

TEST(the_group_above_is_the_own_one_of_a_process_in_main)
{
	static char path[CGROUP_PATH_MAX + 1];
	struct cgroup_own own;
	struct stat a, b;

	make("unit");
	make("unit/" CGROUP_MAIN);
	make("unit/other");
	check_eq(open_own(&own, "unit"), 0);
	check(!own.is_inner);
	check_eq(fstat(own.folder, &a), 0);
	cgroup_own_close(&own);
	check_eq(own.folder, -1);
	check_eq(open_own(&own, "unit/" CGROUP_MAIN), 0);
	check(own.is_inner);
	check_eq(fstat(own.folder, &b), 0);
	check(a.st_ino == b.st_ino);
	cgroup_own_close(&own);
	check_eq(open_own(&own, "unit/other"), 0);
	check(!own.is_inner);
	cgroup_own_close(&own);
	check_eq(open_own(&own, "absent"), -ENOENT);
	check_eq(own.folder, -1);
	memset(path, 'x', sizeof(path) - 1);
	check_eq(cgroup_own_open_at(&own, path, CGROUP_MAIN), -ENAMETOOLONG);
	check_eq(own.folder, -1);
}

TEST(files_are_read_and_written_whole)
{
	const int folder = open(test_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *text;
	FILE *file;

	check(folder >= 0);
	check_eq(cgroup_write(folder, "list", "+cpu"), -ENOENT);
	check(!cgroup_read(folder, "list"));
	check(!cgroup_file_has_word(folder, "list", "cpu"));
	file = fdopen(openat(folder, "list", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), "w");
	check(file && !fclose(file));
	check_eq(cgroup_write(folder, "list", "cpuset io\nmemory"), 0);
	text = cgroup_read(folder, "list");
	check_str(text, "cpuset io\nmemory");
	free(text);
	check(cgroup_file_has_word(folder, "list", "memory"));
	check(cgroup_file_has_word(folder, "list", "io"));
	check(!cgroup_file_has_word(folder, "list", "cpu"));
	check(!cgroup_has_word("", "cpu"));
	close(folder);
}
