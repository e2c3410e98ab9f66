/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Approximate instructions: within the errors that the PTX ISA (9.0) states
 *
 * Each row has an instruction, the exact function in long double, and the greatest error
 * with its section of the ISA. Floats of 16 bits are tried with all their values, others
 * with values from every exponent; results that are no finite numbers, and the signs of
 * zeros, have to be those of the exact function.
 */

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define N 65536u
#define BLOCK 256u

typedef long double real;

enum format { F32, F16, BF16 };

/* Bits of the mantissa, and the least exponent of a number that is not subnormal. */
static const struct {
	unsigned int bits, mantissa;
	int low;
} formats[] = { { 32, 23, -126 }, { 16, 10, -14 }, { 16, 7, -126 } };

enum measure {
	RELATIVE, /* 2^-amount of the exact result */
	ABSOLUTE, /* 2^-amount */
	ULPS,	  /* amount of the last places of the exact result */
	/* lg2: absolute between 1/2 and 2, otherwise relative */
	LOGARITHM,
	/* sin, cos: 2^-20.5 up to 2 pi, 2^-14.7 up to 100 pi, beyond that no error stated
	 */
	ANGLE,
};

struct row {
	const char *text;
	enum format format;
	enum measure measure;
	double amount;
	real (*exact)(real a, real b);
	const char *section;
};

static real exact_rcp(real a, real b)
{
	return 1 / a;
}

static real exact_sqrt(real a, real b)
{
	return sqrtl(a);
}

/* Of -0 it is -infinity. */
static real exact_rsqrt(real a, real b)
{
	return 1 / sqrtl(a);
}

static real exact_ex2(real a, real b)
{
	return exp2l(a);
}

static real exact_lg2(real a, real b)
{
	return log2l(a);
}

static real exact_sin(real a, real b)
{
	return sinl(a);
}

static real exact_cos(real a, real b)
{
	return cosl(a);
}

static real exact_tanh(real a, real b)
{
	return tanhl(a);
}

static real exact_div(real a, real b)
{
	return a / b;
}

/* A divisor above 2^126 counts as infinite. */
static real exact_div_approx(real a, real b)
{
	return a / (fabsl(b) > 0x1p126L && !isnan(b) ? copysignl(INFINITY, b) : b);
}

/* clang-format off */
static const struct row rows[] = {
	{ "rcp.approx.f32 %d, %a;", F32, ULPS, 1, exact_rcp, "9.7.3.13" },
	{ "rcp.approx.ftz.f32 %d, %a;", F32, ULPS, 1, exact_rcp, "9.7.3.13" },
	{ "sqrt.approx.f32 %d, %a;", F32, RELATIVE, 23, exact_sqrt, "9.7.3.15" },
	{ "sqrt.approx.ftz.f32 %d, %a;", F32, RELATIVE, 23, exact_sqrt, "9.7.3.15" },
	{ "rsqrt.approx.f32 %d, %a;", F32, RELATIVE, 22.9, exact_rsqrt, "9.7.3.16" },
	{ "rsqrt.approx.ftz.f32 %d, %a;", F32, RELATIVE, 22.9, exact_rsqrt, "9.7.3.16" },
	{ "sin.approx.f32 %d, %a;", F32, ANGLE, 0, exact_sin, "9.7.3.18" },
	{ "sin.approx.ftz.f32 %d, %a;", F32, ANGLE, 0, exact_sin, "9.7.3.18" },
	{ "cos.approx.f32 %d, %a;", F32, ANGLE, 0, exact_cos, "9.7.3.19" },
	{ "cos.approx.ftz.f32 %d, %a;", F32, ANGLE, 0, exact_cos, "9.7.3.19" },
	{ "lg2.approx.f32 %d, %a;", F32, LOGARITHM, 22, exact_lg2, "9.7.3.20" },
	{ "lg2.approx.ftz.f32 %d, %a;", F32, LOGARITHM, 22, exact_lg2, "9.7.3.20" },
	/* 2 from the correctly rounded result, which is half of one from the exact */
	{ "ex2.approx.f32 %d, %a;", F32, ULPS, 2.5, exact_ex2, "9.7.3.21" },
	{ "ex2.approx.ftz.f32 %d, %a;", F32, ULPS, 2.5, exact_ex2, "9.7.3.21" },
	{ "tanh.approx.f32 %d, %a;", F32, RELATIVE, 11, exact_tanh, "9.7.3.22" },
	{ "div.full.f32 %d, %a, %b;", F32, ULPS, 2, exact_div, "9.7.3.8" },
	{ "div.full.ftz.f32 %d, %a, %b;", F32, ULPS, 2, exact_div, "9.7.3.8" },
	{ "div.approx.f32 %d, %a, %b;", F32, ULPS, 2, exact_div_approx, "9.7.3.8" },
	{ "div.approx.ftz.f32 %d, %a, %b;", F32, ULPS, 2, exact_div_approx, "9.7.3.8" },
	{ "tanh.approx.f16 %d, %a;", F16, ABSOLUTE, 10.987, exact_tanh, "9.7.4.9" },
	{ "tanh.approx.f16x2 %d, %a;", F16, ABSOLUTE, 10.987, exact_tanh, "9.7.4.9" },
	{ "tanh.approx.bf16 %d, %a;", BF16, ABSOLUTE, 8, exact_tanh, "9.7.4.9" },
	{ "tanh.approx.bf16x2 %d, %a;", BF16, ABSOLUTE, 8, exact_tanh, "9.7.4.9" },
	{ "ex2.approx.f16 %d, %a;", F16, RELATIVE, 9.9, exact_ex2, "9.7.4.10" },
	{ "ex2.approx.f16x2 %d, %a;", F16, RELATIVE, 9.9, exact_ex2, "9.7.4.10" },
	{ "ex2.approx.ftz.bf16 %d, %a;", BF16, RELATIVE, 7, exact_ex2, "9.7.4.10" },
	{ "ex2.approx.ftz.bf16x2 %d, %a;", BF16, RELATIVE, 7, exact_ex2, "9.7.4.10" },
};
/* clang-format on */

static bool is_pair(const struct row *row)
{
	return strstr(row->text, "x2 ");
}

static real decode(enum format format, uint32_t bits)
{
	const unsigned int m = formats[format].mantissa, n = formats[format].bits;
	const uint32_t sign = bits >> (n - 1) & 1, top = (1u << (n - 1 - m)) - 1;
	uint32_t exponent = bits >> m & top, part = bits & ((1u << m) - 1);
	real x;

	if (exponent == top)
		x = part ? NAN : INFINITY;
	else
		x = ldexpl((exponent ? 1u << m : 0) + part,
			(int)(exponent ? exponent : 1) - 1 + formats[format].low -
				(int)m);
	return sign ? -x : x;
}

static real flushed(const struct row *row, real x)
{
	if (strstr(row->text, ".ftz") && fabsl(x) < ldexpl(1, formats[row->format].low))
		return copysignl(0, x);
	return x;
}

/* The last place of a number in the format. */
static real last_place(enum format format, real x)
{
	int exponent = x == 0 ? formats[format].low : ilogbl(x);

	if (exponent < formats[format].low)
		exponent = formats[format].low;
	return ldexpl(1, exponent - (int)formats[format].mantissa);
}

static real error_allowed(const struct row *row, real a, real want)
{
	const real amount = exp2l(-row->amount), pi = 3.14159265358979323846L;

	switch (row->measure) {
	case ABSOLUTE:
		return amount;
	case ULPS:
		return row->amount * last_place(row->format, want);
	case LOGARITHM:
		return a > 0.5L && a < 2 ? amount : amount * fabsl(want);
	case ANGLE:
		if (fabsl(a) > 100 * pi)
			return 2;
		return fabsl(a) <= 2 * pi ? exp2l(-20.5L) : exp2l(-14.7L);
	default:
		/* Of a subnormal result it cannot be less than half of the last place. */
		return amount * fabsl(want) + (row->format == F32 ? 0 : 0x1p-25L);
	}
}

static bool is_right(const struct row *row, real a, real b, uint32_t bits)
{
	static const uint32_t nans[] = { 0x7fffffff, 0x7fff, 0x7fff };
	const real low = ldexpl(1, formats[row->format].low);
	/* An infinite result counts as this number, and so does what exceeds it. */
	const real high = ldexpl(1, row->format == F16 ? 16 : 128);
	real want, got = decode(row->format, bits), allowed;

	a = flushed(row, a);
	b = flushed(row, b);
	want = row->exact(a, b);
	if (isnan(want))
		return bits == nans[row->format];
	if (isinf(want))
		return got == want;
	if (isnan(got) || (signbit(got) != signbit(want) && row->measure != ABSOLUTE &&
				  row->measure != LOGARITHM && row->measure != ANGLE))
		return false;
	if (want == 0)
		return got == 0 && signbit(got) == signbit(want);
	if (row->measure == ANGLE && fabsl(got) > 1)
		return false;
	if (isinf(got))
		got = copysignl(high, got);
	if (fabsl(want) > high)
		want = copysignl(high, want);
	allowed = error_allowed(row, a, want);
	if (flushed(row, low / 2) == 0 && fabsl(want) < low + allowed && got == 0)
		return true;
	return fabsl(got - want) <= allowed;
}

static uint32_t next_random(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

/* Each exponent and sign with edges of the mantissa and others. */
static uint32_t stratified(uint32_t i)
{
	static const uint32_t edges[] = { 0, 1, 2, 0x7fffff, 0x7ffffe, 0x400000,
		0x3fffff };
	const uint32_t which = i / 512 % (N / 512);
	const uint32_t mantissa = which < sizeof(edges) / sizeof(*edges)
					  ? edges[which]
					  : next_random() & 0x7fffff;

	return (i % 512) << 23 | mantissa;
}

/* Quotients of numbers near each other, so that most results are finite. */
static uint32_t divisor_of(uint32_t a)
{
	uint32_t exponent = (a >> 23 & 255) + next_random() % 64 - 32;

	if (next_random() % 4 == 0)
		return next_random();
	return (next_random() & 0x807fffff) | (exponent & 255) << 23;
}

static void fill(const struct row *row, uint32_t *a, uint32_t *b)
{
	for (uint32_t i = 0; i < N; i++) {
		if (row->format == F32)
			a[i] = stratified(i);
		else
			a[i] = is_pair(row) ? i | (i * 40503u) << 16 : i;
		b[i] = divisor_of(a[i]);
	}
}

static struct rig *rig_of(const struct row *row)
{
	const char *type = row->format == F32 || is_pair(row) ? "b32" : "b16";
	char text[2048];

	snprintf(text, sizeof(text),
		".version 9.0\n.target sm_121\n.address_size 64\n"
		".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd) {\n"
		".reg .%s %%a, %%b, %%d; .reg .b32 %%r<4>; .reg .b64 %%rd<5>;\n"
		"ld.param.u64 %%rd1, [pa]; ld.param.u64 %%rd2, [pb];\n"
		"ld.param.u64 %%rd3, [pd]; mov.u32 %%r1, %%ctaid.x;\n"
		"mov.u32 %%r2, %%tid.x; mad.lo.u32 %%r1, %%r1, %u, %%r2;\n"
		"mul.wide.u32 %%rd4, %%r1, 4; add.u64 %%rd1, %%rd1, %%rd4;\n"
		"add.u64 %%rd2, %%rd2, %%rd4; add.u64 %%rd3, %%rd3, %%rd4;\n"
		"ld.global.%s %%a, [%%rd1]; ld.global.%s %%b, [%%rd2];\n"
		"%s\nst.global.%s [%%rd3], %%d; ret; }\n",
		type, BLOCK, type, type, row->text, type);
	return rig_new(text);
}

static void check_one(const struct row *row, uint32_t a, uint32_t b, uint32_t got)
{
	const real x = decode(row->format, a), y = decode(row->format, b);

	if (!is_right(row, x, y, got))
		test_fail(__FILE__, __LINE__,
			"%s of %x (%.9Lg), %x (%.9Lg) is %x (%.9Lg), exactly %.9Lg: "
			"PTX ISA %s permits less",
			row->text, a, x, b, y, got, decode(row->format, got),
			row->exact(flushed(row, x), flushed(row, y)), row->section);
}

static void run_row(const struct row *row)
{
	CLEAN_RIG rig = rig_of(row);
	uint32_t *arrays[3];

	for (unsigned int i = 0; i < 3; i++)
		arrays[i] = rig_alloc(rig, N * sizeof(uint32_t));
	fill(row, arrays[0], arrays[1]);
	rig_launch(rig, "k", N / BLOCK, BLOCK, arrays, sizeof(arrays));
	for (unsigned int i = 0; i < N; i++) {
		const uint32_t a = arrays[0][i], b = arrays[1][i], got = arrays[2][i];

		if (row->format == F32) {
			check_one(row, a, b, got);
			continue;
		}
		check_one(row, a & 0xffff, 0, got & 0xffff);
		if (is_pair(row))
			check_one(row, a >> 16, 0, got >> 16);
	}
}

TEST(approximate_instructions_are_as_exact_as_the_isa_demands)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		run_row(&rows[i]);
}
