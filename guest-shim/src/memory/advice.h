/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Advice: cuMemAdvise settings of managed memory, by page
 *
 * Managed memory is in the arena, which host and device access in the same way and from
 * which it never migrates, so advice has no effect but on the answers of
 * cuMemRangeGetAttribute.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* The advice of a page; without any, both locations are invalid. */
struct shim_advice {
	bool is_read_mostly;
	CUmemLocation preferred;
	CUmemLocation prefetched;
	bool is_accessed_by_host;
	uint64_t accessed_by; /* bit n: device n */
};

/* Changes the advice of one page. */
typedef void (*shim_advice_fn)(struct shim_advice *advice, const void *argument);

/* Changes the advice of all pages with a byte in the range. Return: false without
 * memory. */
bool shim_advice_change(
	uint64_t address, uint64_t size, shim_advice_fn change, const void *argument);

/* Calls `fn` for each run of pages in the range with the same advice. */
typedef void (*shim_advice_seen_fn)(const struct shim_advice *advice, void *data);
void shim_advice_look(
	uint64_t address, uint64_t size, shim_advice_seen_fn seen, void *data);

/* Removes the advice of memory that is freed. */
void shim_advice_forget(uint64_t address, uint64_t size);
