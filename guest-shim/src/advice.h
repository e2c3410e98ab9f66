/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Advice: what the program said of its managed memory, by page
 *
 * Managed memory lies in the arena, where host and device reach it alike and from where
 * it does not move, so advice changes nothing but what is told when it is asked for.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* What is known of a page; where nothing was said, both locations are invalid. */
struct shim_advice {
	bool is_read_mostly;
	CUmemLocation preferred;
	CUmemLocation prefetched;
	bool is_accessed_by_host;
	uint64_t accessed_by; /* bit n: device n */
};

/* Changes the advice of one page. */
typedef void (*shim_advice_fn)(struct shim_advice *advice, const void *argument);

/* Changes that of all pages with a byte in the range. Return: false without memory. */
bool shim_advice_change(
	uint64_t address, uint64_t size, shim_advice_fn change, const void *argument);

/* Calls for each stretch of pages in the range of which the same is known. */
typedef void (*shim_advice_seen_fn)(const struct shim_advice *advice, void *data);
void shim_advice_look(
	uint64_t address, uint64_t size, shim_advice_seen_fn seen, void *data);

/* Forgets what was said: the memory goes. */
void shim_advice_forget(uint64_t address, uint64_t size);
