/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Segments of pools: memory that is mapped for them, or pieces of the arena, and which
 * devices may access it
 *
 * Every device reaches the arena: what a program sets for a pool on the host is only
 * noted.
 */

#include <stdint.h>

#include "entry/pool.h"

/* A segment of a pool that is shared with other processes. */
struct shim_pool_segment {
	struct shim_pool_segment *next;
	uint64_t base;
	uint64_t size;
	uint8_t token[SHIM_TOKEN_SIZE];
};

/* Returns: the one with an address or with a token, or NULL. Under the pool's lock. */
struct shim_pool_segment *shim_pool_find_segment(
	const struct shim_pool *pool, uint64_t address);
struct shim_pool_segment *shim_pool_find_token(
	const struct shim_pool *pool, const uint8_t token[SHIM_TOKEN_SIZE]);

/* Adds memory of another process, unless it is there already. */
CUresult shim_pool_map(struct shim_pool *pool, CUmemGenericAllocationHandle memory,
	uint64_t size, const uint8_t token[SHIM_TOKEN_SIZE]);

/* Adds a segment that a block fits in; if memory is short, one that it fills. */
CUresult shim_pool_grow(struct shim_pool *pool, uint64_t size);

/* Gives segments back that are not used, as long as the pool keeps so many bytes. */
void shim_pool_trim(struct shim_pool *pool, uint64_t keep);

/* @location: that accesses it; the host only its own pools, which it always may */
CUresult shim_pool_set_access(
	struct shim_pool *pool, int location, CUmemAccess_flags flags);
CUresult shim_pool_get_access(
	struct shim_pool *pool, int location, CUmemAccess_flags *flagsp);
