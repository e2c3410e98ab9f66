/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image table: whether a table in an image stays within the image's bytes
 *
 * A separate file because a fuzz target is built with a faulty one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether n entries of size `entry` at offset `start` are within `size` bytes. */
bool image_table_is_contained(uint64_t start, uint64_t n, uint64_t entry, size_t size);
