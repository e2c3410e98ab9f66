/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bits: which bytes of memory nothing has written, one bit each
 *
 * Each byte of bits is atomic: kernels write memory at the same time.
 */

#include "exec/engine.h"

static inline void softgpu_bits_set_part(uint8_t *byte, uint8_t mask, bool value)
{
	if (value)
		__atomic_fetch_or(byte, mask, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(byte, (uint8_t)~mask, __ATOMIC_RELAXED);
}

/* @first and @n in bytes of the window. */
static inline void softgpu_bits_set(uint8_t *bits, uint64_t first, uint64_t n, bool value)
{
	uint64_t end = first + n, at = first / 8, last = end / 8;
	uint8_t head = (uint8_t)(0xffu << first % 8);
	uint8_t tail = (uint8_t) ~(0xffu << end % 8), all = value ? 0xff : 0;

	if (!n)
		return;
	if (at == last) {
		softgpu_bits_set_part(&bits[at], head & tail, value);
		return;
	}
	softgpu_bits_set_part(&bits[at++], head, value);
	for (; at < last && at % sizeof(uint64_t); at++)
		__atomic_store_n(&bits[at], all, __ATOMIC_RELAXED);
	for (; at + sizeof(uint64_t) <= last; at += sizeof(uint64_t))
		__atomic_store_n((uint64_t *)(void *)&bits[at], value ? UINT64_MAX : 0,
			__ATOMIC_RELAXED);
	for (; at < last; at++)
		__atomic_store_n(&bits[at], all, __ATOMIC_RELAXED);
	if (tail)
		softgpu_bits_set_part(&bits[last], tail, value);
}

static inline bool softgpu_bits_any(const uint8_t *bits, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++)
		if (__atomic_load_n(&bits[i / 8], __ATOMIC_RELAXED) & 1u << i % 8)
			return true;
	return false;
}

/* Something writes memory: a kernel, or anything else. For any addresses. */
static inline void softgpu_space_wrote(
	const struct softgpu_space *space, uint64_t address, uint64_t size)
{
	for (uint32_t i = 0; i < space->n_windows; i++) {
		const struct softgpu_window *window = &space->windows[i];
		uint64_t off = address - window->base, n = size;

		if (!window->unwritten || off >= window->size)
			continue;
		if (n > window->size - off)
			n = window->size - off;
		softgpu_bits_set(window->unwritten, off, n, false);
	}
}
