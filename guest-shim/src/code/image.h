/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images of device code: their lengths, and how they are sent to the host
 *
 * A program passes only a pointer. The length is in the image: in the header of a fat
 * binary, the tables of an ELF file, the NUL at the end of PTX. Of a fat binary only what
 * the devices can use is sent, see fatbin.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/load.h"

#include "code/digests.h"
#include "code/image-file.h"

#define SHIM_IMAGE_PARTS_MAX VGPU_LOAD_IMAGES_MAX
/* More than the largest libraries have; what claims more is damaged. */
#define SHIM_IMAGE_SIZE_MAX (1ull << 30)

struct shim_image_part {
	const void *data;
	uint64_t size;	/* as it is sent */
	uint64_t whole; /* of a fat binary: as it is in memory; else 0 */
};

struct shim_image {
	struct shim_image_part parts[SHIM_IMAGE_PARTS_MAX];
	uint32_t n_parts;
	const struct shim_image_file *file; /* that it was read from, or NULL */
};

/* Looks at what the pointer names, which is the beginning of the file if there is one.
 * Return: CUDA_ERROR_INVALID_IMAGE for what is no image
 * of any known kind. */
CUresult shim_image_measure(const void *data, struct shim_image *image);

/* Writes a part as it is sent. */
void shim_image_copy_part(const struct shim_image_part *part, uint8_t *to);

/*
 * The identity of an image across processes.
 *
 * @settledp:	whether it is certain enough to be written to the file of digests
 *
 * Return: false for an image that is not just bytes of a file.
 */
bool shim_image_identify(
	const struct shim_image *image, struct shim_digest_key *key, bool *settledp);
