/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One operation a row, against a reference in C
 *
 * A row names the PTX text of an operation on %a, %b, %c with the result in %d, their
 * types, and an expression over a, b, c that says what the result is. Each row runs
 * over edge values and random ones, once with all lanes and once under a guard that is
 * true for every third lane, where the others must keep what they had.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

enum row_type { ROW_u16, ROW_s16, ROW_u32, ROW_s32, ROW_u64, ROW_s64, ROW_f32, ROW_f64 };

struct row {
	const char *name;
	const char *text;
	enum row_type d, a, b, c;
	double tolerance; /* relative; 0: the same bits, or NaN both */
	u64 (*reference)(u64 a, u64 b, u64 c);
};

/* X(name, text, types of d, a, b and c, expression) */
#define ROW_REFERENCE(_name, _text, _D, _A, _B, _C, _expr)                               \
	static u64 reference_##_name(u64 bits_a, u64 bits_b, u64 bits_c)                 \
	{                                                                                \
		u64 r = 0;                                                               \
		_A a;                                                                    \
		_B b;                                                                    \
		_C c;                                                                    \
		_D d;                                                                    \
                                                                                         \
		memcpy(&a, &bits_a, sizeof(a));                                          \
		memcpy(&b, &bits_b, sizeof(b));                                          \
		memcpy(&c, &bits_c, sizeof(c));                                          \
		(void)a, (void)b, (void)c;                                               \
		d = (_D)(_expr);                                                         \
		memcpy(&r, &d, sizeof(d));                                               \
		return r;                                                                \
	}

#define ROW_ENTRY(_name, _text, _D, _A, _B, _C, _expr)                                   \
	{ #_name, _text, ROW_##_D, ROW_##_A, ROW_##_B, ROW_##_C, ROW_TOLERANCE,          \
		reference_##_name },

/* Runs all rows and ends the test at the first result that is not the reference's. */
void rows_run(const struct row *rows, unsigned int n);
