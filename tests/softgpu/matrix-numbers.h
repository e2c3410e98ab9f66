/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers of matrices, and sums of their products, for the tests
 */

#include <stdbool.h>
#include <stdint.h>

enum number {
	F16,
	BF16,
	TF32,
	E4M3,
	E5M2,
	F32,
	F64,
	S8,
	U8,
	S4,
	U4,
	S32,
	S32_SAT, /* of sums: limited */
	B1_AND,
	B1_XOR,
};

unsigned int number_bits(enum number type);

/*
 * Returns: the bits of some number, mostly of moderate size; of 32 numbers, @edges are
 * any bits or infinite, NaN, zero or subnormal.
 */
uint64_t number_random(enum number type, unsigned int edges);

/* Returns: a real number's value. */
double number_value(enum number type, uint64_t bits);

/* A sum as PTX or softgpu's documentation defines it. */
struct sum {
	bool is_integer, is_fused;
	int64_t integer;
	double real;
};

struct sum sum_begin(enum number type, uint64_t bits);
void sum_add(
	struct sum *sum, enum number type_a, uint64_t a, enum number type_b, uint64_t b);

/* Returns: the bits of the result, of type @type. */
uint64_t sum_end(const struct sum *sum, enum number type);
