/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Huge file: a memory file in huge pages that the administrator has reserved
 *
 * An access for which the kernel has no page left is a SIGBUS, so pages are reserved for
 * the file. Such a file has no write(2), and is mapped at multiples of a page.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

/* An extent is the smallest part of a shared memory that is mapped or emptied. */
#define HUGE_FILE_PAGE_SIZE VGPU_EXTENT_SIZE

/* Return: a descriptor or -errno. The size is a multiple of a page; no page is reserved.
 */
int huge_file_make(const char *name, uint64_t size);

bool huge_file_is(int fd);

/* Return: 0; or -errno: there are not enough pages. Both numbers are multiples of a page.
 */
int huge_file_reserve(int fd, uint64_t offset, uint64_t size);

/*
 * Frees pages of the file, so that they read as zero, and reserves as many.
 *
 * Return: 0; or -errno: some are not freed, or not reserved.
 */
int huge_file_empty(int fd, uint64_t offset, uint64_t size);

/* As pwrite(2), within one page. Return: 0 or -errno. */
int huge_file_write(int fd, const void *data, size_t size, uint64_t offset);
