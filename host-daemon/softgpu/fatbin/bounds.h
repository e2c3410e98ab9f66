/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether an entry is within its container
 *
 * A separate file because the build option planted_bug replaces it by a faulty one, which
 * the fuzzer has to find.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns: whether header and payload fit the bytes that are left. */
bool fatbin_entry_fits(size_t left, uint32_t header_size, uint64_t payload_size);
