/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Does an entry lie within its container?
 *
 * A file of its own because the build option planted_bug swaps it for one that is
 * wrong: that is how we know that the fuzzer would find such an error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns: whether header and payload fit the bytes that are left. */
bool fatbin_entry_fits(size_t left, uint32_t header_size, uint64_t payload_size);
