/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single instructions with a few numbers each, to test the form, or an edge that the rows
 * of other tests do not reach
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

/* The flag is the adder's carry: a difference leaves and wants the complement of a
 * borrow. */
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

/* In global memory subnormal numbers are zeros, before and after; in shared memory not.
 */
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
		/* Two numbers above, whose sum is below. */
		{ ATOM_GLOBAL, 0x00800001, 0x80800000, 0, 0 },
		{ ATOM_GLOBAL, 0x80800001, 0x00800000, 0, 0x80000000 },
		{ ATOM_GLOBAL, 0x3f800000, 0x3f800000, 0, 0x40000000 },
		{ ATOM_GLOBAL, 0x7fc12345, 0x3f800000, 0, 0x7fffffff },
		{ RED_GLOBAL, 0x00000001, 0x00000001, 0, 0 },
		{ ATOM_SHARED, 0x00000001, 0x00000001, 0, 2 },
		{ ATOM_SHARED, 0x00800001, 0x80800000, 0, 1 },
		/* Without a space, the address determines it. */
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
	run_form(&(struct form){
		"sqrt.rm.f32 %r0, %r1" N32, 0xbf800000, 0, 0, 0x7fffffff });
	run_form(&(struct form){
		"add.rz.sat.f32 %r0, %r1, %r2" N32, 0x7fc00000, 0x3f800000, 0, 0 });
}

/* ptxas refuses a register of 32 bits there, too: the bits are not specified. */
TEST(a_predicate_goes_to_no_other_register)
{
	static const char ptx[] = ".version 9.0\n.target sm_121\n.address_size 64\n"
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

/* The numbers were worked out by the text of the ISA, with integers that have no end. */
static const struct form video_forms[] = {
	{ "vadd.s32.u32.s32 %r0, %r1.h1, %r2.b3" N32, 0xff80017f, 0x80ff7f01, 0x1,
		0xff00 },
	{ "vadd.s32.s32.u32 %r0, %r1.b3, %r2.b2" N32, 0xff80017f, 0x80, 0xff80017f,
		0xffffffff },
	{ "vadd.u32.s32.u32 %r0, %r1.b3, %r2.h1" N32, 0x80000000, 0x1, 0x80ff7f01,
		0xffffff80 },
	{ "vadd.u32.u32.u32.sat %r0, %r1.b3, %r2.h0" N32, 0x0, 0xffffffff, 0x80000000,
		0xffff },
	{ "vadd.s32.s32.s32.sat.add %r0, %r1.h1, %r2.b0, %r3" N32, 0x80, 0xff, 0x7fffffff,
		0x7ffffffe },
	{ "vadd.s32.s32.u32 %r0.b3, %r1.b0, %r2.h1, %r3" N32, 0xffffffff, 0x12345678,
		0x80ff7f01, 0x33ff7f01 },
	{ "vadd.s32.s32.s32.sat %r0.b3, %r1, %r2.h1, %r3" N32, 0xff, 0x12345678,
		0xfedcba98, 0x7fdcba98 },
	{ "vsub.s32.s32.s32.sat %r0.b2, %r1, %r2.b2, %r3" N32, 0xff80017f, 0x0, 0xff,
		0x8000ff },
	{ "vsub.u32.u32.s32.sat.add %r0, %r1.b0, %r2.b2, %r3" N32, 0xff, 0x230d977e,
		0x80ff7f01, 0x80ff7ff3 },
	{ "vsub.s32.s32.s32.sat %r0, %r1.b0, %r2" N32, 0x80, 0x0, 0xff80017f,
		0xffffff80 },
	{ "vsub.u32.s32.s32 %r0, %r1.b2, %r2.b3" N32, 0xff80017f, 0x7f, 0x80ff7f01,
		0xffffff80 },
	{ "vsub.u32.s32.s32.sat.min %r0, %r1, %r2.b2, %r3" N32, 0x0, 0x80, 0x1, 0x0 },
	{ "vsub.s32.u32.u32 %r0.b1, %r1.b3, %r2, %r3" N32, 0xff80017f, 0x1200339d,
		0x80000000, 0x80006200 },
	{ "vsub.u32.s32.s32.sat.add %r0, %r1, %r2.h1, %r3" N32, 0xffffffff, 0xff, 0x1,
		0x1 },
	{ "vabsdiff.s32.s32.s32 %r0.b0, %r1.b0, %r2.b3, %r3" N32, 0xfedcba98, 0x0, 0xff,
		0x68 },
	{ "vabsdiff.u32.s32.s32.add %r0, %r1.b3, %r2.b3, %r3" N32, 0x7fffffff, 0xff80017f,
		0xcfbf3360, 0xcfbf33e0 },
	{ "vabsdiff.u32.u32.s32 %r0, %r1.b3, %r2.b2" N32, 0x0, 0xfd56a926, 0xff, 0x56 },
	{ "vabsdiff.u32.s32.s32.sat.add %r0, %r1.b0, %r2, %r3" N32, 0x80, 0xffffffff,
		0xff80017f, 0xff8001fe },
	{ "vabsdiff.u32.s32.s32 %r0.b0, %r1.b2, %r2.h1, %r3" N32, 0x80, 0x7f, 0x12345678,
		0x12345600 },
	{ "vabsdiff.s32.u32.s32.sat.max %r0, %r1, %r2.h0, %r3" N32, 0x7f, 0xff80017f,
		0xe7a46309, 0x100 },
	{ "vabsdiff.u32.s32.s32 %r0.h0, %r1.b0, %r2, %r3" N32, 0xfedcba98, 0x80ff7f01,
		0x7f, 0x8097 },
	{ "vmin.s32.u32.u32.add %r0, %r1.b1, %r2.b3, %r3" N32, 0xff80017f, 0x80ff7f01,
		0x7f, 0x80 },
	{ "vmin.u32.s32.s32.sat %r0.b1, %r1.b3, %r2.b0, %r3" N32, 0x0, 0xdf703017, 0x0,
		0x0 },
	{ "vmin.u32.u32.u32.sat %r0.h1, %r1, %r2.b3, %r3" N32, 0x12345678, 0x80ff7f01,
		0x7b8444d1, 0x8044d1 },
	{ "vmin.u32.u32.u32.add %r0, %r1.h1, %r2, %r3" N32, 0x80ff7f01, 0x1, 0xff80017f,
		0xff800180 },
	{ "vmin.u32.s32.s32.sat %r0.b1, %r1.h0, %r2.b3, %r3" N32, 0xff, 0x80, 0x7f,
		0x7f },
	{ "vmin.s32.u32.s32.sat.add %r0, %r1.h0, %r2.b0, %r3" N32, 0x80, 0xab6286cd,
		0x1f525265, 0x1f525232 },
	{ "vmin.u32.s32.u32.sat %r0, %r1.b2, %r2.b0" N32, 0x1, 0xffffffff, 0x12345678,
		0x0 },
	{ "vmax.u32.u32.s32.sat.min %r0, %r1.b0, %r2.b1, %r3" N32, 0xfedcba98, 0x7fffffff,
		0xffffffff, 0x98 },
	{ "vmax.u32.s32.s32.sat %r0.b0, %r1, %r2.h1, %r3" N32, 0x1, 0xff, 0xa227385,
		0xa227301 },
	{ "vmax.u32.s32.u32.sat %r0.b2, %r1.b2, %r2.b0, %r3" N32, 0x80ff7f01, 0xfedcba98,
		0xff, 0x9800ff },
	{ "vmax.u32.u32.s32.add %r0, %r1.h0, %r2, %r3" N32, 0x1, 0x80, 0x43b30f66,
		0x43b30fe6 },
	{ "vmax.u32.s32.u32.sat %r0.b3, %r1.b1, %r2.b3, %r3" N32, 0x80ff7f01, 0x1, 0xff,
		0x7f0000ff },
	{ "vmax.u32.u32.u32.sat %r0.b2, %r1.b3, %r2.h1, %r3" N32, 0xffffffff, 0x7f,
		0x4540f426, 0x45fff426 },
	{ "vmax.u32.s32.u32 %r0, %r1.h0, %r2.b3" N32, 0x80, 0x80, 0x1, 0x80 },
	{ "vset.s32.s32.gt.max %r0, %r1.b0, %r2.b0, %r3" N32, 0x32d90dcd, 0xfedcba98,
		0x80000000, 0x80000000 },
	{ "vset.u32.u32.eq %r0, %r1.h0, %r2.h0" N32, 0x80000000, 0x1, 0x80000000, 0x0 },
	{ "vset.u32.s32.eq.add %r0, %r1.b0, %r2.b1, %r3" N32, 0xff, 0x7fffffff,
		0x80ff7f01, 0x80ff7f01 },
	{ "vset.u32.u32.lt %r0, %r1.b1, %r2.b0" N32, 0x80000000, 0xff, 0x80, 0x1 },
	{ "vset.u32.u32.lt %r0, %r1.b0, %r2.b2" N32, 0x80000000, 0xff, 0x1, 0x0 },
	{ "vset.s32.s32.ge.add %r0, %r1.b1, %r2.h0, %r3" N32, 0x7f, 0xd329d65c,
		0x80ff7f01, 0x80ff7f02 },
	{ "vset.u32.u32.ge %r0.h1, %r1.h0, %r2.h0, %r3" N32, 0x1, 0x7f, 0x1, 0x1 },
	{ "vshl.s32.s32.u32.clamp.min %r0, %r1, %r2.h0, %r3" N32, 0xfedcba98, 0x1,
		0x80ff7f01, 0x80ff7f01 },
	{ "vshl.s32.s32.u32.wrap %r0.b1, %r1.b0, %r2, %r3" N32, 0xffffffff, 0x20,
		0x12345678, 0x1234ff78 },
	{ "vshl.u32.u32.u32.sat.wrap %r0.h1, %r1.h0, %r2.h0, %r3" N32, 0x7f, 0x1,
		0x12345678, 0xfe5678 },
	{ "vshl.u32.s32.u32.sat.wrap.min %r0, %r1.h1, %r2.b0, %r3" N32, 0x80ff7f01, 0x20,
		0x0, 0x0 },
	{ "vshl.u32.s32.u32.wrap %r0, %r1, %r2" N32, 0xfedcba98, 0x20, 0x9a762d54,
		0xfedcba98 },
	{ "vshl.s32.u32.u32.sat.wrap %r0, %r1.b0, %r2.b0" N32, 0x12345678, 0x21,
		0x80000000, 0xf0 },
	{ "vshl.s32.u32.u32.sat.clamp.min %r0, %r1, %r2.b0, %r3" N32, 0xfedcba98, 0x1,
		0x80000000, 0x80000000 },
	{ "vshr.s32.s32.u32.wrap %r0, %r1.h1, %r2.b0" N32, 0x7f, 0x1f, 0x7fffffff, 0x0 },
	{ "vshr.s32.u32.u32.clamp %r0, %r1.h0, %r2" N32, 0x736b96a0, 0x5, 0x0, 0x4b5 },
	{ "vshr.s32.s32.u32.sat.wrap.max %r0, %r1.h0, %r2, %r3" N32, 0x12345678, 0x1,
		0x80000000, 0x2b3c },
	{ "vshr.u32.u32.u32.wrap.min %r0, %r1.h1, %r2.b0, %r3" N32, 0x80ff7f01, 0x1,
		0x80ff7f01, 0x407f },
	{ "vshr.u32.s32.u32.clamp %r0.b3, %r1.b2, %r2.h0, %r3" N32, 0x80, 0x20,
		0xffffffff, 0xffffff },
	{ "vshr.s32.u32.u32.sat.clamp %r0, %r1.b2, %r2" N32, 0x80000000, 0x5, 0x0, 0x0 },
	{ "vshr.s32.s32.u32.clamp.max %r0, %r1.h1, %r2.h0, %r3" N32, 0x80, 0x1,
		0x80ff7f01, 0x0 },
	{ "vmad.s32.s32.u32.po %r0, %r1.b0, %r2.b3, %r3" N32, 0x12345678, 0x7f,
		0x80ff7f01, 0x80ff7f02 },
	{ "vmad.s32.s32.u32 %r0, -%r1.b3, %r2.b3, %r3" N32, 0xff, 0xff80017f, 0x80ff7f01,
		0x80ff7f01 },
	{ "vmad.s32.s32.s32.sat.shr7 %r0, -%r1.h1, -%r2.b0, %r3" N32, 0x80, 0x0,
		0xfedcba98, 0xfffdb975 },
	{ "vmad.s32.s32.u32 %r0, %r1.h0, -%r2.h0, %r3" N32, 0xff, 0x80000000, 0x80,
		0x80 },
	{ "vmad.s32.s32.u32.sat.shr15 %r0, %r1.b1, -%r2.h0, %r3" N32, 0x0, 0xfedcba98,
		0x1, 0x0 },
	{ "vmad.s32.u32.s32.po.shr7 %r0, %r1.b0, %r2.b2, %r3" N32, 0x38b079e1, 0x1,
		0xffffffff, 0x0 },
	{ "vmad.u32.u32.u32.sat.shr7 %r0, -%r1, -%r2.b3, %r3" N32, 0x80000000, 0x0, 0x7f,
		0x0 },
	{ "vmad.s32.s32.u32 %r0, %r1.b2, -%r2.h0, %r3" N32, 0xfedcba98, 0x1, 0x7fffffff,
		0x80000023 },
	{ "vmad.s32.u32.u32.sat %r0, -%r1.h0, %r2.h0, %r3" N32, 0x7fffffff, 0xffffffff,
		0x0, 0x80000000 },
	{ "vmad.s32.u32.s32.shr7 %r0, %r1, -%r2.b3, %r3" N32, 0x80, 0x61502dee,
		0x4f06e95a, 0x9e0d71 },
	{ "vmad.s32.s32.u32.shr15 %r0, %r1.b0, -%r2.b1, %r3" N32, 0xffffffff, 0x7fffffff,
		0xffffffff, 0x0 },
	{ "vmad.s32.u32.s32.shr15 %r0, %r1, -%r2.b2, %r3" N32, 0x1, 0x0, 0xfedcba98,
		0xfffffdb9 },
	{ "vmad.s32.u32.s32.sat.shr7 %r0, -%r1.b3, %r2, %r3" N32, 0xfedcba98, 0xff,
		0xfedcba98, 0xfffdb77b },
	{ "vmad.s32.u32.u32 %r0, %r1.h0, -%r2.b2, %r3" N32, 0x80000000, 0x80000000, 0x7f,
		0x7f },
	{ "vadd2.s32.u32.u32.add %r0, %r1, %r2, %r3" N32, 0x7fffffff, 0x75f5c1a0, 0x1,
		0x2b794 },
	{ "vadd2.u32.s32.u32.sat %r0.h10, %r1.h30, %r2, %r3" N32, 0x1, 0x80000000,
		0xfedcba98, 0x1 },
	{ "vadd2.s32.u32.u32.sat %r0.h10, %r1.h01, %r2, %r3" N32, 0xff, 0x80, 0x80,
		0xff0080 },
	{ "vadd2.u32.s32.u32.add %r0.h1, %r1.h12, %r2, %r3" N32, 0x1, 0x798a0d59,
		0xffffffff, 0x7989 },
	{ "vsub2.s32.u32.s32 %r0, %r1.h01, %r2.h31, %r3" N32, 0x12345678, 0x1, 0xfedcba98,
		0x56780000 },
	{ "vsub2.s32.u32.u32.add %r0.h0, %r1.h10, %r2, %r3" N32, 0x80000000, 0x7f, 0x1,
		0xffffff82 },
	{ "vsub2.u32.u32.s32.add %r0.h0, %r1.h30, %r2, %r3" N32, 0xff, 0xff, 0x80000000,
		0x80000000 },
	{ "vsub2.u32.s32.s32.add %r0, %r1.h12, %r2.h13, %r3" N32, 0x7f, 0x1d10e931,
		0xff80017f, 0xff7fcda0 },
	{ "vabsdiff2.s32.s32.u32 %r0.h10, %r1.h31, %r2.h12, %r3" N32, 0x1, 0x623c70ce,
		0xce0843c2, 0x623c70ce },
	{ "vabsdiff2.u32.s32.u32.sat %r0, %r1.h03, %r2, %r3" N32, 0x7f, 0xc92bdd5a,
		0x80000000, 0xc8acffff },
	{ "vabsdiff2.u32.s32.u32 %r0, %r1.h31, %r2.h11, %r3" N32, 0x80, 0x80ff7f01,
		0x12345678, 0x7f010000 },
	{ "vabsdiff2.u32.s32.u32.add %r0, %r1, %r2, %r3" N32, 0x80000000, 0x80,
		0x12345678, 0x1234d6f8 },
	{ "vmin2.s32.s32.s32 %r0, %r1.h33, %r2.h13, %r3" N32, 0x1, 0x80000000, 0x5d866b34,
		0x80008000 },
	{ "vmin2.s32.u32.u32 %r0, %r1, %r2.h00, %r3" N32, 0x12345678, 0x7f, 0x1,
		0x12345678 },
	{ "vmin2.u32.u32.u32.add %r0.h10, %r1.h11, %r2.h22, %r3" N32, 0xffffffff, 0xff,
		0x80, 0x27e },
	{ "vmin2.s32.s32.u32 %r0.h10, %r1.h22, %r2, %r3" N32, 0x7fffffff, 0xffffffff,
		0xff80017f, 0xffffffff },
	{ "vmax2.u32.s32.s32.add %r0.h1, %r1.h12, %r2.h30, %r3" N32, 0xff, 0xa3a51759,
		0x12345678, 0x12345678 },
	{ "vmax2.s32.u32.u32 %r0, %r1.h33, %r2, %r3" N32, 0x80, 0x0, 0x0, 0x0 },
	{ "vmax2.s32.s32.u32.add %r0.h10, %r1, %r2.h12, %r3" N32, 0x39cd862, 0x7f, 0x1,
		0x41c },
	{ "vmax2.u32.s32.s32.add %r0, %r1, %r2.h32, %r3" N32, 0xffffffff, 0x0, 0x80ff7f01,
		0x80ff7f01 },
	{ "vavrg2.u32.s32.u32 %r0, %r1.h00, %r2, %r3" N32, 0x80000000, 0xff80017f,
		0x12345678, 0x7fc000c0 },
	{ "vavrg2.s32.u32.s32.sat %r0, %r1, %r2, %r3" N32, 0x80ff7f01, 0x600a6732,
		0xffffffff, 0x7085731a },
	{ "vavrg2.u32.s32.u32 %r0.h10, %r1.h00, %r2.h02, %r3" N32, 0x80, 0x80ff7f01, 0xff,
		0x803fc1 },
	{ "vavrg2.u32.u32.u32.add %r0.h10, %r1.h23, %r2, %r3" N32, 0x80000000, 0x80, 0xff,
		0x17f },
	{ "vset2.s32.u32.gt %r0, %r1.h00, %r2.h21, %r3" N32, 0x0, 0xfedcba98, 0x0, 0x0 },
	{ "vset2.u32.u32.gt.add %r0.h0, %r1.h30, %r2.h11, %r3" N32, 0x12345678,
		0xffffffff, 0x1, 0x2 },
	{ "vset2.s32.s32.lt.add %r0.h10, %r1.h22, %r2, %r3" N32, 0xff80017f, 0xbee33d4a,
		0x80000000, 0x80000000 },
	{ "vset2.s32.s32.ge %r0.h0, %r1, %r2.h20, %r3" N32, 0x49d04ce5, 0x0, 0x1, 0x1 },
	{ "vadd4.s32.u32.s32.add %r0, %r1, %r2, %r3" N32, 0x48a28354, 0xfedcba98, 0x7f,
		0x16c },
	{ "vadd4.u32.u32.s32.sat %r0.b21, %r1.b6166, %r2, %r3" N32, 0x80ff7f01,
		0x80000000, 0x12345678, 0x127f0078 },
	{ "vadd4.u32.s32.u32.sat %r0, %r1, %r2, %r3" N32, 0x80ff7f01, 0x7f, 0xfedcba98,
		0x7f80 },
	{ "vadd4.s32.u32.u32.add %r0, %r1.b4433, %r2, %r3" N32, 0xfedcba98, 0x80,
		0xff80017f, 0xff8004fb },
	{ "vsub4.s32.u32.u32.add %r0.b32, %r1, %r2.b3121, %r3" N32, 0xff, 0x12345678,
		0xff, 0xff },
	{ "vsub4.u32.s32.s32 %r0, %r1.b7436, %r2.b3064, %r3" N32, 0xff80017f, 0x12345678,
		0x80, 0x13f9cbbc },
	{ "vsub4.u32.u32.u32.add %r0, %r1.b3614, %r2, %r3" N32, 0xff, 0xffffffff,
		0xff80017f, 0xff7fff81 },
	{ "vsub4.s32.u32.s32.sat %r0.b210, %r1, %r2, %r3" N32, 0x1, 0xffffffff,
		0xfedcba98, 0xfe010102 },
	{ "vabsdiff4.s32.u32.s32.add %r0, %r1.b6237, %r2, %r3" N32, 0xff80017f, 0x0,
		0x80000000, 0x8000017f },
	{ "vabsdiff4.s32.u32.u32.sat %r0, %r1, %r2, %r3" N32, 0x1, 0xfedcba98, 0x80ff7f01,
		0x7f7f7f7f },
	{ "vabsdiff4.u32.s32.s32 %r0.b3210, %r1.b3731, %r2, %r3" N32, 0xc89994cc,
		0xfedcba98, 0xff, 0x36220e04 },
	{ "vabsdiff4.s32.u32.s32.sat %r0, %r1.b7754, %r2.b4251, %r3" N32, 0x15d4e7c2,
		0x7fffffff, 0x7f, 0x7f7f7f7f },
	{ "vmin4.s32.u32.u32 %r0, %r1, %r2.b2321, %r3" N32, 0x7f, 0x80000000, 0x7f, 0x0 },
	{ "vmin4.u32.s32.u32.add %r0, %r1, %r2, %r3" N32, 0x1, 0xff, 0x3bf2f108,
		0x3bf2f109 },
	{ "vmin4.u32.s32.s32.sat %r0, %r1.b7372, %r2.b7520, %r3" N32, 0xff, 0x7fffffff,
		0x12345678, 0x7f000000 },
	{ "vmin4.u32.u32.s32 %r0, %r1, %r2, %r3" N32, 0x1, 0xffffffff, 0x7f, 0xffffffff },
	{ "vmax4.u32.u32.s32.sat %r0, %r1.b3755, %r2.b0465, %r3" N32, 0x5aecfabb,
		0x7fffffff, 0xff, 0x5a7fffff },
	{ "vmax4.s32.u32.s32.sat %r0.b1, %r1.b0124, %r2.b4606, %r3" N32, 0xffffffff,
		0x12345678, 0x80ff7f01, 0x80ff7f01 },
	{ "vmax4.s32.u32.u32 %r0.b0, %r1, %r2.b0212, %r3" N32, 0xdf3648fb, 0xff, 0xff,
		0xfb },
	{ "vmax4.s32.u32.s32.sat %r0.b3210, %r1.b1070, %r2, %r3" N32, 0x12345678,
		0xffffffff, 0x80ff7f01, 0x56787f78 },
	{ "vavrg4.u32.u32.s32 %r0, %r1, %r2.b3110, %r3" N32, 0x0, 0xff80017f, 0xfedcba98,
		0x0 },
	{ "vavrg4.u32.u32.s32 %r0.b0, %r1.b0477, %r2, %r3" N32, 0xff, 0x7f, 0xdc685e91,
		0xdc685e40 },
	{ "vavrg4.s32.u32.s32.add %r0.b10, %r1, %r2, %r3" N32, 0x12345678, 0x29fd96b2,
		0x80000000, 0x8000000b },
	{ "vavrg4.s32.s32.s32.add %r0, %r1.b4205, %r2, %r3" N32, 0x80000000, 0xff80017f,
		0x80, 0xc0 },
	{ "vset4.s32.u32.lt.add %r0, %r1.b2402, %r2, %r3" N32, 0xff, 0xf9b1de86,
		0x12345678, 0x1234567c },
	{ "vset4.s32.u32.gt.add %r0.b32, %r1, %r2.b6043, %r3" N32, 0xc04a4a4c, 0x80ff7f01,
		0x16739251, 0x16739251 },
	{ "vset4.u32.u32.le.add %r0.b10, %r1, %r2, %r3" N32, 0x7f, 0xff, 0xff80017f,
		0xff800181 },
	{ "vset4.s32.u32.ne %r0.b2, %r1, %r2.b1751, %r3" N32, 0xff80017f, 0x0, 0xfd8b289c,
		0xfd01289c },
	/* The third operand has no meaning here, and an immediate may be a source. */
	{ "vsub.u32.u32.u32 %r0, %r1, 3, %r3" N32, 5, 0, 99, 2 },
};

TEST(video_instructions_follow_the_text)
{
	RUN(video_forms);
}
