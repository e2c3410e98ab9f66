/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image: the code of one load, in memory that nobody can change
 *
 * It is either what the guest has in its arena, copied once, or what an earlier load of
 * the same VM left with vgpud. In both cases it is mapped for reading only, from a memory
 * file that vgpud made and that is sealed by then, and its digest was computed here over
 * just these bytes: so a worker that was taken over can give another one nothing but what
 * that one asked for. What vgpud gives no file for is memory of the worker's own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpu/cuda.h"
#include "vgpu/load.h"

struct session;

/* Behind each container: the end of a text, and what a parser may look ahead at. */
#define IMAGE_TRAILER 64u
#define IMAGE_ALIGNMENT 64u

struct image {
	const uint8_t *bytes; /* NULL: none */
	uint32_t *n_users;    /* with bytes: all that are this mapping */
	uint64_t size;
	uint8_t digest[CONTROL_DIGEST_SIZE];
	bool is_new;	 /* copied, and vgpud was not asked yet whether it has the same */
	int fd;		 /* of one that vgpud may not have yet, else -1 */
	uint32_t cookie; /* with fd: vgpud's name of the file */
	struct session *session; /* with fd: who gives it back */
};

/* Bytes that a container of that size takes with what stands behind it. */
static inline uint64_t image_padded(uint64_t size)
{
	return (size + IMAGE_TRAILER + IMAGE_ALIGNMENT - 1) &
	       ~(uint64_t)(IMAGE_ALIGNMENT - 1);
}

/* Another one that is the same mapping. */
struct image image_dup(const struct image *image);

/* Copies what the guest names. The caller has checked addresses and sizes. */
CUresult image_copy(struct image *image, struct session *session,
	const struct vgpu_load *load, uint64_t size);

/* Maps what vgpud has. Return: CUDA_ERROR_NOT_FOUND if that is not of this digest and
 * size. */
CUresult image_find(struct image *image, struct session *session,
	const uint8_t digest[CONTROL_DIGEST_SIZE], uint64_t size);

/* Has all workers of the VM use one: that of vgpud if it is the same, or else this. */
void image_share(struct image *image, struct session *session);

/* One without bytes has nothing to be released. */
void image_release(struct image *image);
