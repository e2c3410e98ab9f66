/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust: whether other users could have created or replaced a file
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vgpud/trust.h"

int trust_open(const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned int)flags,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static bool is_trusted_user(uid_t uid, struct trust trust)
{
	return uid == 0 || uid == geteuid() || (uid == trust.uid && uid != (uid_t)-1);
}

static bool is_trusted_group(gid_t gid, struct trust trust)
{
	return gid == 0 || gid == getegid() || (gid == trust.gid && gid != (gid_t)-1);
}

const char *trust_reason(const struct stat *st, struct trust trust)
{
	if (!is_trusted_user(st->st_uid, trust))
		return "it belongs to another user";
	if (st->st_mode & S_IWOTH ||
		(st->st_mode & S_IWGRP && !is_trusted_group(st->st_gid, trust)))
		return "other users may write to it";
	/* The kernel may permit links to files of other users. */
	if (st->st_nlink > 1)
		return "it has another name besides";
	return NULL;
}
