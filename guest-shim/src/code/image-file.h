/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image files: what a program has loaded by its path
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "memory/backing.h"

struct shim_image_file {
	uint8_t *data; /* NULL: none */
	uint64_t size;
	/* The identity of the file, if it did not change meanwhile. */
	struct shim_backing backing;
	bool is_known;
};

/* Reads a whole file and appends zeroes: a text is NUL-terminated, and a truncated header
 * can be read safely. */
CUresult shim_image_file_read(const char *path, struct shim_image_file *file);
void shim_image_file_deinit(struct shim_image_file *file);
