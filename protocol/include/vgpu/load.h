/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads of code as they travel: images, options of the compiler, room for its logs
 *
 * Modules, libraries and links are all loaded in the same way, so their messages carry
 * the same block. Images lie in the arena; so does the room for the logs, the
 * information log first and the error log behind it.
 *
 * An answer names the digest of what was loaded, by which a later process may load the
 * same again: then sizes and digest stand for the bytes. Where the host does not have
 * them any more it says so, and the guest sends them. Whether code prints takes a search
 * through all of it, so a guest tells what it was told: it would miss only its own text.
 */

#include <assert.h>
#include <stdint.h>

/* Containers of one image: the linked result and what it was linked from. */
#define VGPU_LOAD_IMAGES_MAX 64u
#define VGPU_LOAD_OPTIONS_MAX 64u
/* Of either log: compilers say some ten bytes for a kernel, libraries have thousands. */
#define VGPU_LOAD_LOG_MAX (256u << 10)

/* SHA-256 over all containers, each with its padding. */
#define VGPU_LOAD_DIGEST_SIZE 32u

enum {
	VGPU_LOAD_BY_DIGEST = 1u << 0, /* no image has an address */
	VGPU_LOAD_SILENT = 1u << 1, /* with it: the host said so of that digest before */
};

enum {
	VGPU_LOAD_HAS_DIGEST = 1u << 0, /* of the result */
	VGPU_LOAD_ABSENT = 1u << 1, /* the host has no image of the digest asked for */
	VGPU_LOAD_IS_SILENT = 1u << 2, /* no code of it prints or asserts */
};

struct vgpu_load_image {
	uint64_t address;
	uint64_t size;
};

/* A CUjit_option whose value is a number. */
struct vgpu_load_option {
	uint32_t option;
	uint32_t padding;
	uint64_t value;
};

struct vgpu_load {
	uint32_t n_images;
	uint32_t n_options;
	uint64_t log_address;
	uint32_t info_size; /* bytes of room, 0: not wanted */
	uint32_t error_size;
	struct vgpu_load_image images[VGPU_LOAD_IMAGES_MAX];
	struct vgpu_load_option options[VGPU_LOAD_OPTIONS_MAX];
	uint32_t flags; /* VGPU_LOAD_BY_DIGEST, VGPU_LOAD_SILENT */
	uint32_t padding;
	uint8_t digest[VGPU_LOAD_DIGEST_SIZE];
};

static_assert(sizeof(struct vgpu_load) == 24 + 64 * 16 + 64 * 16 + 40, "fixed size");

/* What comes back, besides the text of the logs. */
struct vgpu_load_result {
	float wall_time;
	uint32_t threads_per_block;
	uint32_t info_size; /* bytes of text */
	uint32_t error_size;
	uint32_t flags; /* VGPU_LOAD_HAS_DIGEST, ... */
	uint32_t padding;
	uint8_t digest[VGPU_LOAD_DIGEST_SIZE];
};

static_assert(sizeof(struct vgpu_load_result) == 56, "fixed size");
