/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file in memory
 */

#include <stddef.h>
#include <stdint.h>

/* The largest image that a device loads, and so the largest file worth reading. */
#define FILE_SIZE_MAX (1u << 30)

/**
 * file_read() - read a file or a pipe to its end
 * @bytesp:	the contents, followed by a NUL; the caller frees them
 *
 * Return: 0 or -errno; -EFBIG for more than FILE_SIZE_MAX.
 */
int file_read(const char *path, uint8_t **bytesp, size_t *sizep);
