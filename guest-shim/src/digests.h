/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Digests: what the host called the images of earlier processes
 *
 * Kept in a file of the user, so that the next process of the same program names an
 * image in place of sending it. The file is a hint and no more: a host that does not have
 * the image is sent it. It lies in $XDG_RUNTIME_DIR/vgpu, or else in the user's cache
 * folder, and is used only where both are the user's own and nobody else may change
 * them. A program that runs with more rights than its user (AT_SECURE) has none.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/load.h"

#define SHIM_DIGEST_KEY_WORDS 10

/* What tells one image from all others; to be filled whole. */
struct shim_digest_key {
	uint64_t words[SHIM_DIGEST_KEY_WORDS];
};

/* What the host said of an image. */
struct shim_digest {
	uint8_t bytes[VGPU_LOAD_DIGEST_SIZE];
	bool is_silent; /* no code of it prints */
};

/* Return: whether it is known. */
bool shim_digests_find(const struct shim_digest_key *key, struct shim_digest *digest);

void shim_digests_remember(
	const struct shim_digest_key *key, const struct shim_digest *digest);
