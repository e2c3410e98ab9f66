/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image files: what a program has loaded by its path
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "backing.h"

struct shim_image_file {
	uint8_t *data; /* NULL: none */
	uint64_t size;
	/* Which file it is, if nobody changed it meanwhile. */
	struct shim_backing backing;
	bool is_known;
};

/* Reads a file whole, with zeros behind it: a text ends there, and a header that was cut
 * off is whole. */
CUresult shim_image_file_read(const char *path, struct shim_image_file *file);
void shim_image_file_deinit(struct shim_image_file *file);
