/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trust: whether other users could have created or replaced a file
 *
 * A path may contain folders to which all users of the host can write. So vgpud, which
 * may be root, follows no symbolic links to files that it writes, and checks their owner.
 */

#include <sys/stat.h>
#include <sys/types.h>

/* The permitted owner besides root and vgpud's own user; (uid_t)-1: none. */
struct trust {
	uid_t uid;
	gid_t gid;
};

#define TRUST_NOBODY_ELSE                                                                \
	(struct trust)                                                                   \
	{                                                                                \
		(uid_t) - 1, (gid_t)-1                                                   \
	}

/* Opens a path without following symbolic links in any component. Return: the descriptor
 * or -errno; -ELOOP if there is a link. */
int trust_open(const char *path, int flags);

/* Return: the reason why a regular file is not trusted, or NULL. */
const char *trust_reason(const struct stat *st, struct trust trust);
