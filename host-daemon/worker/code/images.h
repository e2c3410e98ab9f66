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

/* One load: the largest fat binaries of NVIDIA's libraries have some hundred MiB. */
#define IMAGES_SIZE_MAX CONTROL_IMAGE_SIZE_MAX

/* The most that all loads of a session may copy at a time, logs included. */
#define IMAGES_SESSION_MAX (2ull << 30)

/* Of all that is loaded, unless vgpud says otherwise. */
#define IMAGES_HELD_MAX (4ull << 30)

struct images {
	struct code *code; /* NULL: none */
	uint64_t size;	   /* charged while the load lasts */
	uint64_t held;	   /* charged as code that is loaded, unless it was kept */
	bool is_absent;	   /* it was named by an unknown digest */
	bool is_taken;	   /* all is there, and of this digest */
	bool is_silent;	   /* no code of it prints, as far as that is known */
	uint8_t digest[CONTROL_DIGEST_SIZE];
};

/* Charges bytes to what loads under way may take. Return: whether they fit. */
bool images_charge(struct session *session, uint64_t size);
void images_refund(struct session *session, uint64_t size);

/* Charges bytes that the driver is about to hold. Return: CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY and a line in the log. */
CUresult images_hold(struct session *session, uint64_t size);

/*
 * Copies images out of the arena, or finds those that the guest names by their digest.
 *
 * Return: CUDA_SUCCESS or the error to return; CUDA_ERROR_NOT_FOUND for an unknown
 * digest.
 */
CUresult images_take(
	struct call *call, struct images *images, const struct vgpu_load *load);

/* Has the code of a library, which is not known to the guest yet, stay mapped and charged
 * for as long as that lives. */
void images_preserve(struct call *call, struct images *images, CUlibrary library);

/* Has what was loaded stay charged for as long as that object lives. */
void images_keep(struct call *call, struct images *images, enum vgpu_handle_kind kind,
	uint64_t handle);

/* Lets go of the copy and refunds what was not kept. */
void images_release(struct call *call, struct images *images);
