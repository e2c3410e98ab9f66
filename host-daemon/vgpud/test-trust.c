/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust: which files other users could have created or replaced
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/trust.h"

/* Neither root nor this user, nor its group. */
#define STRANGER 4242

static const char *reason(mode_t mode, uid_t uid, gid_t gid, struct trust trust)
{
	const struct stat st = {
		.st_mode = S_IFREG | mode, .st_uid = uid, .st_gid = gid, .st_nlink = 1
	};

	return trust_reason(&st, trust);
}

TEST(files_of_root_and_of_this_user_are_trusted)
{
	check(!reason(0644, 0, 0, TRUST_NOBODY_ELSE));
	check(!reason(0600, geteuid(), getegid(), TRUST_NOBODY_ELSE));
	check(!reason(0660, geteuid(), getegid(), TRUST_NOBODY_ELSE));
}

TEST(files_of_another_user_are_not)
{
	check(reason(0600, STRANGER, 0, TRUST_NOBODY_ELSE));
	check(!reason(0600, STRANGER, 0, (struct trust){ STRANGER, (gid_t)-1 }));
	check(reason(0600, STRANGER + 1, 0, (struct trust){ STRANGER, (gid_t)-1 }));
}

/* A stat of a file on a foreign file system may hold it. */
TEST(the_number_for_nobody_matches_no_user_and_no_group)
{
	check(reason(0600, (uid_t)-1, 0, TRUST_NOBODY_ELSE));
	check(reason(0660, 0, (gid_t)-1, TRUST_NOBODY_ELSE));
}

TEST(files_that_others_may_write_to_are_not)
{
	check(reason(0602, 0, 0, TRUST_NOBODY_ELSE));
	check(reason(0660, 0, STRANGER, TRUST_NOBODY_ELSE));
	check(!reason(0640, 0, STRANGER, TRUST_NOBODY_ELSE));
	check(!reason(0660, 0, STRANGER, (struct trust){ (uid_t)-1, STRANGER }));
	check(reason(0662, 0, STRANGER, (struct trust){ (uid_t)-1, STRANGER }));
}

TEST(a_file_with_a_second_name_is_not)
{
	const struct stat st = { .st_mode = S_IFREG | 0600, .st_nlink = 2 };

	check(trust_reason(&st, TRUST_NOBODY_ELSE));
}

TEST(no_component_of_a_path_may_be_a_link)
{
	int fd;

	check_eq(chdir(test_tmpdir()), 0);
	check_eq(mkdir("folder", 0700), 0);
	fd = open("folder/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0);
	close(fd);
	check_eq(symlink("folder", "link"), 0);
	check_eq(symlink("file", "folder/other"), 0);

	fd = trust_open("folder/file", O_RDONLY | O_CLOEXEC);
	check(fd >= 0);
	close(fd);
	check_eq(trust_open("link/file", O_RDONLY | O_CLOEXEC), -ELOOP);
	check_eq(trust_open("folder/other", O_RDONLY | O_CLOEXEC), -ELOOP);
	check_eq(trust_open("folder/none", O_RDONLY | O_CLOEXEC), -ENOENT);
}
