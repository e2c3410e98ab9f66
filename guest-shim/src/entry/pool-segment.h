/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Segments of pools: device memory that is mapped for them, and which devices may access
 * it
 */

#include <stdint.h>

#include "entry/pool.h"

/* Adds a segment that a block fits in; if memory is short, one that it fills. */
CUresult shim_pool_grow(struct shim_pool *pool, uint64_t size);

/* Gives segments back that are not used, as long as the pool keeps so many bytes. */
void shim_pool_trim(struct shim_pool *pool, uint64_t keep);

CUresult shim_pool_set_access(
	struct shim_pool *pool, CUdevice device, CUmemAccess_flags flags);
CUmemAccess_flags shim_pool_get_access(struct shim_pool *pool, CUdevice device);
