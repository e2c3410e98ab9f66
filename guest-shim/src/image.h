/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images of device code: how long they are, and how they reach the host
 *
 * A program hands over nothing but a pointer. What is there says itself how long it is:
 * a fat binary by its header, an ELF file by its tables, PTX by the end of its text.
 */

#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/load.h"

#define SHIM_IMAGE_PARTS_MAX VGPU_LOAD_IMAGES_MAX
/* More than the largest libraries have; what claims more is damaged. */
#define SHIM_IMAGE_SIZE_MAX (1ull << 30)

struct shim_image_part {
	const void *data;
	uint64_t size;
};

struct shim_image {
	struct shim_image_part parts[SHIM_IMAGE_PARTS_MAX];
	uint32_t n_parts;
};

/* Looks at what the pointer names. Return: CUDA_ERROR_INVALID_IMAGE for what is no image
 * of any known kind. */
CUresult shim_image_measure(const void *data, struct shim_image *image);

/* Reads a file whole, with a NUL behind it. The caller frees it. */
CUresult shim_image_read_file(const char *path, void **datap, size_t *sizep);
