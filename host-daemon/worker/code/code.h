/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Code: images in the form that a driver reads
 *
 * With CU_LIBRARY_BINARY_IS_PRESERVED a driver reads the code of a library in place until
 * the library is unloaded (CUDA driver API). So code stays mapped as long as its library,
 * and the workers of a VM share the pages of equal code. It is charged as long as it is
 * mapped. For modules and links the driver makes its own copies.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "vgpu/cuda.h"
#include "vgpu/load.h"
#include "worker/code/image.h"

struct session;

/* Wrapper of fat binaries, as NVIDIA's fatbinary_section.h documents it. */
struct code_wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	void *prelinked; /* version 2: NULL-terminated array of further containers */
};

struct code {
	LIST_ENTRY(code) entry;
	CUlibrary library; /* the owner */
	struct image image;
	uint64_t held;	   /* charged as loaded code */
	const void *start; /* passed to the driver */
	struct code_wrapper wrapper;
	const void *containers[VGPU_LOAD_IMAGES_MAX + 1]; /* NULL-terminated */
};

struct codes {
	pthread_mutex_t lock;
	LIST_HEAD(code_list, code) kept;
};

void codes_init(struct codes *codes);
void codes_deinit(struct session *session);

/* Return: NULL without memory. */
struct code *code_new(void);

/* Unmaps the code and refunds its charge. */
struct code *code_free(struct session *session, struct code *code);

/* Finds the containers in an image that is present. */
void code_place(struct code *code, const struct vgpu_load *load);

/* Keeps the code of a library that no other thread can name yet. */
void code_keep(struct session *session, struct code *code, CUlibrary library);

/* Finds kept code by its digest. Return: true with *image as another user of the mapping,
 * which needs no request to vgpud and no check. */
bool code_find_image(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, struct image *image);

/* Return: the code of a library that no other thread can unload; the caller becomes the
 * owner. */
struct code *code_take(struct session *session, CUlibrary library);
