/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trust: whether a file that is opened by its path is one that others cannot have put
 * there
 *
 * A path may lead through folders that all users of the host write to. So vgpud, which
 * may be root, follows no links to files that it writes to, and asks whose they are.
 */

#include <sys/stat.h>
#include <sys/types.h>

/* The owner that a file may have besides root and vgpud's own user; (uid_t)-1: none. */
struct trust {
	uid_t uid;
	gid_t gid;
};

#define TRUST_NOBODY_ELSE                                                                \
	(struct trust)                                                                   \
	{                                                                                \
		(uid_t) - 1, (gid_t)-1                                                   \
	}

/* Opens a path without following symbolic links in any component. Returns: the descriptor
 * or -errno; -ELOOP if there is a link. */
int trust_open(const char *path, int flags);

/* Returns: why others may have put a regular file there or can write to it, or NULL. */
const char *trust_reason(const struct stat *st, struct trust trust);
