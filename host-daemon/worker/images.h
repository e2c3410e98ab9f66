/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: code on its way to the driver
 *
 * The guest puts PTX, cubin or fat binary into its arena and names addresses. A
 * driver parses what it is given more than once, so it is given a private copy,
 * bounded, with zeros behind it for a text that does not end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"
#include "vgpu/load.h"

struct call;
struct session;

/* One load: the largest fat binaries of NVIDIA's libraries have some hundred MiB. */
#define IMAGES_SIZE_MAX (1ull << 30)

/* What all loads of a session may copy at a time, logs included. */
#define IMAGES_SESSION_MAX (2ull << 30)

/* Of all that is loaded, unless vgpud says otherwise. */
#define IMAGES_HELD_MAX (4ull << 30)

/* Wrapper of fat binaries, as NVIDIA's fatbinary_section.h documents it. */
struct images_wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	void *prelinked; /* version 2: NULL-terminated array of further containers */
};

struct images {
	uint8_t *copy;
	uint64_t size;	  /* charged while the load lasts */
	uint64_t held;	  /* charged as code that is loaded, unless it was kept */
	const void *code; /* what the driver is given */
	struct images_wrapper wrapper;
	const void *containers[VGPU_LOAD_IMAGES_MAX];
};

/* Charges bytes to what loads under way may take. Return: whether they fit. */
bool images_charge(struct session *session, uint64_t size);
void images_refund(struct session *session, uint64_t size);

/* Charges bytes that the driver is about to hold. Return: CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY and a line in the log. */
CUresult images_hold(struct session *session, uint64_t size);

/* Copies images out of the arena. Return: CUDA_SUCCESS or what to answer. */
CUresult images_take(
	struct call *call, struct images *images, const struct vgpu_load *load);

/* Has what was loaded stay charged for as long as that object lives. */
void images_keep(struct call *call, struct images *images, enum vgpu_handle_kind kind,
	uint64_t handle);

/* Frees the copy and refunds what was not kept. */
void images_release(struct call *call, struct images *images);
