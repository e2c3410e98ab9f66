/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct allocation_counts {
	uint64_t n_malloc;
	uint64_t n_calloc;
	uint64_t n_realloc;
	uint64_t n_mmap;
};
