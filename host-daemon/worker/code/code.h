/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Code: images in the form that a driver is given
 *
 * A driver that is promised that the code of a library is preserved reads it where it
 * is, until that library is unloaded (CUDA driver API, CU_LIBRARY_BINARY_IS_PRESERVED).
 * So code stays mapped for the life of its library, and workers of a VM that load the
 * same have its pages once. It is charged for as long as it is mapped. Of a module or a
 * link the driver keeps what it needs itself.
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
	CUlibrary library; /* that it is kept for */
	struct image image;
	uint64_t held;	   /* charged as code that is loaded */
	const void *start; /* what the driver is given */
	struct code_wrapper wrapper;
	const void *containers[VGPU_LOAD_IMAGES_MAX + 1]; /* and NULL */
};

struct codes {
	pthread_mutex_t lock;
	LIST_HEAD(code_list, code) kept;
};

void codes_init(struct codes *codes);
void codes_deinit(struct session *session);

/* Return: NULL without memory. */
struct code *code_new(void);

/* Unmaps it and refunds what it holds. */
struct code *code_free(struct session *session, struct code *code);

/* Takes the outline of an image that is there apart. */
void code_place(struct code *code, const struct vgpu_load *load);

/* Keeps the code of a library that no other thread knows yet. */
void code_keep(struct session *session, struct code *code, CUlibrary library);

/* Return: whether an image of that digest is kept: then *image is one more user of the
 * mapping, and needs neither a search nor a check. */
bool code_find_image(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, struct image *image);

/* Return: the code of a library that no other thread can unload any more; the caller owns
 * it. */
struct code *code_take(struct session *session, CUlibrary library);
