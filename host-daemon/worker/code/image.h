/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image: the code of one load, in immutable memory
 *
 * It is either a copy of the guest's bytes in the arena, or an image that an earlier load
 * of the same VM left with vgpud. Both are mapped read-only from a memory file that vgpud
 * created and that is sealed by then, and the digest was computed here over just these
 * bytes: so a worker that was taken over can give another one only what that one asked
 * for. Without a file from vgpud, it is private memory of the worker.
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
	uint32_t *n_users;    /* with bytes: all that are this mapping */
	uint64_t size;
	uint8_t digest[CONTROL_DIGEST_SIZE];
	bool is_new;	 /* copied, and vgpud was not asked yet whether it has the same */
	int fd;		 /* of one that vgpud may not have yet, else -1 */
	uint32_t cookie; /* with fd: vgpud's name of the file */
	struct session *session; /* with fd: the store to which it is returned */
};

/* Bytes that a container of that size takes with its padding. */
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

/* Maps vgpud's image. Return: CUDA_ERROR_NOT_FOUND if its digest or size differs. */
CUresult image_find(struct image *image, struct session *session,
	const uint8_t digest[CONTROL_DIGEST_SIZE], uint64_t size);

/* Makes all workers of the VM share one image: vgpud's if it is the same, or else this
 * one. */
void image_share(struct image *image, struct session *session);

/* One without bytes needs no release. */
void image_release(struct image *image);
