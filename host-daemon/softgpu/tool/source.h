/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Source: a file and the images in it
 *
 * PTX, a fat binary and a cubin are one image; a program, a library or an object file has
 * a section with fat binaries, one after the other. The file is read into memory: nobody
 * changes it meanwhile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source {
	uint8_t *bytes; /* followed by a NUL */
	size_t size;
	uint32_t section; /* of an ELF file: where the walk is */
	uint64_t off;	  /* in that section */
	bool is_at_end;
};

struct source_image {
	char where[96]; /* "" for a file that is one image; else section and offset */
	const uint8_t *bytes;
	size_t size;
};

/* Returns: 0 or -errno, see file_read(). */
int source_init(struct source *source, const char *path);
void source_deinit(struct source *source);

/* Returns: whether there was another image. */
bool source_next(struct source *source, struct source_image *image);
