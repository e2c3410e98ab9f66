/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Backing: the file that memory of the program is mapped from
 *
 * Identifies the bytes of an image across processes without reading them: by the file,
 * the offset in it, and the time of its last change.
 */

#include <stdbool.h>
#include <stdint.h>

struct shim_backing {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t modified_s, modified_ns;
	uint64_t changed_s, changed_ns;
	uint64_t offset; /* of the first byte */
};

struct stat;

/* Of the first byte of a file. */
void shim_backing_of(const struct stat *info, struct shim_backing *backing);

/*
 * Finds the file.
 *
 * Return: true if all the bytes are unmodified bytes of one file: a private read-only
 * mapping without a page that was copied on write. False if in doubt.
 */
bool shim_backing_find(const void *data, uint64_t size, struct shim_backing *backing);

/*
 * Whether a file has been left alone for so long that a change would show: two within
 * one tick of the file system's clock have the same time.
 */
bool shim_backing_is_settled(const struct shim_backing *backing);
