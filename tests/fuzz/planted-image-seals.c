/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: any memory file of the announced size is accepted as an image
 *
 * Built instead of host-daemon/vgpud/image-accept.c into the target that must find it.
 * The seals are not checked: the sender may change it later.
 */

#include <sys/stat.h>

#include "vgpud/image-store.h"

bool image_store_accepts(int fd, uint64_t size)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && size &&
	       size <= CONTROL_IMAGE_SIZE_MAX && (uint64_t)st.st_size == size;
}
