/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single instructions with a few numbers each, where what counts is the form, or an edge
 * that the rows of other tests do not reach
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* %rd1 to %rd3 hold the numbers, %r1 to %r3 their lower halves; the result is in %rd0. */
struct form {
	const char *text;
	uint64_t a, b, c, want;
};

/* The result is in %r0. */
#define N32 "; cvt.u64.u32 %rd0, %r0;"

static void run_form(const struct form *form)
{
	CLEAN_RIG rig = NULL;
	char ptx[2048];
	struct {
		uint64_t *out;
		uint64_t words[3];
	} params = { NULL, { form->a, form->b, form->c } };

	snprintf(ptx, sizeof(ptx),
		".version 9.0\n.target sm_121\n.address_size 64\n"
		".global .align 16 .b8 g[64];\n"
		".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b,\n"
		".param .u64 c) {\n"
		".reg .b64 %%rd<9>; .reg .b32 %%r<9>; .reg .pred %%p<4>;\n"
		".reg .b16 %%h<9>; .reg .f32 %%f<9>; .reg .f64 %%fd<9>;\n"
		".shared .align 16 .b8 s[64];\n"
		"ld.param.u64 %%rd8, [out]; ld.param.u64 %%rd1, [a];\n"
		"ld.param.u64 %%rd2, [b]; ld.param.u64 %%rd3, [c];\n"
		"cvt.u32.u64 %%r1, %%rd1; cvt.u32.u64 %%r2, %%rd2;\n"
		"cvt.u32.u64 %%r3, %%rd3; mov.u64 %%rd0, 0;\n%s\n"
		"st.global.u64 [%%rd8], %%rd0; ret; }\n",
		form->text);
	rig = rig_new(ptx);
	params.out = rig_alloc(rig, 8);
	rig_launch(rig, "k", 1, 1, &params, sizeof(params));
	if (*params.out != form->want)
		test_fail(__FILE__, __LINE__, "%s of %llx %llx %llx gives %llx, not %llx",
			form->text, (long long)form->a, (long long)form->b,
			(long long)form->c, (long long)*params.out,
			(long long)form->want);
}

static void run_forms(const struct form *forms, size_t n)
{
	for (size_t i = 0; i < n; i++)
		run_form(&forms[i]);
}

#define RUN(_forms) run_forms(_forms, sizeof(_forms) / sizeof((_forms)[0]))

/* The flag is the adder's carry: a difference leaves and wants the complement of a borrow. */
TEST(the_carry_flag_goes_from_sums_to_differences)
{
	static const struct form forms[] = {
		{ "sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0" N32, 5, 3, 9, 9 },
		{ "sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0" N32, 3, 5, 9, 8 },
		{ "sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0" N32, 5, 3, 9, 10 },
		{ "sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0" N32, 3, 5, 9, 9 },
		{ "sub.cc.s32 %r4, %r1, %r1; addc.u32 %r0, 0, 0" N32, 7, 0, 0, 1 },
		{ "add.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0" N32, 0, 0, 9, 8 },
		{ "add.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0" N32, 0xffffffff, 1, 9,
			9 },
		{ "add.cc.u32 %r4, %r1, %r2; subc.u32 %r0, 0, 0" N32, 0, 0, 0,
			0xffffffff },
		{ "sub.cc.u64 %rd4, %rd1, %rd2; addc.u64 %rd0, %rd3, 0;", 3, 5, 9, 9 },
		{ "sub.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r5, 0, 0;"
		  "subc.u32 %r0, 9, 0" N32,
			0, 1, 0, 8 },
		{ "sub.cc.u32 %r4, %r1, %r2; madc.lo.u32 %r0, 2, 3, 0" N32, 5, 3, 0, 7 },
	};

	RUN(forms);
}

/* Only upper halves count, subnormal numbers are zeros, and there is one NaN. */
TEST(gross_reciprocals_of_doubles_have_half_their_bits)
{
#define RCP "rcp.approx.ftz.f64 %rd0, %rd1;"
#define RSQRT "rsqrt.approx.ftz.f64 %rd0, %rd1;"
	static const struct form forms[] = {
		{ RCP, 0x4000000000000000, 0, 0, 0x3fe0000000000000 },
		{ RCP, 0x40000000ffffffff, 0, 0, 0x3fe0000000000000 },
		{ RCP, 0x4008000000000000, 0, 0, 0x3fd5555500000000 },
		{ RCP, 0x000fffffffffffff, 0, 0, 0x7ff0000000000000 },
		{ RCP, 0x8000000000000001, 0, 0, 0xfff0000000000000 },
		{ RCP, 0x8000000000000000, 0, 0, 0xfff0000000000000 },
		{ RCP, 0x7ff0000000000000, 0, 0, 0 },
		{ RCP, 0xfff0000000000000, 0, 0, 0x8000000000000000 },
		{ RCP, 0x7fe8000000000000, 0, 0, 0 },
		{ RCP, 0xffe8000000000000, 0, 0, 0x8000000000000000 },
		{ RCP, 0xfff8123456789abc, 0, 0, 0x7fffffff00000000 },
		{ RSQRT, 0x4010000000000000, 0, 0, 0x3fe0000000000000 },
		{ RSQRT, 0x4000000000000000, 0, 0, 0x3fe6a09e00000000 },
		{ RSQRT, 0x0000000000000007, 0, 0, 0x7ff0000000000000 },
		{ RSQRT, 0x800fffffffffffff, 0, 0, 0xfff0000000000000 },
		{ RSQRT, 0x8000000000000000, 0, 0, 0xfff0000000000000 },
		{ RSQRT, 0x7ff0000000000000, 0, 0, 0 },
		{ RSQRT, 0xfff0000000000000, 0, 0, 0x7fffffff00000000 },
		{ RSQRT, 0xbff0000000000000, 0, 0, 0x7fffffff00000000 },
		/* The other one keeps all bits. */
		{ "rsqrt.approx.f64 %rd0, %rd1;", 0x0000000000000000, 0, 0,
			0x7ff0000000000000 },
		{ "rsqrt.approx.f64 %rd0, %rd1;", 0x4000000000000000, 0, 0,
			0x3fe6a09e667f3bcc },
	};

	RUN(forms);
}

/* In global memory subnormal numbers are zeros, before and after; in shared memory not. */
TEST(sums_in_global_memory_flush_subnormal_numbers)
{
#define ADD(_add, _space, _at)                                                           \
	"st." _space ".u32 [" _at "], %r1; " _add " [" _at "], %r2; ld." _space          \
	".u32 %r0, [" _at "]" N32
#define ATOM_GLOBAL ADD("atom.global.add.f32 %r4,", "global", "g")
#define ATOM_SHARED ADD("atom.shared.add.f32 %r4,", "shared", "s")
#define RED_GLOBAL ADD("red.relaxed.gpu.global.add.f32", "global", "g")
	static const struct form forms[] = {
		{ ATOM_GLOBAL, 0x00000001, 0x00000001, 0, 0 },
		{ ATOM_GLOBAL, 0x80000001, 0x80000001, 0, 0x80000000 },
		{ ATOM_GLOBAL, 0x3f800000, 0x007fffff, 0, 0x3f800000 },
		/* Two numbers above, whose sum lies below. */
		{ ATOM_GLOBAL, 0x00800001, 0x80800000, 0, 0 },
		{ ATOM_GLOBAL, 0x80800001, 0x00800000, 0, 0x80000000 },
		{ ATOM_GLOBAL, 0x3f800000, 0x3f800000, 0, 0x40000000 },
		{ ATOM_GLOBAL, 0x7fc12345, 0x3f800000, 0, 0x7fffffff },
		{ RED_GLOBAL, 0x00000001, 0x00000001, 0, 0 },
		{ ATOM_SHARED, 0x00000001, 0x00000001, 0, 2 },
		{ ATOM_SHARED, 0x00800001, 0x80800000, 0, 1 },
		/* Without a space, the address tells. */
		{ "st.global.u32 [g], %r1; cvta.global.u64 %rd4, g;"
		  "atom.add.f32 %r4, [%rd4], %r2; ld.global.u32 %r0, [g]" N32,
			1, 1, 0, 0 },
		{ "st.shared.u32 [s], %r1; mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4;"
		  "red.add.f32 [%rd4], %r2; ld.shared.u32 %r0, [s]" N32,
			1, 1, 0, 2 },
	};

	RUN(forms);
}

/* A rounding mode does not change which NaN comes out. */
TEST(directed_rounding_gives_the_one_nan)
{
	static const char *const texts[] = {
		"add.rz.f32 %r0, %r1, %r2" N32,
		"sub.rm.ftz.f32 %r0, %r2, %r1" N32,
		"mul.rp.f32 %r0, %r1, %r2" N32,
		"fma.rz.f32 %r0, %r2, %r2, %r1" N32,
		"div.rm.f32 %r0, %r2, %r1" N32,
		"rcp.rp.f32 %r0, %r1" N32,
		"sqrt.rz.f32 %r0, %r1" N32,
	};
	static const uint64_t nans[] = { 0xffc12345, 0x7f812345, 0x7fc00000 };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (int k = 0; k < 3; k++)
			run_form(&(struct form){
				texts[i], nans[k], 0x40400000, 0, 0x7fffffff });
	run_form(&(struct form){ "sqrt.rm.f32 %r0, %r1" N32, 0xbf800000, 0, 0, 0x7fffffff });
	run_form(&(struct form){
		"add.rz.sat.f32 %r0, %r1, %r2" N32, 0x7fc00000, 0x3f800000, 0, 0 });
}

/* ptxas refuses a register of 32 bits there too: which bits it would set is not said. */
TEST(a_predicate_goes_to_no_other_register)
{
	static const char ptx[] =
		".version 9.0\n.target sm_121\n.address_size 64\n"
		".visible .entry k() { .reg .b32 %r<3>;\n"
		"setp.eq.u32 %r0, %r1, %r2; ret; }\n";
	struct softgpu_message message = {};

	check_eq(rig_lookup(ptx, "k", &message), SOFTGPU_ERROR_INVALID_PTX);
}

TEST(products_of_24_bits_ignore_the_rest)
{
	static const struct form forms[] = {
		{ "mul24.lo.u32 %r0, %r1, %r2" N32, 0xff000003, 0xaa000005, 0, 15 },
		{ "mul24.lo.s32 %r0, %r1, %r2" N32, 0x00ffffff, 5, 0, 0xfffffffb },
		{ "mul24.lo.u32 %r0, %r1, %r2" N32, 0x00ffffff, 0x00ffffff, 0,
			0xfe000001 },
		{ "mul24.hi.u32 %r0, %r1, %r2" N32, 0x00ffffff, 0x00ffffff, 0,
			0xfffffe00 },
		{ "mul24.hi.s32 %r0, %r1, %r2" N32, 0x00800000, 0x007fffff, 0,
			0xc0000080 },
		{ "mad24.lo.s32 %r0, %r1, %r2, %r3" N32, 0x01000002, 3, 4, 10 },
		{ "mad24.hi.u32 %r0, %r1, %r2, %r3" N32, 0x00ffffff, 0x00ffffff, 0x201,
			1 },
		{ "mad24.hi.sat.s32 %r0, %r1, %r2, %r3" N32, 0x007fffff, 0x007fffff,
			0x7fffffff, 0x7fffffff },
		{ "mad24.hi.sat.s32 %r0, %r1, %r2, %r3" N32, 0x00800000, 0x007fffff,
			0x80000000, 0x80000000 },
	};

	RUN(forms);
}

TEST(integers_are_packed_with_saturation)
{
	static const struct form forms[] = {
		{ "cvt.pack.sat.u16.s32 %r0, %r1, %r2" N32, 70000, 0xffffffff, 0,
			0xffff0000 },
		{ "cvt.pack.sat.s16.s32 %r0, %r1, %r2" N32, 0xffff0000, 40000, 0,
			0x80007fff },
		{ "cvt.pack.sat.s16.s32 %r0, %r1, %r2" N32, 0xffffffff, 5, 0,
			0xffff0005 },
		{ "cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, 0" N32, 300, 7, 0, 0xff07 },
		{ "cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3" N32, 0xffffff00, 200,
			0x12345678, 0x5678807f },
	};

	RUN(forms);
}

TEST(precisions_are_mixed_and_floats_go_in_pairs)
{
	static const struct form forms[] = {
		/* 1.5 in 16 bits, and 2.25 */
		{ "cvt.u16.u32 %h1, %r1; add.f32.f16 %r0, %h1, %r2" N32, 0x3e00,
			0x40100000, 0, 0x40700000 },
		{ "cvt.u16.u32 %h1, %r1; sub.f32.f16 %r0, %h1, %r2" N32, 0x3e00,
			0x40100000, 0, 0xbf400000 },
		{ "cvt.u16.u32 %h1, %r1; add.f32.bf16 %r0, %h1, %r2" N32, 0x3fc0,
			0x40100000, 0, 0x40700000 },
		{ "cvt.u16.u32 %h1, %r1; add.sat.f32.f16 %r0, %h1, %r2" N32, 0x3e00,
			0x40100000, 0, 0x3f800000 },
		{ "cvt.u16.u32 %h1, %r1; fma.rn.f32.bf16 %r0, %h1, %h1, %r2" N32, 0x3fc0,
			0x40100000, 0, 0x40900000 },
		{ "cvt.u16.u32 %h1, %r1; add.rp.f32.f16 %r0, %h1, %r2" N32, 0x3c00,
			0x00000001, 0, 0x3f800001 },
		{ "cvt.u16.u32 %h1, %r1; sub.rm.f32.f16 %r0, %h1, %r2" N32, 0x3c00,
			0x00000001, 0, 0x3f7fffff },
		{ "cvt.u16.u32 %h1, %r1; fma.rz.f32.f16 %r0, %h1, %h1, %r2" N32, 0x3c00,
			0x80000001, 0, 0x3f7fffff },
		{ "add.rn.f32x2 %rd0, %rd1, %rd2;", 0x3f80000040000000,
			0x4000000040400000, 0, 0x4040000040a00000 },
		{ "sub.f32x2 %rd0, %rd1, %rd2;", 0x3f80000040000000, 0x4000000040400000,
			0, 0xbf800000bf800000 },
		{ "mul.rn.f32x2 %rd0, %rd1, %rd2;", 0x3f80000040000000,
			0x4000000040400000, 0, 0x4000000040c00000 },
		{ "fma.rn.f32x2 %rd0, %rd1, %rd2, %rd3;", 0x3f80000040000000,
			0x4000000040400000, 0x3f8000003f800000, 0x4040000040e00000 },
		{ "add.rn.ftz.f32x2 %rd0, %rd1, %rd2;", 0x0000000100000001,
			0x0000000140400000, 0, 0x0000000040400000 },
		{ "add.rp.f32x2 %rd0, %rd1, %rd2;", 0x3f8000003f800000,
			0x0000000100000000, 0, 0x3f8000013f800000 },
	};

	RUN(forms);
}
