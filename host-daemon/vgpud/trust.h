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

/* Who besides root and vgpud's own user may own a file; (uid_t)-1: nobody. */
struct trust {
	uid_t uid;
	gid_t gid;
};

#define TRUST_NOBODY_ELSE                                                                \
	(struct trust)                                                                   \
	{                                                                                \
		(uid_t) - 1, (gid_t)-1                                                   \
	}

/* Opens a path none of whose parts is a link. Returns: the descriptor or -errno; -ELOOP
 * means that there is one. */
int trust_open(const char *path, int flags);

/* Returns: why others may have put a regular file there or can write to it, or NULL. */
const char *trust_reason(const struct stat *st, struct trust trust);
