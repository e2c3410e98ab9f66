/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of matrices, and sums of their products
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix-numbers.h"

/* A float: bits of the exponent and of the mantissa, and whether it has infinities. */
static const struct {
	unsigned int bits, exponent, mantissa;
	bool has_infinity;
} formats[] = {
	[F16] = { 16, 5, 10, true },
	[BF16] = { 16, 8, 7, true },
	[TF32] = { 32, 8, 10, true },
	[E4M3] = { 8, 4, 3, false },
	[E5M2] = { 8, 5, 2, true },
	[F32] = { 32, 8, 23, true },
	[F64] = { 64, 11, 52, true },
	[S8] = { 8, 0, 0, false },
	[U8] = { 8, 0, 0, false },
	[S4] = { 4, 0, 0, false },
	[U4] = { 4, 0, 0, false },
	[S32] = { 32, 0, 0, false },
	[S32_SAT] = { 32, 0, 0, false },
	[B1_AND] = { 1, 0, 0, false },
	[B1_XOR] = { 1, 0, 0, false },
};

unsigned int number_bits(enum number type)
{
	return formats[type].bits;
}

static uint64_t random_bits(unsigned int bits)
{
	uint64_t x = 0;

	for (int i = 0; i < 5; i++)
		x = x << 15 ^ (uint64_t)(rand() >> 4);
	return bits ? x & (UINT64_MAX >> (64 - bits)) : 0;
}

/* Where the mantissa begins: below there is only the rest of tf32. */
static unsigned int below(enum number type)
{
	return formats[type].bits - 1 - formats[type].exponent - formats[type].mantissa;
}

uint64_t number_random(enum number type, unsigned int edges)
{
	unsigned int bits = formats[type].bits, e = formats[type].exponent;
	unsigned int m = formats[type].mantissa, low = below(type);
	uint64_t ones = (UINT64_C(1) << e) - 1, sign = random_bits(1) << (bits - 1);
	uint64_t bias = ones >> 1, exponent, mantissa = random_bits(m + low);

	if (!e)
		return edges && random_bits(5) < edges && bits > 1
			       ? random_bits(2) - 1 + (UINT64_C(1) << (bits - 1))
			       : random_bits(bits);
	exponent = bias - 3 + random_bits(3) % 7;
	if (random_bits(5) >= edges)
		return sign | exponent << (m + low) | mantissa;
	switch (random_bits(3)) {
	case 0:
		return sign;
	case 1: /* subnormal */
		return sign | mantissa;
	case 2: /* infinite, where there are infinities */
		return sign | ones << (m + low);
	case 3:
		return sign | ones << (m + low) | mantissa;
	case 4: /* the largest */
		return sign | (ones - 1) << (m + low) | ((UINT64_C(1) << (m + low)) - 1);
	default:
		return random_bits(bits);
	}
}

double number_value(enum number type, uint64_t bits)
{
	unsigned int e = formats[type].exponent, m = formats[type].mantissa;
	uint64_t ones = (UINT64_C(1) << e) - 1, mantissa, exponent;
	int bias = (int)(ones >> 1);
	double r;

	if (type == F64) {
		memcpy(&r, &bits, sizeof(r));
		return r;
	}
	mantissa = bits >> below(type) & ((UINT64_C(1) << m) - 1);
	exponent = bits >> (below(type) + m) & ones;
	if (exponent == ones && formats[type].has_infinity)
		r = mantissa ? (double)NAN : (double)INFINITY;
	else if (exponent == ones && mantissa == 7)
		r = (double)NAN;
	else if (exponent)
		r = ldexp((double)(mantissa | UINT64_C(1) << m),
			(int)exponent - bias - (int)m);
	else
		r = ldexp((double)mantissa, 1 - bias - (int)m);
	return bits >> (formats[type].bits - 1) ? -r : r;
}

static int64_t integer_value(enum number type, uint64_t bits)
{
	switch (type) {
	case S8:
		return (int8_t)bits;
	case S4:
		return (int64_t)(bits & 7) - (int64_t)(bits & 8);
	case S32:
		return (int32_t)bits;
	default:
		return (int64_t)bits;
	}
}

struct sum sum_begin(enum number type, uint64_t bits)
{
	if (type == S32)
		return (struct sum){ .is_integer = true,
			.integer = integer_value(type, bits) };
	return (struct sum){ .is_fused = type == F64, .real = number_value(type, bits) };
}

void sum_add(
	struct sum *sum, enum number type_a, uint64_t a, enum number type_b, uint64_t b)
{
	double x, y;

	if (type_a == B1_AND) {
		sum->integer += (int64_t)(a & b);
	} else if (type_a == B1_XOR) {
		sum->integer += (int64_t)(a ^ b);
	} else if (sum->is_integer) {
		sum->integer += integer_value(type_a, a) * integer_value(type_b, b);
	} else {
		x = number_value(type_a, a);
		y = number_value(type_b, b);
		/* Otherwise the product is exact. */
		sum->real = sum->is_fused ? fma(x, y, sum->real) : sum->real + x * y;
	}
}

static uint64_t half_bits(double x)
{
	uint64_t sign = signbit(x) ? 0x8000 : 0;
	int e = -14;
	double q;

	if (isnan(x))
		return 0x7fff;
	if (x != 0 && isfinite(x) && ilogb(x) > e)
		e = ilogb(x);
	q = nearbyint(ldexp(fabs(x), 10 - e));
	if (ldexp(q, e - 10) >= 65520.0)
		return sign | 0x7c00;
	if (q < 1024)
		return sign | (uint64_t)q;
	/* a carry goes into the exponent */
	return sign | (((uint64_t)(e + 14) << 10) + (uint64_t)q);
}

uint64_t sum_end(const struct sum *sum, enum number type)
{
	float single = (float)sum->real;
	uint32_t bits;

	switch (type) {
	case F16:
		return half_bits(sum->real);
	case F32:
		memcpy(&bits, &single, sizeof(bits));
		return isnan(single) ? 0x7fffffff : bits;
	case F64:
		return isnan(sum->real) ? UINT64_C(0x7fffffffffffffff)
					: ((union {
						  double real;
						  uint64_t bits;
					  }){ .real = sum->real })
						  .bits;
	case S32_SAT:
		return (uint32_t)(sum->integer > INT32_MAX   ? INT32_MAX
				  : sum->integer < INT32_MIN ? INT32_MIN
							     : sum->integer);
	default:
		return (uint32_t)sum->integer;
	}
}
