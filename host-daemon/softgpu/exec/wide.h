/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Words of 128 bits in memory shared with other threads of the process
 *
 * Compilers implement C11 atomics of this size by a library call, and their builtins only
 * with options; all x86-64 processors that softgpu runs on have the instruction. These
 * operations are atomic with respect to each other; a pair of 64-bit accesses to the same
 * word is not, which PTX does not require.
 */

#include <stdint.h>
#include <string.h>

typedef unsigned __int128 wide_t;

/* Returns: what was there; it is replaced where it is @expected. */
static inline wide_t wide_swap(wide_t *p, wide_t expected, wide_t desired)
{
#ifdef __x86_64__
	uint64_t low = (uint64_t)expected, high = (uint64_t)(expected >> 64);

	__asm__ volatile("lock cmpxchg16b %0"
			 : "+m"(*p), "+a"(low), "+d"(high)
			 : "b"((uint64_t)desired), "c"((uint64_t)(desired >> 64))
			 : "cc", "memory");
	return (wide_t)high << 64 | low;
#else
	return __sync_val_compare_and_swap(p, expected, desired);
#endif
}

static inline wide_t wide_exchange(wide_t *p, wide_t desired)
{
	wide_t seen = 0, old;

	while ((old = wide_swap(p, seen, desired)) != seen)
		seen = old;
	return old;
}

/* Processors with AVX load and store 16 aligned bytes at once: "Guaranteed Atomic
 * Operations" in volume 3 of Intel's manual, "Access Atomicity" in volume 2 of AMD's. */
static inline wide_t wide_load(wide_t *p)
{
#ifdef __AVX__
	typedef uint64_t pair_t __attribute__((vector_size(16)));
	pair_t x;

	__asm__ volatile("vmovdqa %1, %0" : "=x"(x) : "m"(*p) : "memory");
	return (wide_t)x[1] << 64 | x[0];
#else
	return wide_swap(p, 0, 0);
#endif
}

static inline void wide_store(wide_t *p, wide_t desired)
{
#ifdef __AVX__
	typedef uint64_t pair_t __attribute__((vector_size(16)));
	pair_t x = { (uint64_t)desired, (uint64_t)(desired >> 64) };

	__asm__ volatile("vmovdqa %1, %0" : "=m"(*p) : "x"(x) : "memory");
#else
	wide_exchange(p, desired);
#endif
}

/* In private memory. */
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
