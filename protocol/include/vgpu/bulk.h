/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bulk: copies of large pieces of memory
 *
 * The C library chooses string instructions for sizes from some KiB up to about its
 * second-level cache. Some processors execute those at a fifteenth of their speed where
 * the destination is not aligned to a cache line and the source is, as with memory
 * of malloc() and a page of shared memory. Ordinary loads and stores, aligned at
 * the destination, have the speed of the best case everywhere.
 */

#ifdef __x86_64__
#include <emmintrin.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Below, the C library is as fast. */
#define VGPU_BULK_MIN 2048u
#define VGPU_BULK_LINE 64u

/* As large as a register, and stored with one instruction. */
typedef uint64_t vgpu_bulk_piece __attribute__((vector_size(16), may_alias));

static inline __attribute__((always_inline)) vgpu_bulk_piece vgpu_bulk_load(
	const char *from)
{
	vgpu_bulk_piece piece;

	memcpy(&piece, from, sizeof(piece));
	return piece;
}

/* Two instructions; each caller knows which. Other architectures have one: there, a
 * processor that sees whole lines written does without reading them. */
static inline __attribute__((always_inline)) void vgpu_bulk_store(
	char *to, vgpu_bulk_piece piece, bool past_caches)
{
#ifdef __x86_64__
	if (past_caches) {
		_mm_stream_si128((__m128i *)to, (__m128i)piece);
		return;
	}
#endif
	*(vgpu_bulk_piece *)to = piece;
}

static inline void vgpu_bulk_fence(void)
{
#ifdef __x86_64__
	/* Only a store fence orders non-temporal stores. */
	_mm_sfence();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

static inline __attribute__((always_inline)) void vgpu_bulk_copy_lines(
	void *to, const void *from, size_t size, bool past_caches)
{
	size_t head = -(uintptr_t)to % VGPU_BULK_LINE;
	const char *next = (const char *)from + head;
	char *line = (char *)to + head;

	memcpy(to, from, head);
	size -= head;
	for (; size >= VGPU_BULK_LINE; size -= VGPU_BULK_LINE) {
		vgpu_bulk_piece a = vgpu_bulk_load(next);
		vgpu_bulk_piece b = vgpu_bulk_load(next + 16);
		vgpu_bulk_piece c = vgpu_bulk_load(next + 32);
		vgpu_bulk_piece d = vgpu_bulk_load(next + 48);

		vgpu_bulk_store(line, a, past_caches);
		vgpu_bulk_store(line + 16, b, past_caches);
		vgpu_bulk_store(line + 32, c, past_caches);
		vgpu_bulk_store(line + 48, d, past_caches);
		next += VGPU_BULK_LINE;
		line += VGPU_BULK_LINE;
	}
	memcpy(line, next, size);
}

/* Copies between ranges that do not overlap. */
static inline void vgpu_bulk_copy(void *to, const void *from, size_t size)
{
	if (size < VGPU_BULK_MIN)
		memcpy(to, from, size);
	else
		vgpu_bulk_copy_lines(to, from, size, false);
}

/*
 * Like vgpu_bulk_copy(), with non-temporal stores, for more bytes than the caches hold:
 * the destination is not read before it is written. Ends with a fence: all processors see
 * the bytes before anything that is stored later.
 */
static inline void vgpu_bulk_copy_past_caches(void *to, const void *from, size_t size)
{
	if (size < VGPU_BULK_MIN) {
		memcpy(to, from, size);
		return;
	}
	vgpu_bulk_copy_lines(to, from, size, true);
	vgpu_bulk_fence();
}
