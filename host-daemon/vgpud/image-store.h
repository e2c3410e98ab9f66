/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image store: the code that the workers of one VM share
 *
 * Each image is a sealed memfd, identified by the digest that a worker sent. vgpud does
 * not read it: the worker that receives an image checks its digest. A store belongs to
 * one VM, and no other VM gets its images.
 *
 * An image that the store drops while a worker may map it still takes memory: it is in
 * the list of gone images, without a descriptor, and counted until the last such worker
 * has exited.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control/control.h"

/* Maximum of images of a store: each has a descriptor in the keeper and one in the
 * broker. */
#define IMAGE_STORE_N_MAX 512u
/* Maximum of present and gone images together. */
#define IMAGE_STORE_SLOTS 1024u

/* At most one in this many descriptors of a process of vgpud is an image's. */
#define IMAGE_STORE_FD_SHARE 4

struct stored_image {
	TAILQ_ENTRY(stored_image) entry;
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;
	uint64_t inode; /* of its memfd */
	uint32_t slot;	/* a number that is unique in the store */
	int fd;		/* -1: gone */
};

struct image_store {
	/* In order of use, the least recently used first. */
	TAILQ_HEAD(stored_images, stored_image) images;
	uint64_t size; /* memory of all, in whole pages */
	uint32_t n;
	struct stored_images gone;
	uint64_t gone_size;
	uint64_t slots[IMAGE_STORE_SLOTS / 64]; /* bits: in use */
};

/* Memory of a file of that size: whole pages. */
static inline uint64_t image_store_memory(uint64_t size)
{
	return (size + 4095) & ~(uint64_t)4095;
}

void image_store_init(struct image_store *store);

/* Drops all images; workers keep their mappings. */
void image_store_clear(struct image_store *store);

/* Moves all images to an empty store. */
void image_store_move(struct image_store *to, struct image_store *from);

/* Whether a descriptor is a memfd of ordinary pages, of that size, with sealed
 * contents. */
bool image_store_accepts(int fd, uint64_t size);

/* Return: the image, or NULL. Counts as a use. */
struct stored_image *image_store_find(
	struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE]);

/* Whether a memfd is the one of an image that is there. */
bool image_store_has_file(const struct image_store *store, int fd);

/*
 * Adds an image that is not in the store.
 *
 * @fd:	owned by the store on success
 *
 * Return: 0 or -errno.
 */
int image_store_add(struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, int fd);
void image_store_remove(struct image_store *store, struct stored_image *image);

/* Drops an image that workers may map, and frees it when none maps it any more. */
void image_store_retire(struct image_store *store, struct stored_image *image);
void image_store_forget(struct image_store *store, struct stored_image *gone);

/* The image to drop before one of that size fits, or NULL if it fits. */
struct stored_image *image_store_excess(const struct image_store *store, uint64_t size,
	uint64_t size_max, uint32_t n_max);
