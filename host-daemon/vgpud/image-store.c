/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image store: the code that the workers of one VM share
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"
#include "vgpud/image-store.h"

void image_store_init(struct image_store *store)
{
	*store = (struct image_store){ .n = 0 };
	TAILQ_INIT(&store->images);
	TAILQ_INIT(&store->gone);
}

void image_store_clear(struct image_store *store)
{
	struct stored_image *image;

	while ((image = TAILQ_FIRST(&store->images)))
		image_store_remove(store, image);
	while ((image = TAILQ_FIRST(&store->gone)))
		image_store_forget(store, image);
}

void image_store_move(struct image_store *to, struct image_store *from)
{
	TAILQ_CONCAT(&to->images, &from->images, entry);
	TAILQ_CONCAT(&to->gone, &from->gone, entry);
	to->gone_size = from->gone_size;
	to->size = from->size;
	to->n = from->n;
	memcpy(to->slots, from->slots, sizeof(to->slots));
	image_store_init(from);
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

/* All memfds are of one file system. Return: 0 if there is no file. */
static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

bool image_store_has_file(const struct image_store *store, int fd)
{
	const uint64_t inode = inode_of(fd);
	const struct stored_image *image;

	TAILQ_FOREACH(image, &store->images, entry)
		if (image->inode == inode)
			return true;
	return false;
}

/* Return: a free number, or IMAGE_STORE_SLOTS. */
static uint32_t take_slot(struct image_store *store)
{
	for (uint32_t i = 0; i < IMAGE_STORE_SLOTS; i++) {
		const uint64_t bit = (uint64_t)1 << i % 64;

		if (store->slots[i / 64] & bit)
			continue;
		store->slots[i / 64] |= bit;
		return i;
	}
	return IMAGE_STORE_SLOTS;
}

int image_store_add(struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, int fd)
{
	struct stored_image *image = calloc(1, sizeof(*image));

	if (!image)
		return vgpu_error_origin(-ENOMEM);
	image->slot = take_slot(store);
	if (image->slot == IMAGE_STORE_SLOTS) {
		free(image);
		return vgpu_error_origin(-ENOSPC);
	}
	memcpy(image->digest, digest, CONTROL_DIGEST_SIZE);
	image->size = size;
	image->inode = inode_of(fd);
	image->fd = fd;
	TAILQ_INSERT_TAIL(&store->images, image, entry);
	store->size += image_store_memory(size);
	store->n++;
	return 0;
}

static void take_out(struct image_store *store, struct stored_image *image)
{
	TAILQ_REMOVE(&store->images, image, entry);
	store->size -= image_store_memory(image->size);
	store->n--;
	image->fd = closer_close(image->fd);
}

static void give_slot(struct image_store *store, const struct stored_image *image)
{
	store->slots[image->slot / 64] &= ~((uint64_t)1 << image->slot % 64);
}

void image_store_remove(struct image_store *store, struct stored_image *image)
{
	take_out(store, image);
	give_slot(store, image);
	free(image);
}

void image_store_retire(struct image_store *store, struct stored_image *image)
{
	take_out(store, image);
	TAILQ_INSERT_TAIL(&store->gone, image, entry);
	store->gone_size += image_store_memory(image->size);
}

void image_store_forget(struct image_store *store, struct stored_image *gone)
{
	TAILQ_REMOVE(&store->gone, gone, entry);
	store->gone_size -= image_store_memory(gone->size);
	give_slot(store, gone);
	free(gone);
}

struct stored_image *image_store_excess(
	const struct image_store *store, uint64_t size, uint64_t size_max, uint32_t n_max)
{
	return store->n < n_max && store->size + image_store_memory(size) <= size_max
		       ? NULL
		       : TAILQ_FIRST(&store->images);
}
