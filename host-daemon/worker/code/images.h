/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: code on its way to the driver
 *
 * The guest puts PTX, cubin or fat binary into its arena and sends the addresses. A
 * driver parses its input more than once, so it gets a private copy of bounded size,
 * followed by zeroes for unterminated text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"
#include "vgpu/load.h"
#include "worker/code/code.h"

struct call;
struct session;

/* Limit of one load: the largest fat binaries of NVIDIA's libraries have some hundred
 * MiB. */
#define IMAGES_SIZE_MAX CONTROL_IMAGE_SIZE_MAX

/* Limit of all loads in progress of a session, including logs. */
#define IMAGES_SESSION_MAX (2ull << 30)

/* Default limit of all loaded code of a session. */
#define IMAGES_HELD_MAX (4ull << 30)

struct images {
	struct code *code; /* NULL: none */
	uint64_t size;	   /* charged while the load lasts */
	uint64_t held;	   /* charged as loaded code, unless kept */
	bool is_absent;	   /* the guest sent an unknown digest */
	bool is_taken;	   /* all images are present, with this digest */
	bool is_silent;	   /* no code in it prints, as far as is known */
	uint8_t digest[CONTROL_DIGEST_SIZE];
};

/* Charges bytes to the loads in progress. Return: false beyond IMAGES_SESSION_MAX. */
bool images_charge(struct session *session, uint64_t size);
void images_refund(struct session *session, uint64_t size);

/* Charges bytes as loaded code. Return: CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY after
 * logging the limit. */
CUresult images_hold(struct session *session, uint64_t size);

/*
 * Copies images out of the arena, or finds them by the digest that the guest sent.
 *
 * Return: CUDA_SUCCESS or the error to return; CUDA_ERROR_NOT_FOUND for an unknown
 * digest.
 */
CUresult images_take(
	struct call *call, struct images *images, const struct vgpu_load *load);

/* Keeps the code of a library mapped and charged until the library is unloaded. The guest
 * must not have its handle yet. */
void images_preserve(struct call *call, struct images *images, CUlibrary library);

/* Keeps the loaded code charged until that object is destroyed. */
void images_keep(struct call *call, struct images *images, enum vgpu_handle_kind kind,
	uint64_t handle);

/* Releases the copy and refunds the charge unless it was kept. */
void images_release(struct call *call, struct images *images);
