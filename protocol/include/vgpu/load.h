/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads of code: images, options of the compiler, room for its logs
 *
 * Modules, libraries and links are loaded in the same way, so their messages carry the
 * same block. Images are in the arena; so is the room for the logs, the information log
 * first, followed by the error log.
 *
 * A reply has the digest of the image that was loaded, by which a later process may load
 * it again: then size and digest replace the bytes. If the host does not have the bytes
 * any more, it refuses, and the guest sends them. A search for calls of printf takes a
 * pass over the whole image, so the guest passes on the result of an earlier load: a
 * wrong one would lose only its own output.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Parts of one image: the linked result and its inputs. NCCL is linked from 127. */
#define VGPU_LOAD_IMAGES_MAX 512u
/* Of these, so many are in each block; the others follow where there are more. */
#define VGPU_LOAD_IMAGES_FIRST 64u
#define VGPU_LOAD_OPTIONS_MAX 64u
/* Size of either log: compilers print some ten bytes per kernel, and libraries have
 * thousands. */
#define VGPU_LOAD_LOG_MAX (256u << 10)

/* SHA-256 over all containers, each with its padding. */
#define VGPU_LOAD_DIGEST_SIZE 32u

enum {
	VGPU_LOAD_BY_DIGEST = 1u << 0, /* no image has an address */
	VGPU_LOAD_SILENT = 1u << 1,    /* with it: as the host reported for that digest */
};

enum {
	VGPU_LOAD_HAS_DIGEST = 1u << 0, /* of the result */
	VGPU_LOAD_ABSENT = 1u << 1,    /* the host has no image of the digest asked for */
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
	struct vgpu_load_image first[VGPU_LOAD_IMAGES_FIRST];
	struct vgpu_load_option options[VGPU_LOAD_OPTIONS_MAX];
	uint32_t flags; /* VGPU_LOAD_BY_DIGEST, VGPU_LOAD_SILENT */
	uint32_t padding;
	uint8_t digest[VGPU_LOAD_DIGEST_SIZE];
	struct vgpu_load_image more[VGPU_LOAD_IMAGES_MAX - VGPU_LOAD_IMAGES_FIRST];
};

static_assert(offsetof(struct vgpu_load, more) == 24 + 64 * 16 + 64 * 16 + 40, "fixed");
static_assert(
	sizeof(struct vgpu_load) == 2112 + 448 * 16, "the max of driver-module.xml");

/* Returns: the bytes that travel, if the block has a valid number of images. */
static inline size_t vgpu_load_size(const struct vgpu_load *load)
{
	size_t n_more = 0;

	if (load->n_images > VGPU_LOAD_IMAGES_FIRST)
		n_more = load->n_images - VGPU_LOAD_IMAGES_FIRST;
	if (n_more > VGPU_LOAD_IMAGES_MAX - VGPU_LOAD_IMAGES_FIRST)
		n_more = VGPU_LOAD_IMAGES_MAX - VGPU_LOAD_IMAGES_FIRST;
	return offsetof(struct vgpu_load, more) + n_more * sizeof(struct vgpu_load_image);
}

/* The image of that number, which is below VGPU_LOAD_IMAGES_MAX. */
static inline struct vgpu_load_image *vgpu_load_image_at(
	struct vgpu_load *load, uint32_t number)
{
	return number < VGPU_LOAD_IMAGES_FIRST
		       ? &load->first[number]
		       : &load->more[number - VGPU_LOAD_IMAGES_FIRST];
}

static inline const struct vgpu_load_image *vgpu_load_image(
	const struct vgpu_load *load, uint32_t number)
{
	return vgpu_load_image_at((struct vgpu_load *)load, number);
}

/* The results, besides the text of the logs. */
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
