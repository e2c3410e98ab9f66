/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image store: the code that the workers of one VM share
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "broker/image-store.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#define PAGE_BYTES 4096u

void image_store_init(struct image_store *store)
{
	*store = (struct image_store){ .n = 0 };
	TAILQ_INIT(&store->images);
}

void image_store_clear(struct image_store *store)
{
	struct stored_image *image;

	while ((image = TAILQ_FIRST(&store->images)))
		image_store_remove(store, image);
}

void image_store_move(struct image_store *to, struct image_store *from)
{
	TAILQ_CONCAT(&to->images, &from->images, entry);
	to->size = from->size;
	to->n = from->n;
	image_store_init(from);
}

bool image_store_accepts(int fd, uint64_t size)
{
	const int wanted = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct statfs fs;
	struct stat st;
	/* Only memory files have seals. Those of huge pages do too: to map one needs a
	 * whole such page, and takes it from who set them aside (memfd_create(2)). */
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & wanted) == wanted && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       size && size <= CONTROL_IMAGE_SIZE_MAX &&
	       (uint64_t)st.st_size == size;
}

struct stored_image *image_store_find(
	struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE])
{
	struct stored_image *image;

	TAILQ_FOREACH(image, &store->images, entry) {
		if (memcmp(image->digest, digest, CONTROL_DIGEST_SIZE))
			continue;
		TAILQ_REMOVE(&store->images, image, entry);
		TAILQ_INSERT_TAIL(&store->images, image, entry);
		return image;
	}
	return NULL;
}

/* What it takes of this host. */
static uint64_t memory_of(uint64_t size)
{
	return (size + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

int image_store_add(struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, int fd)
{
	struct stored_image *image = calloc(1, sizeof(*image));

	if (!image)
		return vgpu_error_origin(-ENOMEM);
	memcpy(image->digest, digest, CONTROL_DIGEST_SIZE);
	image->size = size;
	image->fd = fd;
	TAILQ_INSERT_TAIL(&store->images, image, entry);
	store->size += memory_of(size);
	store->n++;
	return 0;
}

void image_store_remove(struct image_store *store, struct stored_image *image)
{
	TAILQ_REMOVE(&store->images, image, entry);
	store->size -= memory_of(image->size);
	store->n--;
	vgpu_close(image->fd);
	free(image);
}

struct stored_image *image_store_excess(const struct image_store *store, uint64_t size,
	uint64_t size_max, uint32_t n_max)
{
	return store->n < n_max && store->size + memory_of(size) <= size_max
		       ? NULL
		       : TAILQ_FIRST(&store->images);
}
