/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checked arithmetic
 *
 * Numbers that another process wrote are added, multiplied and compared with
 * bounds only through these. Each returns false where the result does not exist.
 */

#include <stdbool.h>
#include <stdint.h>

static inline bool vgpu_add_u64(uint64_t a, uint64_t b, uint64_t *sump)
{
	return !__builtin_add_overflow(a, b, sump);
}

static inline bool vgpu_mul_u64(uint64_t a, uint64_t b, uint64_t *productp)
{
	return !__builtin_mul_overflow(a, b, productp);
}

/* Returns: whether [start, start + size) is within [base, base + limit). */
static inline bool vgpu_range_within(
	uint64_t start, uint64_t size, uint64_t base, uint64_t limit)
{
	return start >= base && start - base <= limit && size <= limit - (start - base);
}

/* Rounds up to a power of two; false where that overflows. */
static inline bool vgpu_align_u64(uint64_t value, uint64_t alignment, uint64_t *alignedp)
{
	if (__builtin_add_overflow(value, alignment - 1, alignedp))
		return false;
	*alignedp &= ~(alignment - 1);
	return true;
}
