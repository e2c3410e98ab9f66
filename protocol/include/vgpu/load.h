/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads of code as they travel: images, options of the compiler, room for its logs
 *
 * Modules, libraries and links are all loaded in the same way, so their messages carry
 * the same block. Images lie in the arena; so does the room for the logs, the
 * information log first and the error log behind it.
 */

#include <assert.h>
#include <stdint.h>

/* Containers of one image: the linked result and what it was linked from. */
#define VGPU_LOAD_IMAGES_MAX 64u
#define VGPU_LOAD_OPTIONS_MAX 64u
/* Of either log: compilers say some ten bytes for a kernel, libraries have thousands. */
#define VGPU_LOAD_LOG_MAX (256u << 10)

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
};

static_assert(sizeof(struct vgpu_load) == 24 + 64 * 16 + 64 * 16, "fixed size");

/* What comes back, besides the text of the logs. */
struct vgpu_load_result {
	float wall_time;
	uint32_t threads_per_block;
	uint32_t info_size; /* bytes of text */
	uint32_t error_size;
};

static_assert(sizeof(struct vgpu_load_result) == 16, "fixed size");
