/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs of random calls from a generator of numbers: each state has one
 */

#include <stddef.h>
#include <stdint.h>

/* A xorshift followed by a multiplication. */
static inline uint8_t random_byte(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x ^= x >> 29;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x >> 56;
}

static inline void random_program(uint8_t *program, size_t size, uint64_t *state)
{
	for (size_t i = 0; i < size; i++)
		program[i] = random_byte(state);
}
