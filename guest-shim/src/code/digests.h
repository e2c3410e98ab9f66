/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Digests: the host's names for images of earlier processes
 *
 * Kept in a file of the user, so that the next process of the same program names an image
 * instead of sending it. The file is only a hint: a host that does not have the image
 * gets the bytes. The file is in $XDG_RUNTIME_DIR/vgpu, or else in the user's cache
 * folder, and is used only if both belong to the user and no one else can change them. A
 * program with more rights than its user (AT_SECURE) does not use it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/load.h"

#define SHIM_DIGEST_KEY_WORDS 10

/* The identity of an image; all fields are to be filled. */
struct shim_digest_key {
	uint64_t words[SHIM_DIGEST_KEY_WORDS];
};

/* The host's answer about an image. */
struct shim_digest {
	uint8_t bytes[VGPU_LOAD_DIGEST_SIZE];
	bool is_silent; /* no code of it prints */
};

/* Return: whether it is known. */
bool shim_digests_find(const struct shim_digest_key *key, struct shim_digest *digest);

void shim_digests_remember(
	const struct shim_digest_key *key, const struct shim_digest *digest);
