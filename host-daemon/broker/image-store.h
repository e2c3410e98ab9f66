/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image store: the code that the workers of one VM share
 *
 * Each image is a memfd that cannot change any more, known by the digest that a worker
 * said it has. Nobody here looks into it: whoever is given one checks that it is what
 * was asked for. A store belongs to one VM, and what is in it never leaves that.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control.h"

/* Most images of a store: each is a descriptor in the keeper and one in the broker. */
#define IMAGE_STORE_N_MAX 512u

struct stored_image {
	TAILQ_ENTRY(stored_image) entry;
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;
	int fd;
};

struct image_store {
	/* First the one used longest ago. */
	TAILQ_HEAD(stored_images, stored_image) images;
	uint64_t size; /* memory of all, in whole pages */
	uint32_t n;
};

void image_store_init(struct image_store *store);

/* Lets go of all; those who map an image keep it. */
void image_store_clear(struct image_store *store);

/* Moves all that is in `from` to an empty store. */
void image_store_move(struct image_store *to, struct image_store *from);

/* Whether a descriptor is a memfd of ordinary pages and that size whose bytes nobody can
 * change. */
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

/* The image that has to go before one of that size fits, or NULL if it does. */
struct stored_image *image_store_excess(const struct image_store *store, uint64_t size,
	uint64_t size_max, uint32_t n_max);
