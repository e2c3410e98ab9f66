/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image table: does a table in an image keep to the image's bytes?
 *
 * A file of its own because a fuzz target is built with one that is wrong.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns: whether n entries of that size, from start on, are within size bytes. */
bool image_table_is_contained(uint64_t start, uint64_t n, uint64_t entry, size_t size);
