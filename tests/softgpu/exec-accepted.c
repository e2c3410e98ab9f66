/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms that ptxas accepts beyond those that compilers write: registers as parameters,
 * constant expressions, variables in functions, and modules of which only a part can be
 * run
 */

#include <stdio.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define N 64u

/* @functions, then a kernel that makes %r2 of its thread's number %r1. */
static void run(const char *functions, const char *body, uint32_t (*want)(uint32_t x))
{
	CLEAN_RIG rig = NULL;
	char ptx[4096];
	uint32_t *out;

	snprintf(ptx, sizeof(ptx),
		HEADER "%s\n.visible .entry k(.param .u64 p) {\n"
		       ".reg .b32 %%r<9>; .reg .b64 %%rd<9>; .reg .pred %%p<4>;\n"
		       ".reg .f32 %%f<9>; .reg .b16 %%h<9>;\n"
		       "ld.param.u64 %%rd1, [p]; mov.u32 %%r1, %%tid.x;\n"
		       "mul.wide.u32 %%rd2, %%r1, 4; add.u64 %%rd1, %%rd1, %%rd2;\n"
		       "mov.u32 %%r2, 0;\n%s\nst.global.u32 [%%rd1], %%r2; ret; }\n",
		functions, body);
	rig = rig_new(ptx);
	out = rig_alloc(rig, 4 * N);
	rig_launch(rig, "k", 1, N, &out, sizeof(out));
	for (uint32_t i = 0; i < N; i++)
		if (out[i] != want(i))
			test_fail(__FILE__, __LINE__, "%s %s: %u of %u, not %u",
				functions, body, out[i], i, want(i));
}

static uint32_t next(uint32_t x)
{
	return x + 1;
}

static uint32_t five(uint32_t x)
{
	return 5;
}

static uint32_t square_odd(uint32_t x)
{
	return x % 2 ? x * x : 0;
}

static uint32_t factorial_mod(uint32_t x)
{
	uint32_t r = 1;

	for (uint32_t i = 2; i <= x % 8; i++)
		r *= i;
	return r;
}

TEST(registers_and_numbers_are_arguments)
{
	run(".func (.reg .u32 o) f(.reg .u32 x) { add.u32 o, x, 1; ret; }",
		"call (%r2), f, (%r1);", next);
	run(".func (.reg .u32 o) f(.reg .u32 x) { add.u32 o, x, 1; ret; }",
		"call (%r2), f, (4);", five);
	run(".func (.reg .u32 o) f(.param .u32 x) { ld.param.u32 o, [x]; add.u32 o, o, "
	    "1; "
	    "ret; }",
		"call (%r2), f, (%r1);", next);
	run(".func (.param .u32 o) f(.param .u64 x) { .reg .b64 %d; .reg .b32 %a;\n"
	    "ld.param.u64 %d, [x]; cvt.u32.u64 %a, %d; add.u32 %a, %a, 1;\n"
	    "st.param.u32 [o], %a; ret; }",
		"{ .param .u32 v; .param .u64 a; cvt.u64.u32 %rd3, %r1;\n"
		"st.param.u64 [a], %rd3; call (v), f, (a); ld.param.u32 %r2, [v]; }\n"
		"call (%r2), f, (%rd3);",
		next);
	run(".func (.reg .f32 o) f(.reg .f32 x, .param .f64 y) { .reg .f64 %d;\n"
	    "ld.param.f64 %d, [y]; cvt.rn.f32.f64 o, %d; add.f32 o, o, x; ret; }",
		"call (%f1), f, (1.5, 3.5); cvt.rzi.u32.f32 %r2, %f1;", five);
}

TEST(a_function_has_several_results)
{
	run(".func (.reg .u32 a, .reg .pred b) f(.reg .u32 x) { add.u32 a, x, 1;\n"
	    "setp.eq.u32 b, 0, 0; ret; }",
		"call (%r3, %p1), f, (%r1); @%p1 mov.u32 %r2, %r3;", next);
	run(".func (.reg .u32 a, .reg .u64 b) f(.reg .u32 x) { mov.u32 a, 77;\n"
	    "add.u32 a, x, 1; cvt.u64.u32 b, a; ret; }",
		"call (_, %rd3), f, (%r1); cvt.u32.u64 %r2, %rd3;", next);
}

/* Lanes whose guard is false get no result and do not reach the function. */
TEST(a_guarded_call_with_registers_concerns_its_lanes)
{
	run(".func (.reg .u32 o) f(.reg .u32 x) { mul.lo.u32 o, x, x; ret; }",
		"and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0;\n"
		"@%p1 call (%r2), f, (%r1);",
		square_odd);
}

TEST(recursion_and_pointers_pass_registers)
{
	static const char factorial[] =
		".func (.reg .u32 o) f(.reg .u32 x) { .reg .pred p; .reg .u32 y;\n"
		"mov.u32 o, 1; setp.lt.u32 p, x, 2; @p ret; sub.u32 y, x, 1;\n"
		"call (y), f, (y); mul.lo.u32 o, x, y; ret; }";

	run(factorial, "and.b32 %r3, %r1, 7; call (%r2), f, (%r3);", factorial_mod);
	run(factorial,
		"and.b32 %r3, %r1, 7; mov.u64 %rd3, f;\n"
		"P: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n"
		"call (%r2), %rd3, (%r3), P;",
		factorial_mod);
}

TEST(vectors_are_arguments)
{
	run(".func (.reg .v2 .u32 o) f(.reg .v4 .u32 x) { add.u32 o.x, x.y, x.w;\n"
	    "mov.u32 o.y, x.z; ret; }",
		".reg .v4 .u32 a; .reg .v2 .u32 b; mov.u32 a.x, 100; mov.u32 a.y, %r1;\n"
		"mov.u32 a.z, 200; mov.u32 a.w, 1; call (b), f, (a); mov.u32 %r2, b.x;",
		next);
}

static const char *const instructions[] = {
	"fma.rn.oob.f16x2 %r1, %r2, %r3, %r4",
	"cvt.rs.f16x2.f32 %r1, %f1, %f2, %r3",
	"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
	"[%d1, {%r1, %r2, %r3, %r4, %r5}], [%r1]",
	"cp.async.bulk.tensor.3d.shared::cta.global.im2col::w::128.mbarrier::"
	"complete_tx::bytes [%r1], [%d1, {%r2, %r3, %r4}], [%r5], {%h1, %h2}",
	"cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::"
	"complete_tx::bytes [%r1], [%d1, {%r2, %r3, %r4}], [%r5], {%h1, %h2}",
	"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::"
	"complete_tx::bytes [%r1], [%d1, {%r1, %r2, %r3, %r4, %r5}], [%r5]",
	"clusterlaunchcontrol.try_cancel.async.shared::cluster.mbarrier::complete_tx::"
	"bytes.b128 [%r1], [%r2]",
	"clusterlaunchcontrol.try_cancel.async.shared::cta.b128 [%r1], [%r2]",
	"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%d1], [%r1], %r2",
	"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
	"min.u64 [%r1], [%r2], %r3, [%r4]",
	"multimem.ld_reduce.global.add.f32 %f1, [%d1]",
	/* Of pairs of integers there are sums, minima and maxima only. */
	"neg.s16x2 %r1, %r2",
	"mul.lo.u16x2 %r1, %r2, %r3",
	"shl.u16x2 %r1, %r2, %r3",
	/* Matrices of bytes are transposed, and not in fours. */
	"ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [%r5]",
	"ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r5]",
	"stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r5], {%r1}",
	"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 "
	"{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}",
	"wgmma.fence.sync.aligned",
	"wgmma.commit_group.sync.aligned",
	"tcgen05.wait::ld.sync.aligned",
	"tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %r2, %r3, "
	"%r4}]",
	"tex.a2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r0, %r1, %r2, "
	"%r3}]",
	/* Forms that later versions may have. */
	"add.f32.f16.f16 %f1, %h1, %h2",
	"add.s32.s64 %r1, %r2, %d1",
	"ld.volatile.relaxed.global.u32 %r1, [%d1]",
	"add.newest.f32 %f1, %f2, %f3",
};

/*
 * An instruction that is not decoded yet is refused with the kernel that uses it; the
 * rest of its module runs. It is in the kernel's third line: the sixth of the text.
 */
TEST(an_unknown_instruction_concerns_its_kernel_alone)
{
	struct softgpu_message message;
	char ptx[2048], name[128];

	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		CLEAN_RIG rig = NULL;
		uint32_t *out;

		snprintf(ptx, sizeof(ptx),
			HEADER ".visible .entry strange() { .reg .b32 %%r<9>;\n"
			       ".reg .b64 %%d<9>; .reg .f32 %%f<9>; .reg .b16 %%h<9>;\n"
			       "%s;\nret; }\n"
			       ".visible .entry plain(.param .u64 p) { .reg .b64 %%d;\n"
			       "ld.param.u64 %%d, [p]; st.global.u32 [%%d], 5; ret; }\n",
			instructions[i]);
		rig = rig_new(ptx);
		out = rig_alloc(rig, 4);
		rig_launch(rig, "plain", 1, 1, &out, sizeof(out));
		check_eq(*out, 5);
		snprintf(name, sizeof(name), "%s", instructions[i]);
		name[strcspn(name, " ")] = 0;
		name[strnlen(name, 80)] = 0;
		memset(&message, 0, sizeof(message));
		check_eq(rig_lookup(ptx, "strange", &message),
			SOFTGPU_ERROR_NOT_SUPPORTED);
		if (!strstr(message.text, name) || !strstr(message.text, "line 6"))
			test_fail(__FILE__, __LINE__, "%s: %s", name, message.text);
	}
}

static uint32_t same(uint32_t x)
{
	return x;
}

TEST(special_registers_have_a_fourth_component_of_zero)
{
	run("", "mov.u32 %r2, %tid.w; add.u32 %r2, %r2, %r1;", same);
	run("", "add.u32 %r2, %nctaid.w, %r1; cvt.u64.u32 %rd3, %ctaid.w;", same);
	run("", "mov.u64 %rd3, %pm3_64; cvt.u32.u64 %r3, %rd3; add.u32 %r2, %r1, %r3;",
		same);
}

TEST(addresses_are_unified_or_have_32_bits)
{
	run("",
		"st.global.u32 [%rd1], %r1; ld.global.u32 %r2, [%rd1].unified;\n"
		"ld.relaxed.gpu.u32 %r3, [%rd1+0].unified; and.b32 %r2, %r2, %r3;",
		same);
	run(".shared .u32 s[4];",
		"mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; mov.u32 %r3, 1;\n"
		"isspacep.shared %p1, %r3; isspacep.shared %p2, %rd3;\n"
		"selp.u32 %r2, 77, %r1, %p1; @!%p2 mov.u32 %r2, 78;",
		same);
}

/* Of 32 bytes some elements may be left as they are. */
TEST(a_sink_is_not_stored)
{
	static const char misaligned[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
		"ld.param.u64 %d, [p];\n"
		"st.global.v8.b32 [%d+16], {_, %r, _, _, _, _, _, _}; ret; }\n"
		".visible .entry small(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
		"ld.param.u64 %d, [p]; st.global.v2.b32 [%d], {_, %r}; ret; }\n";
	CLEAN_RIG rig = rig_new(misaligned);
	struct softgpu_message message = {};
	uint32_t *out = rig_alloc(rig, 64);

	for (unsigned int i = 0; i < 3; i++) {
		static const char *const orders[] = { "", ".relaxed.gpu", ".volatile" };
		char body[1024];

		snprintf(body, sizeof(body),
			"mul.wide.u32 %%rd3, %%r1, 32; mov.u64 %%rd4, g;\n"
			"add.u64 %%rd3, %%rd3, %%rd4; mov.u32 %%r3, 5;\n"
			"st.global.v4.u32 [%%rd3], {%%r3, %%r3, %%r3, %%r3};\n"
			"st.global.v4.u32 [%%rd3+16], {%%r3, %%r3, %%r3, %%r3};\n"
			"st%s.global.v8.b32 [%%rd3], {_, %%r1, _, _, _, _, _, 7};\n"
			"ld.global.v4.u32 {%%r3, %%r4, %%r5, %%r6}, [%%rd3];\n"
			"add.u32 %%r2, %%r3, %%r4; add.u32 %%r2, %%r2, %%r5;\n"
			"add.u32 %%r2, %%r2, %%r6;\n"
			"ld.global.v4.u32 {%%r3, %%r4, %%r5, %%r6}, [%%rd3+16];\n"
			"add.u32 %%r2, %%r2, %%r3; add.u32 %%r2, %%r2, %%r4;\n"
			"add.u32 %%r2, %%r2, %%r5; add.u32 %%r2, %%r2, %%r6;\n"
			"add.u32 %%r2, %%r2, -37;",
			orders[i]);
		run(".global .align 32 .b8 g[2048];", body, same);
	}
	check_eq(rig_run(rig, "k", 1, 1, &out, sizeof(out)),
		SOFTGPU_ERROR_MISALIGNED_ADDRESS);
	check_eq(rig_lookup(misaligned, "small", &message), SOFTGPU_ERROR_NOT_SUPPORTED);
}

TEST(operands_of_predicates_are_negated)
{
	struct softgpu_message message = {};

	run("",
		"setp.lt.u32 %p1, %r1, 20; setp.lt.u32 %p2, %r1, 40;\n"
		"and.pred %p3, !%p1, %p2; @%p3 add.u32 %r2, %r2, %r1;\n"
		"or.pred %p3, %p1, !%p2; @%p3 add.u32 %r2, %r2, %r1;\n"
		"xor.pred %p3, !%p1, !%p1; @%p3 add.u32 %r2, %r2, 1000;\n"
		"not.pred %p3, !%p1; @%p3 add.u32 %r2, %r2, 5000;\n"
		"mov.pred %p3, !%p1; @!%p3 sub.u32 %r2, %r2, 5000;",
		same);
	check_eq(rig_lookup(HEADER ".visible .entry k() { .reg .b32 %r<3>;\n"
				   "and.b32 %r1, !%r2, %r0; ret; }\n",
			 "k", &message),
		SOFTGPU_ERROR_NOT_SUPPORTED);
	check_eq(rig_lookup(HEADER ".visible .entry k() { .reg .b32 %r<3>;\n"
				   "mov.b32 %r1, !%r2; ret; }\n",
			 "k", &message),
		SOFTGPU_ERROR_NOT_SUPPORTED);
}

TEST(a_cache_policy_is_a_number_too)
{
	run("",
		"st.global.L2::cache_hint.u32 [%rd1], %r1, 7;\n"
		"ld.global.L2::cache_hint.u32 %r2, [%rd1], 0;",
		same);
}

/* It is the one special register that is a predicate. */
TEST(a_predicate_is_not_read_as_a_number)
{
	static const char *const uses[] = { "mov.u32 %r1", "mov.b16 %h1", "mov.u64 %d1",
		"cvt.u64.u32 %d1", "add.u32 %r1, %r2", "st.global.u32 [%d1]" };
	struct softgpu_message message;
	char ptx[512];

	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		snprintf(ptx, sizeof(ptx),
			HEADER
			".visible .entry k() { .reg .b32 %%r<3>; .reg .b64 %%d<2>;\n"
			".reg .b16 %%h<2>; %s, %%is_explicit_cluster; ret; }\n",
			uses[i]);
		memset(&message, 0, sizeof(message));
		check_eq(rig_lookup(ptx, "k", &message), SOFTGPU_ERROR_INVALID_PTX);
		check(strstr(message.text, "does not fit"));
	}
	run("",
		"mov.pred %p1, %is_explicit_cluster; mov.u32 %r2, %r1;\n"
		"@%p1 mov.u32 %r2, 77;",
		same);
}

TEST(vectors_are_declared_by_their_number)
{
	run("",
		".reg .v2 .u32 v<3>; mov.u32 v0.x, 50; mov.u32 v0.y, 60; mov.u32 v1.y, "
		"1;\n"
		"mov.u32 v1.x, %r1; mov.u32 v2.x, 70; mov.u32 v2.y, 80;\n"
		".local .align 8 .b8 m[8];\n"
		"st.local.v2.u32 [m], v1; ld.local.v2.u32 v2, [m];\n"
		"add.u32 %r2, v2.x, v1.y;",
		next);
}

static uint32_t count;

static uint32_t counted(uint32_t x)
{
	return count;
}

/* The result of the same text in C, except for % and ~, which are unsigned here. */
TEST(operands_are_constant_expressions)
{
#define SAME(_text)                                                                      \
	do {                                                                             \
		count = (uint32_t)(_text);                                               \
		run("", "mov.u32 %r2, " #_text ";", counted);                            \
	} while (0)
	SAME(1 + 2);
	SAME((1 + 2) * 4);
	SAME(1 << 3 | 1);
	SAME(7 - 3 - 2);
	SAME(-5 / 2);
	SAME(0x80 >> 3);
	SAME(-16 >> 2);
	SAME(1 < 2 && 3);
	SAME(1 == 2 || 0);
	SAME(3 >= 3);
	SAME(3 <= 2);
	SAME(1 != 1);
	SAME(-1 < 1);
	SAME(1 ? 2 : 3);
	SAME(0 ? 2 : 0 ? 3 : 4);
	SAME(!0 + !7);
	SAME(1.5 < 2.0 ? 7 : 8);
#undef SAME
	count = 22;
	run("", "mov.u32 %r2, -1 < 1U ? 11 : 22;", counted);
	count = 11;
	run("", "mov.u32 %r2, 6 & 3 ^ 8 | 1;", counted);
	count = 31;
	run("", "mov.u32 %r2, WARP_SZ-1;", counted);
	count = 64;
	run("", "mov.u32 %r2, 2*WARP_SZ;", counted);
	count = UINT32_MAX;
	run("", "mov.u32 %r2, (.s64)-1;", counted);
	count = 1;
	run("", "mov.u32 %r2, (.u64)-1 > 5;", counted);
	count = 7;
	run("", "mov.f32 %f1, 1.5*2.0+4.0; cvt.rzi.u32.f32 %r2, %f1;", counted);
	run("", ".reg .b32 q<2+3>; mov.u32 q4, 7; mov.u32 %r2, q4;", counted);
	run(".global .u32 t[2 > 1 ? 4 : 1] = {1, 5 == 5, 3+4};",
		"ld.global.u32 %r2, [t+4*2];", counted);
}
