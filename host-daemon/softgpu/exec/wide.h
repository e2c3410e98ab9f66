/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Words of 128 bits in memory that other threads of the process use
 *
 * The compiler's __sync functions, since those of C11 are calls of a library here. They
 * are atomic with respect to each other; a pair of 64-bit accesses to the same place is
 * not, which PTX does not ask for.
 */

#include <stdint.h>
#include <string.h>

typedef unsigned __int128 wide_t;

/* Returns: what was there; it is replaced where it is @expected. */
static inline wide_t wide_swap(wide_t *p, wide_t expected, wide_t desired)
{
	return __sync_val_compare_and_swap(p, expected, desired);
}

static inline wide_t wide_exchange(wide_t *p, wide_t desired)
{
	wide_t seen = 0, old;

	while ((old = wide_swap(p, seen, desired)) != seen)
		seen = old;
	return old;
}

/* In memory that is nobody else's. */
static inline wide_t wide_read(const wide_t *p)
{
	wide_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

static inline void wide_write(wide_t *p, wide_t x)
{
	memcpy(p, &x, sizeof(x));
}
