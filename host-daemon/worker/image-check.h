/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image check: does a guest's image keep to its own bytes?
 *
 * A driver is given a bare pointer and follows lengths and offsets that stand in the
 * image, or even pointers if it begins like the wrapper of a fat binary. So before a
 * driver sees it, everything that leads somewhere has to lead into the copy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * image_is_contained() - check the outline of an image
 * @bytes:	a private copy
 * @size:	its bytes; at least one NUL stands behind them
 *
 * Return: true for text, and for a container or an ELF file whose tables and parts lie
 * within the bytes. Everything else is none of the formats that are loaded.
 */
bool image_is_contained(const uint8_t *bytes, size_t size);

/*
 * Whether code in an image that is contained may print or assert: it names what those
 * calls come down to, also where it is compressed; true as well if nobody can tell.
 */
bool image_may_print(const uint8_t *bytes, size_t size);

/*
 * The same for an archive of files.
 *
 * Return: true where the bytes are one and each of its files keeps to its own.
 */
bool image_archive_is_contained(const uint8_t *bytes, size_t size);
