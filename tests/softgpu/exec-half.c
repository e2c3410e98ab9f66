/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floats of 16 bits: all values of one operand, against rounded doubles
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define N 65536u

struct format {
	const char *name;
	int exponent, mantissa;
};

static const struct format formats[] = { { "f16", 5, 10 }, { "bf16", 8, 7 } };

static double value(const struct format *f, uint16_t bits)
{
	int e = f->exponent, m = f->mantissa, bias = (1 << (e - 1)) - 1;
	int x = bits >> m & ((1 << e) - 1);
	double v = bits & ((1 << m) - 1), r;

	if (x == (1 << e) - 1)
		r = v != 0 ? NAN : INFINITY;
	else
		r = x ? ldexp(v + (1 << m), x - bias - m) : ldexp(v, 1 - bias - m);
	return bits & 0x8000 ? -r : r;
}

/* To nearest, ties to even; NaN is the canonical one. */
static uint16_t nearest(const struct format *f, double v)
{
	int e = f->exponent, m = f->mantissa, bias = (1 << (e - 1)) - 1, x;
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	double q;

	if (isnan(v))
		return 0x7fff;
	if (v == 0 || isinf(v))
		return (uint16_t)(sign | (v == 0 ? 0 : ((1 << e) - 1) << m));
	v = fabs(v);
	(void)frexp(v, &x);
	x = x - 1 < 1 - bias ? 1 - bias : x - 1;
	q = nearbyint(ldexp(v, m - x));
	/* A carry propagates into the exponent. */
	if (x + (q >= 1 << (m + 1)) > bias)
		return (uint16_t)(sign | ((1 << e) - 1) << m);
	return (uint16_t)(sign | (uint16_t)(((x + bias - 1) << m) + (int)q));
}

/* Runs @text for %a = 0 to 65535 with %b fixed; results of 32 bits. */
static void run(const char *text, const char *type, uint16_t b, uint32_t *results)
{
	static char ptx[4096];
	CLEAN_RIG rig = NULL;
	struct {
		void *out;
		uint32_t b;
	} params = { NULL, b };
	char body[1024] = "";

	/* $ is replaced by the type. */
	for (const char *at = text; *at; at++) {
		if (*at == '$')
			strcat(body, type);
		else
			strncat(body, at, 1);
	}
	snprintf(ptx, sizeof(ptx),
		HEADER
		".visible .entry k(.param .u64 p, .param .u32 q) {\n"
		".reg .b16 %%a, %%b, %%d, %%z; .reg .b32 %%r<9>, %%pa, %%pb, %%w;\n"
		".reg .f32 %%f; .reg .b64 %%rd<9>; .reg .pred %%p, %%q;\n"
		"ld.param.u64 %%rd1, [p]; ld.param.u32 %%r5, [q];\n"
		"cvt.u16.u32 %%b, %%r5;\n"
		"mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x;\n"
		"mad.lo.u32 %%r1, %%r2, 256, %%r1; cvt.u16.u32 %%a, %%r1;\n"
		"mul.wide.u32 %%rd2, %%r1, 4; add.u64 %%rd1, %%rd1, %%rd2;\n"
		"mov.b16 %%d, 0; mov.b16 %%z, 0;\n"
		"mov.b32 %%pa, {%%a, %%b}; mov.b32 %%pb, {%%b, %%a};\n"
		"mov.b32 %%w, {%%d, %%z}; %s\n st.global.u32 [%%rd1], %%w; ret; }\n",
		body);
	rig = rig_new(ptx);
	params.out = rig_alloc(rig, N * 4);
	rig_launch(rig, "k", N / 256, 256, &params, sizeof(params));
	memcpy(results, params.out, N * 4);
}

static bool is_subnormal(const struct format *f, uint16_t bits)
{
	return !(bits & 0x7fff & ~((1 << f->mantissa) - 1));
}

static double flushed(const struct format *f, uint16_t bits)
{
	return is_subnormal(f, bits) ? copysign(0, bits & 0x8000 ? -1 : 1)
				     : value(f, bits);
}

#define RESULT " mov.b32 %w, {%d, %z};"

/* X(name, text, only for f16, what a, b are as doubles, what comes out) */
/* clang-format off */
#define HALF_ROWS(X)                                                                     \
	X("widen", "cvt.f32.$ %f, %a; mov.b32 %w, %f;", false,                           \
		isnan(a) ? 0x7fffffffu : bits_of((float)a))                              \
	X("narrow", "cvt.f32.$ %f, %a; cvt.rn.$.f32 %d, %f;" RESULT, false, R(a))        \
	X("relu", "cvt.f32.$ %f, %a; cvt.rn.relu.$.f32 %d, %f;" RESULT, false,           \
		R(isnan(a) ? a : a > 0 ? a : 0))                                         \
	X("negative", "neg.$ %d, %a;" RESULT, false, isnan(a) ? R(a) : i ^ 0x8000u)      \
	X("absolute", "abs.$ %d, %a;" RESULT, false, isnan(a) ? R(a) : i & 0x7fffu)      \
	X("sum", "add.rn.$ %d, %a, %b;" RESULT, false, R(a + b))                         \
	X("sum of pairs", "add.rn.$x2 %w, %pa, %pb;", false,                             \
		R(a + b) | (uint32_t)R(a + b) << 16)                                     \
	X("difference of pairs", "sub.rn.$x2 %w, %pa, %pb;", false,                      \
		R(a - b) | (uint32_t)R(b - a) << 16)                                     \
	X("product, saturated", "mul.sat.$ %d, %a, %b;" RESULT, true,                    \
		R(a * b > 0 ? fmin(a * b, 1) : 0))                                       \
	X("product, flushed", "mul.ftz.$ %d, %a, %b;" RESULT, true,                      \
		is_subnormal(f, R(fa * fb)) ? R(fa * fb) & 0x8000u : R(fa * fb))         \
	X("fused, clamped", "fma.rn.relu.$ %d, %a, %b, %b;" RESULT, false,               \
		R(fused(a, b, b) <= 0 ? 0 : fused(a, b, b)))               \
	X("lesser", "min.$ %d, %a, %b;" RESULT, false,                                   \
		R(isnan(a) ? b : isnan(b) ? a : a == b ? (i & 0x8000 ? a : b)            \
				: a < b		       ? a : b))                         \
	X("greater or NaN", "max.NaN.$ %d, %a, %b;" RESULT, false,                       \
		R(isnan(a) || isnan(b) ? NAN : a == b ? (i & 0x8000 ? b : a)             \
				: a > b		       ? a : b))                         \
	X("greater magnitude", "max.xorsign.abs.$ %d, %a, %b;" RESULT, false,            \
		(R(fmax(fabs(a), fabs(b))) & 0x7fffu) |                                  \
			(isnan(a) && isnan(b) ? w & 0x8000u : (i ^ bb) & 0x8000u))       \
	X("set", "set.lt.$.$ %d, %a, %b;" RESULT, false, a < b ? R(1) : 0)               \
	X("set of pairs", "set.leu.$x2.$x2 %w, %pa, %pb;", false,                        \
		(a > b ? 0 : R(1)) | (b > a ? 0 : (uint32_t)R(1)) << 16)                 \
	X("mask of pairs", "set.ne.u32.$x2 %w, %pa, %pb;", false,                        \
		isnan(a) || isnan(b) || a == b ? 0 : UINT32_MAX)                         \
	X("predicates of pairs",                                                         \
		"setp.gt.$x2 %p|%q, %pa, %pb; selp.u32 %r3, 1, 0, %p;"                   \
		"selp.u32 %r4, 2, 0, %q; or.b32 %w, %r3, %r4;",                          \
		false, (uint32_t)(a > b) | (uint32_t)(b > a) << 1)                       \
	X("power of 2", "ex2.approx.$ %d, %a;" RESULT, true,                             \
		near(w, R(exp2(a))) ? w : R(exp2(a)))                                    \
	X("hyperbolic tangent", "tanh.approx.$ %d, %a;" RESULT, false,                   \
		near(w, R(tanh(a))) ? w : R(tanh(a)))
/* clang-format on */

/* a * b + c as a double that rounds to a narrower type as the exact value does. */
static double fused(double a, double b, double c)
{
	double p = a * b, s = p + c;
	double rest = fabs(p) > fabs(c) ? (p - s) + c : (c - s) + p;

	uint64_t bits;

	/* Lost bits make the last bit odd: never a midpoint, never past a value. */
	memcpy(&bits, &s, sizeof(bits));
	if (bits & 1)
		return s;
	return rest > 0 ? nextafter(s, INFINITY) : rest < 0 ? nextafter(s, -INFINITY) : s;
}

static uint32_t bits_of(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static bool near(uint32_t got, uint32_t want)
{
	return got == want || got == want + 1 || got + 1 == want;
}

#define R(_x) nearest(f, _x)
#define ROW(_name, _text, _only_f16, _want)                                              \
	if (!(_only_f16) || f == formats) {                                              \
		run(_text, f->name, bb, got);                                            \
		for (uint32_t i = 0; i < N; i++) {                                       \
			double a = value(f, (uint16_t)i), b = value(f, bb);              \
			double fa = flushed(f, (uint16_t)i), fb = flushed(f, bb);        \
			uint32_t w = got[i], want = (uint32_t)(_want);                   \
                                                                                         \
			(void)a, (void)b, (void)fa, (void)fb;                            \
			if (w != want)                                                   \
				test_fail(__FILE__, __LINE__,                            \
					"%s of %s %04x, %04x gives %x, not %x", _name,   \
					f->name, i, bb, w, want);                        \
		}                                                                        \
	}

TEST_SECONDS(all_values_of_sixteen_bits_give_the_rounded_result, 300)
{
	static uint32_t got[N];
	static const uint16_t others[] = { 0x3e01, 0x8013, 0x7fc1 };

	for (const struct format *f = formats; f < formats + 2; f++)
		for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
			uint16_t bb = others[k];

			HALF_ROWS(ROW)
		}
}

/* The exact sum is closer to the midpoint of two values than a double can represent. */
TEST(a_fused_operation_rounds_once)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b16 %h<5>; .reg .b64 %rd1;\n"
		".reg .b32 %r<3>; ld.param.u64 %rd1, [p];\n"
		"mov.b16 %h1, 0x3f88; mov.b16 %h2, 0x3f88; mov.b16 %h3, 0x0001;\n"
		"fma.rn.bf16 %h4, %h1, %h2, %h3; cvt.u32.u16 %r1, %h4;\n"
		"mov.b16 %h3, 0x8001;\n"
		"fma.rn.bf16 %h4, %h1, %h2, %h3; cvt.u32.u16 %r2, %h4;\n"
		"st.global.v2.u32 [%rd1], {%r1, %r2}; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 64);

	/* 1.0625 squared is the middle of 0x3f90 and 0x3f91. */
	rig_launch(rig, "k", 1, 1, &out, sizeof(out));
	check_eq(out[0], 0x3f91);
	check_eq(out[1], 0x3f90);
}

TEST(a_sum_that_is_no_number_is_the_canonical_one)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .f32 %f<9>; .reg .b64 %rd1;\n"
		"ld.param.u64 %rd1, [p]; mov.f32 %f1, 0fffc12345; mov.f32 %f2, "
		"0f3f800000;\n"
		"add.f32 %f3, %f1, %f2; mul.f32 %f4, %f2, %f1; fma.rn.f32 %f5, %f2, %f2, "
		"%f1;\n"
		"div.rn.f32 %f6, %f1, %f2; sqrt.rn.f32 %f7, %f1; sub.ftz.f32 %f8, %f2, "
		"%f1;\n"
		"st.global.v4.f32 [%rd1], {%f3, %f4, %f5, %f6};\n"
		"st.global.v2.f32 [%rd1+16], {%f7, %f8}; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 64);

	rig_launch(rig, "k", 1, 1, &out, sizeof(out));
	for (int i = 0; i < 6; i++)
		check_eq(out[i], 0x7fffffff);
}

TEST(pairs_of_integers_have_a_lesser_and_a_greater)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<12>; .reg .b64 %rd1;\n"
		"ld.param.u64 %rd1, [p]; mov.b32 %r1, 0x8001fffe; mov.b32 %r2, "
		"0x00030002;\n"
		"min.s16x2 %r3, %r1, %r2; max.s16x2 %r4, %r1, %r2;\n"
		"min.u16x2 %r5, %r1, %r2; max.u16x2 %r6, %r1, %r2;\n"
		"max.s16x2.relu %r7, %r1, %r1; add.s16x2 %r8, %r1, %r2;\n"
		"st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};\n"
		"st.global.v2.u32 [%rd1+16], {%r7, %r8}; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 64);
	static const uint32_t want[] = { 0x8001fffe, 0x00030002, 0x00030002, 0x8001fffe,
		0, 0x80040000 };

	rig_launch(rig, "k", 1, 1, &out, sizeof(out));
	for (int i = 0; i < 6; i++)
		check_eq(out[i], want[i]);
}

TEST(atomic_sums_of_halves_are_complete)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %rd1;\n"
		".reg .b16 %h<4>; ld.param.u64 %rd1, [p]; mov.b32 %r1, 0x3c003800;\n"
		"red.global.add.noftz.f16x2 [%rd1], %r1; mov.b32 %r2, 0x40003f80;\n"
		"atom.global.add.noftz.bf16x2 %r3, [%rd1+4], %r2; mov.b16 %h1, 0x3f80;\n"
		"atom.global.add.noftz.bf16 %h2, [%rd1+8], %h1; mov.b16 %h1, 0x3c00;\n"
		"atom.global.add.noftz.f16 %h2, [%rd1+12], %h1; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 64);

	rig_launch(rig, "k", 2, 64, &out, sizeof(out));
	check_eq(out[0], 0x58005400);
	check_eq(out[1], 0x43804300);
	check_eq(out[2], 0x4300);
	check_eq(out[3], 0x5800);
}
