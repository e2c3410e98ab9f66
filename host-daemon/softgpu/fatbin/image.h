/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Module images
 *
 * The argument of the module and library calls, reduced to the PTX text that softgpu can
 * run.
 */

#include <stddef.h>
#include <stdint.h>

#define SOFTGPU_IMAGE_SIZE_MAX (1u << 30) /* bytes of an image; libraries: 500 MiB */

/* Conditions of softgpu_image_select(); see softgpu_image_result(). */
enum {
	_SOFTGPU_IMAGE_E_SUCCESS,
	SOFTGPU_IMAGE_E_INVALID,   /* no known format, or damaged: CUDA error 200 */
	SOFTGPU_IMAGE_E_NO_BINARY, /* no PTX for this device: CUDA error 209 */
	SOFTGPU_IMAGE_E_VERSION,   /* all such PTX is of a newer ISA: CUDA error 222 */
};

/* The chosen text, owned by the struct. */
struct softgpu_image {
	char *text; /* ends with a NUL */
	size_t size;
	uint32_t arch; /* of the chosen entry, 0 for bare PTX */
};

/**
 * softgpu_image_select() - find the PTX to run in an image
 * @bytes:	a fatbin container, PTX text, a stand-in for a cubin (standin.h), or a
 *		cubin (which is refused); a private copy that nobody changes meanwhile
 * @size:	bytes that may be read; what follows the image is ignored
 * @cc:		compute capability of the device, 121 for 12.1
 * @below:	only architectures below this one, 0 for any: with the arch of an
 *		image whose kernels cannot be run, the call gives the next one
 * @image:	filled where 0 is returned
 *
 * The highest PTX of at most @cc wins. Text made for one architecture only ("a")
 * or for a family ("f") counts only where it applies and then wins over plain text
 * of the same architecture. A stand-in in a container counts as the PTX that it has,
 * machine code is passed over. An image in several containers takes one call for each.
 *
 * Return: 0, -ENOMEM, or SOFTGPU_IMAGE_E_*.
 */
int softgpu_image_select(const void *bytes, size_t size, unsigned int cc,
	unsigned int below, struct softgpu_image *image);
void softgpu_image_deinit(struct softgpu_image *image);

/* Returns: about how much text that would be, of a container, without unpacking it; 0 if
 * there would be none. */
size_t softgpu_image_text_size(const void *bytes, size_t size, unsigned int cc);

struct fatbin_entry;

/* Returns: whether the entry of a container has PTX, as such or in a stand-in; or
 * -ENOMEM. */
int image_entry_has_ptx(const struct fatbin_entry *entry);

/* Returns: the CUresult of a SOFTGPU_IMAGE_E_* condition. */
int softgpu_image_result(int condition);
