/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image check: whether a guest's image stays within its own bytes
 *
 * A driver receives a bare pointer and follows lengths and offsets in the image, or even
 * pointers if it begins like the wrapper of a fat binary. So before a driver sees it,
 * every offset has to point into the copy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * image_is_contained() - check the outline of an image
 * @bytes:	a private copy
 * @size:	its bytes, followed by at least one NUL
 *
 * Return: true for text, and for a container or an ELF file whose tables and parts are
 * within the bytes. No other format can be loaded. */
bool image_is_contained(const uint8_t *bytes, size_t size);

/*
 * Whether code in a checked image may print or assert: it contains the names of the
 * functions called, also in compressed code; true as well if that is unknown.
 */
bool image_may_print(const uint8_t *bytes, size_t size);

/*
 * The same for an archive of files.
 *
 * Return: true if the bytes are an archive, and each of its files stays within its bytes.
 */
bool image_archive_is_contained(const uint8_t *bytes, size_t size);
