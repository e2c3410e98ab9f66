/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in memory
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vgpu/cleanup.h"

#include "tool/file.h"

#define READ_SIZE (1u << 20)

/* A pipe has no size: memory grows with what was read. */
static int read_all(FILE *file, uint8_t **bytesp, size_t *sizep)
{
	size_t capacity = 0, n;
	uint8_t *bytes;

	do {
		if (*sizep + READ_SIZE + 1 > capacity) {
			capacity = capacity ? capacity * 2 : 2 * READ_SIZE;
			bytes = realloc(*bytesp, capacity);
			if (!bytes)
				return -ENOMEM;
			*bytesp = bytes;
		}
		n = fread(*bytesp + *sizep, 1, READ_SIZE, file);
		*sizep += n;
		if (*sizep > FILE_SIZE_MAX)
			return -EFBIG;
	} while (n);
	(*bytesp)[*sizep] = 0;
	return ferror(file) ? -EIO : 0;
}

int file_read(const char *path, uint8_t **bytesp, size_t *sizep)
{
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = NULL;
	size_t size = 0;
	FILE *file;
	int r;

	file = fopen(path, "rbe");
	if (!file)
		return -errno;
	r = read_all(file, &bytes, &size);
	fclose(file);
	if (r)
		return r;
	*bytesp = bytes;
	*sizep = size;
	bytes = NULL;
	return 0;
}
