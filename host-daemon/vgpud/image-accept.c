/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of descriptors for an image store
 *
 * A separate file because a fuzz target is built with a faulty one.
 */

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "vgpud/image-store.h"

bool image_store_accepts(int fd, uint64_t size)
{
	const int wanted = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct statfs fs;
	struct stat st;
	/* Only memory files have seals. Those of huge pages are refused: mapping one
	 * takes huge pages that the administrator has reserved (memfd_create(2)). */
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & wanted) == wanted && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       size && size <= CONTROL_IMAGE_SIZE_MAX && (uint64_t)st.st_size == size;
}
