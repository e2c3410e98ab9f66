/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Share key: by which the store finds out whether a piece of a section's shares has
 * changed
 *
 * Keys of all objects are compared with each other, and workers choose the cookies of
 * their shares. So this one is the beginning of a SHA-256: with a hash that can be
 * inverted, a worker that its guest has taken over could give its shares the key that a
 * part of another VM is about to have, which would not be stored then.
 */

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

struct share;

struct share_key {
	struct sha256_ctx context;
};

/* @section:	its name */
void share_key_init(struct share_key *key, const char *section);

void share_key_add(struct share_key *key, const struct share *share);

/*
 * More may be added afterwards.
 *
 * @first:	the number of the first share of the piece
 *
 * Return: the key of the piece that ends here. It depends on those before as well.
 */
uint64_t share_key_get(const struct share_key *key, size_t first);
