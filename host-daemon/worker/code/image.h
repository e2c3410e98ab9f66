/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image: the code of one load, in immutable memory
 *
 * It is either a copy of the guest's bytes in the arena, or an image of an earlier load
 * in the same VM that vgpud keeps. Both are read-only mappings of a memory file that
 * vgpud created and that is sealed by then, and this worker computes the digest of these
 * bytes itself. So a compromised worker cannot give another worker any code but that with
 * the requested digest. Without a file from vgpud, the image is private memory of the
 * worker.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpu/cuda.h"
#include "vgpu/load.h"

struct session;

/* Zeroes after each container: they terminate text, and a parser may read ahead into
 * them. */
#define IMAGE_TRAILER 64u
#define IMAGE_ALIGNMENT 64u

struct image {
	const uint8_t *bytes; /* NULL: none */
	uint32_t *n_users;    /* with bytes: references to this mapping */
	uint64_t size;
	uint8_t digest[CONTROL_DIGEST_SIZE];
	bool is_new;		 /* copied, and not yet compared with vgpud's image */
	int fd;			 /* the file of a new image, else -1 */
	uint32_t cookie;	 /* with fd: identifies the file to vgpud */
	struct session *session; /* with fd: the store to which it is returned */
};

/* The size of a container with its padding. */
static inline uint64_t image_padded(uint64_t size)
{
	return (size + IMAGE_TRAILER + IMAGE_ALIGNMENT - 1) &
	       ~(uint64_t)(IMAGE_ALIGNMENT - 1);
}

/* Another reference to the same mapping. */
struct image image_dup(const struct image *image);

/* Copies the guest's bytes. The caller has checked addresses and sizes. */
CUresult image_copy(struct image *image, struct session *session,
	const struct vgpu_load *load, uint64_t size);

/* Maps vgpud's image. Return: CUDA_ERROR_NOT_FOUND if its digest or size differs. */
CUresult image_find(struct image *image, struct session *session,
	const uint8_t digest[CONTROL_DIGEST_SIZE], uint64_t size);

/* Makes all workers of the VM share one image: vgpud's if it is the same, or else this
 * one. */
void image_share(struct image *image, struct session *session);

/* An image without bytes needs no release. */
void image_release(struct image *image);
