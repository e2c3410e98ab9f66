/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below a root
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/root.h"

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", test_tmpdir(), name);
	file = fopen(path, "we");
	check(file != NULL);
	fputs(text, file);
	check_eq(fclose(file), 0);
}

TEST(a_line_is_read_without_its_newline)
{
	char line[256], text[400];

	put("/a", "one\ntwo\n");
	check(vgpu_root_read_line(test_tmpdir(), "/a", line));
	check_str(line, "one");
	put("/a", "");
	check(vgpu_root_read_line(test_tmpdir(), "/a", line));
	check_str(line, "");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	put("/a", text);
	check(vgpu_root_read_line(test_tmpdir(), "/a", line));
	check_eq(strlen(line), 255);
}

TEST(a_file_that_is_missing_is_an_empty_line)
{
	char line[256] = "old";

	check(!vgpu_root_read_line(test_tmpdir(), "/none", line));
	check_str(line, "");
	check(!vgpu_root_open(test_tmpdir(), "/none"));
	check_eq(vgpu_root_access(test_tmpdir(), "/none", F_OK), -ENOENT);
}

TEST(a_folder_is_no_line)
{
	char line[256] = "old";

	check(vgpu_root_read_line(test_tmpdir(), "/", line));
	check_str(line, "");
}

TEST(the_files_of_this_system_have_an_empty_root)
{
	char line[256];

	/* No file of this process: an emulator would be described there. */
	check(vgpu_root_read_line("", "/proc/sys/kernel/ostype", line));
	check_str(line, "Linux");
	check_eq(vgpu_root_access("", "/proc/sys/kernel/ostype", R_OK), 0);
}
