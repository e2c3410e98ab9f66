/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image store: the code that the workers of one VM share
 *
 * Each image is a sealed memfd, named by the digest that a worker gave for it. vgpud does
 * not read it: the worker that receives one checks its digest. A store belongs to one VM,
 * and its images are never given to another.
 *
 * An image that the store drops while a worker may map it still takes memory: it is on
 * the list of gone images, without a descriptor, and counted until the last such worker
 * has ended.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control/control.h"

/* Most images of a store: each is a descriptor in the keeper and one in the broker. */
#define IMAGE_STORE_N_MAX 512u
/* Of those that are there and those that are gone together. */
#define IMAGE_STORE_SLOTS 1024u

/* Of all descriptors that a process of vgpud may have, one in so many may be an image. */
#define IMAGE_STORE_FD_SHARE 4

struct stored_image {
	TAILQ_ENTRY(stored_image) entry;
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;
	uint32_t slot; /* a number that no other one of the store has */
	int fd;	       /* -1: it is gone */
};

struct image_store {
	/* First the one used longest ago. */
	TAILQ_HEAD(stored_images, stored_image) images;
	uint64_t size; /* memory of all, in whole pages */
	uint32_t n;
	struct stored_images gone;
	uint64_t gone_size;
	uint64_t slots[IMAGE_STORE_SLOTS / 64]; /* bits: taken */
};

/* Memory that a file of that size takes: whole pages. */
static inline uint64_t image_store_memory(uint64_t size)
{
	return (size + 4095) & ~(uint64_t)4095;
}

void image_store_init(struct image_store *store);

/* Lets go of all; those who map an image keep it. */
void image_store_clear(struct image_store *store);

/* Moves all that is in `from` to an empty store. */
void image_store_move(struct image_store *to, struct image_store *from);

/* Whether a descriptor is a memfd of ordinary pages, of that size, with sealed
 * contents. */
bool image_store_accepts(int fd, uint64_t size);

/* Return: the image, or NULL. It counts as just used. */
struct stored_image *image_store_find(
	struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE]);

/*
 * Adds an image that is not there yet.
 *
 * @fd:	becomes the store's on success
 *
 * Return: 0 or -errno.
 */
int image_store_add(struct image_store *store, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, int fd);
void image_store_remove(struct image_store *store, struct stored_image *image);

/* Lets go of one that workers may have, and forgets it when none has any more. */
void image_store_retire(struct image_store *store, struct stored_image *image);
void image_store_forget(struct image_store *store, struct stored_image *gone);

/* The image that has to go before one of that size fits, or NULL if it does. */
struct stored_image *image_store_excess(const struct image_store *store, uint64_t size,
	uint64_t size_max, uint32_t n_max);
