/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole kernels on the engine: what first programs do
 */

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "exec-harness.h"
#include "exec/warp.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* The number of the thread in the grid in %r9. */
#define GLOBAL_ID                                                                        \
	"mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ntid.x; mov.u32 %r8, %tid.x;\n"            \
	"mad.lo.s32 %r9, %r6, %r7, %r8;\n"

TEST(vectors_are_added)
{
	static const char ptx[] = HEADER
		".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c,\n"
		"	.param .u32 n) {\n"
		".reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<10>; .reg .b64 "
		"%rd<11>;\n"
		"ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, "
		"[c];\n"
		"ld.param.u32 %r2, [n];\n" GLOBAL_ID "setp.ge.s32 %p1, %r9, %r2;\n"
		"@%p1 bra DONE;\n"
		"cvta.to.global.u64 %rd4, %rd1;\n"
		"mul.wide.s32 %rd5, %r9, 4;\n"
		"add.s64 %rd6, %rd4, %rd5;\n"
		"cvta.to.global.u64 %rd7, %rd2;\n"
		"add.s64 %rd8, %rd7, %rd5;\n"
		"ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd6];\n"
		"add.f32 %f3, %f2, %f1;\n"
		"cvta.to.global.u64 %rd9, %rd3;\n"
		"add.s64 %rd10, %rd9, %rd5;\n"
		"st.global.f32 [%rd10], %f3;\n"
		"DONE: ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	const uint32_t n = 1000;
	float *a = rig_alloc(rig, n * 4), *b = rig_alloc(rig, n * 4);
	float *c = rig_alloc(rig, n * 4 + 128);
	struct {
		float *a, *b, *c;
		uint32_t n;
	} params = { a, b, c, n };

	for (uint32_t i = 0; i < n; i++) {
		a[i] = (float)i * 0.5f;
		b[i] = 3.0f - (float)i;
	}
	rig_launch(rig, "add", 4, 256, &params, sizeof(params));
	for (uint32_t i = 0; i < n; i++)
		check(c[i] == a[i] + b[i]);
	check(c[n] == 0);
}

TEST(a_block_reads_its_place_in_the_grid)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p];\n"
		"mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
		"mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;\n"
		"mov.u32 %r7, %ntid.x; mov.u32 %r8, %ntid.y; mov.u32 %r9, %nctaid.x;\n"
		"mov.u32 %r10, %nctaid.y;\n"
		"mad.lo.u32 %r11, %r3, %r8, %r2; mad.lo.u32 %r11, %r11, %r7, %r1;\n"
		"mad.lo.u32 %r12, %r6, %r10, %r5; mad.lo.u32 %r12, %r12, %r9, %r4;\n"
		"mad.lo.u32 %r13, %r12, 60, %r11; mul.wide.u32 %rd2, %r13, 16;\n"
		"add.u64 %rd2, %rd2, %rd1; mov.u32 %r14, %laneid; mov.u32 %r15, "
		"%warpid;\n"
		"mov.u32 %r16, %lanemask_le; mov.u32 %r17, %envreg2; mov.u32 %r18, "
		"%smid;\n"
		"add.u32 %r17, %r17, %r18;\n"
		"st.global.v4.u32 [%rd2], {%r14, %r15, %r16, %r17}; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 24 * 60 * 16),
		 envreg[SOFTGPU_ENVREGS] = { 0, 5, 90 };
	struct softgpu_launch launch = {
		.kernel = rig_kernel(rig, "k"),
		.grid = { 4, 3, 2 },
		.block = { 5, 4, 3 },
		.params = &out,
		.params_size = sizeof(out),
		.space = &rig->space,
		.envreg = envreg,
	};

	check_eq(softgpu_run_blocks(rig->scratch, &launch, 0, 24, &rig->fault), 0);
	for (uint32_t i = 0; i < 24 * 60; i++, out += 4) {
		check_eq(out[0], i % 60 % 32);
		check_eq(out[1], i % 60 / 32);
		check_eq(out[2], UINT32_MAX >> (31 - i % 60 % 32));
		check_eq(out[3], 93);
	}
}

TEST(shared_memory_is_static_and_dynamic)
{
	static const char ptx[] = HEADER
		".extern .shared .align 16 .b8 dyn[];\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"
		".shared .align 4 .b8 fix[36];\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;\n"
		"mov.u32 %r3, dyn; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;\n"
		"mov.u32 %r4, 123; st.shared.u32 [fix+32], %r4; bar.sync 0;\n"
		"ld.shared.u32 %r5, [dyn+12]; ld.shared.u32 %r6, [fix+32];\n"
		"add.u32 %r5, %r5, %r6; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, "
		"%rd1;\n"
		"st.global.u32 [%rd2], %r5; mov.u32 %r7, dyn; st.global.u32 [%rd2+256], "
		"%r7;\n"
		"ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512);

	rig->dynamic_shared_size = 256;
	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (int i = 0; i < 64; i++)
		check_eq(out[i], 126);
	check_eq(out[64], 48);
	check_eq(softgpu_kernel_info(rig_kernel(rig, "k"))->static_shared_size, 48);
}

TEST(generic_addresses_reach_every_space)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<30>; .reg .b64 "
		"%rd<30>;\n"
		".reg .pred %p<9>; .shared .align 8 .b8 s[512]; .local .align 16 .b8 "
		"l[32];\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, "
		"8;\n"
		"mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; add.u64 %rd3, %rd3, %rd2;\n"
		"mov.u64 %rd4, l; cvta.local.u64 %rd4, %rd4; add.u64 %rd5, %rd1, %rd2;\n"
		"st.u64 [%rd3], %rd2; st.u32 [%rd4+4], %r1; st.local.u32 [l+8], %r1;\n"
		"ld.u32 %r2, [%rd4+8]; ld.local.u32 %r3, [l+4]; add.u32 %r2, %r2, %r3;\n"
		"cvta.to.shared.u64 %rd6, %rd3; ld.shared.u64 %rd7, [%rd6];\n"
		"ld.u64 %rd8, [%rd3]; add.u64 %rd7, %rd7, %rd8; cvt.u64.u32 %rd9, %r2;\n"
		"add.u64 %rd7, %rd7, %rd9; st.u64 [%rd5], %rd7;\n"
		"isspacep.shared %p1, %rd3; isspacep.local %p2, %rd4;\n"
		"isspacep.global %p3, %rd1; isspacep.global %p4, %rd3;\n"
		"and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3; not.pred %p4, %p4;\n"
		"and.pred %p1, %p1, %p4; selp.u32 %r5, 1, 0, %p1;\n"
		"red.add.u32 [%rd1+1024], %r5; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint64_t *out = rig_alloc(rig, 2048);

	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint64_t i = 0; i < 64; i++)
		check_eq(out[i], 8 * i * 2 + 2 * i);
	check_eq(out[128], 64);
}

TEST(functions_are_called_with_arguments_in_memory)
{
	static const char ptx[] = HEADER
		".func (.param .b32 r) twice(.param .b32 x, .param .b64 y) {\n"
		".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;\n"
		"ld.param.u32 %r1, [x]; ld.param.u64 %rd1, [y]; cvt.u32.u64 %r2, %rd1;\n"
		"setp.gt.u32 %p, %r1, 40; @%p bra BIG; mad.lo.u32 %r3, %r1, 2, %r2;\n"
		"st.param.b32 [r], %r3; ret;\n"
		"BIG: st.param.b32 [r], 7; ret; }\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"
		".reg .pred %p<3>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"
		"mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; mov.u64 %rd3, "
		"1000;\n"
		"{ .param .b32 a0; .param .b64 a1; .param .b32 ret0;\n"
		"st.param.b32 [a0], %r1; st.param.b64 [a1], %rd3;\n"
		"call.uni (ret0), twice, (a0, a1); ld.param.b32 %r4, [ret0]; }\n"
		"and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 1; add.u64 %rd3, %rd3, 1;\n"
		"{ .param .b32 a0; .param .b64 a1; .param .b32 ret0; st.param.b32 "
		"[ret0], 0;\n"
		"st.param.b32 [a0], %r1; st.param.b64 [a1], %rd3;\n"
		"@%p1 call (ret0), twice, (a0, a1); ld.param.b32 %r6, [ret0]; }\n"
		"add.u32 %r4, %r4, %r6; st.global.u32 [%rd2], %r4; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 256);

	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint32_t i = 0; i < 64; i++)
		check_eq(out[i], (i > 40 ? 7 : 2 * i + 1000) +
					 (i % 2 ? (i > 40 ? 7 : 2 * i + 1001) : 0));
}

TEST(functions_are_called_through_pointers)
{
	static const char ptx[] = HEADER
		".func (.param .b32 r) one(.param .b32 x) { .reg .b32 %r;\n"
		"ld.param.u32 %r, [x]; add.u32 %r, %r, 1; st.param.b32 [r], %r; ret; }\n"
		".func (.param .b32 r) two(.param .b32 x) { .reg .b32 %r;\n"
		"ld.param.u32 %r, [x]; mul.lo.u32 %r, %r, 7; st.param.b32 [r], %r; ret; "
		"}\n"
		".global .align 8 .u64 table[3] = {one, two};\n"
		".visible .entry k(.param .u64 p, .param .u32 n) { .reg .b32 %r<9>;\n"
		".reg .b64 %rd<9>; ld.param.u64 %rd1, [p]; ld.param.u32 %r5, [n];\n"
		"mov.u32 %r1, %tid.x;\n"
		"mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; rem.u32 %r2, %r1, "
		"%r5;\n"
		"mul.wide.u32 %rd3, %r2, 8; mov.u64 %rd4, table; add.u64 %rd3, %rd3, "
		"%rd4;\n"
		"ld.global.u64 %rd5, [%rd3];\n"
		"{ .param .b32 a0; .param .b32 q; st.param.b32 [a0], %r1;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q), %rd5, (a0), proto; ld.param.b32 %r4, [q]; }\n"
		"st.global.u32 [%rd2], %r4; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	struct {
		uint32_t *out;
		uint32_t n;
	} params = { rig_alloc(rig, 256), 2 };

	rig_launch(rig, "k", 1, 64, &params, sizeof(params));
	for (uint32_t i = 0; i < 64; i++)
		check_eq(params.out[i], i % 2 ? i * 7 : i + 1);
	params.n = 3;
	check_eq(rig_run(rig, "k", 1, 64, &params, sizeof(params)), 718);
	check_eq(rig->fault.thread[0], 2);
}

TEST(variables_start_with_their_values)
{
	static const char ptx[] = HEADER
		".global .align 4 .u32 numbers[4] = {10, 20, 30};\n"
		".const .align 8 .u64 pointer[2] = {numbers, generic(numbers)+4};\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p]; ld.const.u64 %rd2, [pointer+8];\n"
		"ld.global.u32 %r1, [%rd2]; ld.global.u32 %r2, [numbers+8];\n"
		"mov.u64 %rd3, numbers; ld.global.u32 %r3, [%rd3+12];\n"
		"add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%rd1], "
		"%r1;\n"
		"atom.global.add.u32 %r4, [numbers], 5; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 256);

	rig_launch(rig, "k", 1, 1, &out, sizeof(out));
	check_eq(out[0], 50);
	check_eq(softgpu_program_n_variables(rig->program), 2);
	check(softgpu_program_variable(rig->program, 1)->is_const);
	check_eq(softgpu_kernel_info(rig_kernel(rig, "k"))->const_size, 16);
}

TEST(a_branch_goes_through_a_table)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, "
		"4;\n"
		"add.u64 %rd2, %rd2, %rd1; rem.u32 %r2, %r1, 3;\n"
		"T: .branchtargets A, B, C;\n"
		"brx.idx %r2, T;\n"
		"A: mov.u32 %r3, 100; bra D;\n"
		"B: mov.u32 %r3, 200; bra D;\n"
		"C: mov.u32 %r3, 300;\n"
		"D: activemask.b32 %r4; popc.b32 %r4, %r4; add.u32 %r3, %r3, %r4;\n"
		"st.global.u32 [%rd2], %r3; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 256);

	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint32_t i = 0; i < 64; i++)
		check_eq(out[i], (i % 3 + 1) * 100 + 32);
}

TEST(vectors_of_every_width_are_loaded_and_stored)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<19>;\n"
		".reg .b16 %h<9>; .reg .pred %p<3>;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, "
		"32;\n"
		"add.u64 %rd2, %rd2, %rd1; setp.ne.u32 %p1, %r1, 5;\n"
		"@%p1 ld.global.v4.u64 {%rd3, %rd4, %rd5, %rd2}, [%rd2];\n"
		"mul.wide.u32 %rd6, %r1, 32; add.u64 %rd6, %rd6, %rd1;\n"
		"@%p1 st.global.v4.u64 [%rd6], {%rd2, %rd5, %rd4, %rd3};\n"
		"ld.global.v2.u16 {%h1, %h2}, [%rd6]; st.global.v2.u16 [%rd6], {%h2, "
		"%h1};\n"
		"ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%rd6+8];\n"
		"st.global.v4.u8 [%rd6+8], {%h4, %h3, %h2, %h1};\n"
		"ld.global.s8 %rd7, [%rd6+16]; st.global.u64 [%rd6+16], %rd7; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint64_t *out = rig_alloc(rig, 64 * 32), v[4];

	for (uint64_t i = 0; i < 256; i++)
		out[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint64_t i = 0; i < 64; i++) {
		for (uint64_t k = 0; k < 4; k++)
			v[i == 5 ? k : 3 - k] =
				(4 * i + k) * UINT64_C(0x9e3779b97f4a7c15);
		v[0] = (v[0] & ~UINT64_C(0xffffffff)) | (v[0] & 0xffff) << 16 |
		       (v[0] >> 16 & 0xffff);
		v[1] = (v[1] & ~UINT64_C(0xffffffff)) | __builtin_bswap32((uint32_t)v[1]);
		v[2] = (uint64_t)(int64_t)(int8_t)v[2];
		check(!memcmp(v, out + 4 * i, 32));
	}
}

static void collect(void *data, const char *text, size_t size)
{
	strncat(data, text, size);
}

static uint64_t give_memory(void *data, uint64_t size)
{
	return size == 24 ? (uintptr_t)data : 0;
}

static void take_memory(void *data, uint64_t address)
{
	strcat(data, address == (uintptr_t)data ? "freed" : "strange");
}

/* The format and the string are "%d %5.1f [%-4s] %llx %n%c%%" and "ab". */
#define PRINT_MODULE                                                                     \
	HEADER ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"  \
	       ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"                  \
	       ".extern .func free(.param .b64 p);\n"                                    \
	       ".extern .func __assertfail(.param .b64 m, .param .b64 f,\n"              \
	       ".param .b32 l, .param .b64 g, .param .b64 s);\n"                         \
	       ".global .align 1 .b8 str[3] = {97, 98, 0};\n"                            \
	       ".global .align 1 .b8 fmt[27] = "                                         \
	       "{37,100,32,37,53,46,49,102,32,91,37,45,\n"                               \
	       "52,115,93,32,37,108,108,120,32,37,110,37,99,37,37};\n"

TEST(kernels_print)
{
	static const char ptx[] = PRINT_MODULE
		".visible .entry k() { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 "
		"%fd<3>;\n"
		".local .align 8 .b8 args[48]; mov.u32 %r1, %tid.x;\n"
		"st.local.u32 [args], %r1; cvt.rn.f64.u32 %fd1, %r1;\n"
		"st.local.f64 [args+8], %fd1; mov.u64 %rd1, str; st.local.u64 [args+16], "
		"%rd1;\n"
		"mov.u64 %rd2, 0xabcdef012345; st.local.u64 [args+24], %rd2;\n"
		"st.local.u64 [args+32], %rd1; mov.u32 %r2, 33; st.local.u32 [args+40], "
		"%r2;\n"
		"mov.u64 %rd3, args; cvta.local.u64 %rd3, %rd3; mov.u64 %rd4, fmt;\n"
		"{ .param .b64 p0; .param .b64 p1; .param .b32 q;\n"
		"st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd3;\n"
		"call.uni (q), vprintf, (p0, p1); ld.param.b32 %r3, [q]; } ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	char text[256] = "";

	rig->hooks = (struct softgpu_hooks){ .data = text, .print = collect };
	rig_launch(rig, "k", 1, 2, NULL, 0);
	check_str(text, "0   0.0 [ab  ] abcdef012345 !%1   1.0 [ab  ] abcdef012345 !%");
}

TEST(kernels_allocate_and_assert)
{
	static const char ptx[] = PRINT_MODULE
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p]; mov.u64 %rd2, 24; mov.u64 %rd5, str;\n"
		"{ .param .b64 p0; .param .b64 q; st.param.b64 [p0], %rd2;\n"
		"call.uni (q), malloc, (p0); ld.param.b64 %rd3, [q]; }\n"
		"st.global.u64 [%rd1], %rd3;\n"
		"{ .param .b64 p0; st.param.b64 [p0], %rd3; call.uni free, (p0); }\n"
		"{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3;\n"
		".param .b64 p4; st.param.b64 [p0], %rd5; st.param.b64 [p1], %rd5;\n"
		"st.param.b32 [p2], 77; st.param.b64 [p3], %rd5; st.param.b64 [p4], 1;\n"
		"call.uni __assertfail, (p0, p1, p2, p3, p4); } ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint64_t *out = rig_alloc(rig, 64);
	char text[256] = "";

	rig->hooks = (struct softgpu_hooks){
		.data = text,
		.print = collect,
		.malloc = give_memory,
		.free = take_memory,
		.heap = text,
	};
	check_eq(rig_run(rig, "k", 1, 1, &out, sizeof(out)), 710);
	check_eq(out[0], (uintptr_t)text);
	check_str(text, "freedab:77: ab: block: [0,0,0], thread: [0,0,0] Assertion `ab` "
			"failed.\n");
}

TEST(handlers_follow_what_the_machine_has)
{
	const char *plain = NULL, *best = NULL, *wide = NULL;
	const insn_fn *base = softgpu_handlers_for(MACHINE_BASE, &plain);
	const insn_fn *table = softgpu_handlers_for(MACHINE_V3, &best);

	check(base == softgpu_handlers_base);
	check(plain && best);
#ifdef __x86_64__
	check_str(plain, "x86-64");
	check_str(best, "x86-64-v3");
	check(table != base);
	check(!softgpu_uses_512);
	check(softgpu_handlers_for(MACHINE_512, &wide) == table);
	check(softgpu_uses_512 && strcmp(wide, best));
	for (int i = 0; i < _OP_N; i++)
		check(!base[i] == !table[i] && (!base[i] || base[i] != table[i]));
#else
	check(table == base);
#endif
}

/* X(format, type that is passed, argument, argument in C) */
#define PRINT_ROWS(X)                                                                    \
	X("%d", uint32_t, (uint32_t)-7, -7)                                              \
	X("%+i|", uint32_t, 7, 7)                                                        \
	X("% d", uint32_t, 7, 7)                                                         \
	X("%8.3d|", uint32_t, 7, 7)                                                      \
	X("%-8u|", uint32_t, UINT32_MAX, UINT32_MAX)                                     \
	X("%#o", uint32_t, 8, 8)                                                         \
	X("%#010x", uint32_t, 0xbeef, 0xbeef)                                            \
	X("%X", uint32_t, 0xbeef, 0xbeef)                                                \
	X("%hd", uint32_t, 0x18000, (short)-0x8000)                                      \
	X("%hu", uint32_t, 0x18000, (unsigned short)0x8000)                              \
	X("%hhd", uint32_t, 0x1ff, (signed char)-1)                                      \
	X("%hhx", uint32_t, 0x1ff, (unsigned char)0xff)                                  \
	X("%ld", uint64_t, (uint64_t)INT64_MIN, (long)INT64_MIN)                         \
	X("%lld", uint64_t, (uint64_t)-5, -5LL)                                          \
	X("%llu", uint64_t, UINT64_MAX, (unsigned long long)UINT64_MAX)                  \
	X("%lx", uint64_t, 0x123456789abcdef, 0x123456789abcdefL)                        \
	X("%zu", uint64_t, 1234567890123, (size_t)1234567890123)                         \
	X("%jd", uint64_t, (uint64_t)-1, (intmax_t)-1)                                   \
	X("%td", uint64_t, (uint64_t)-2, (ptrdiff_t)-2)                                  \
	X("%f", double, -1.5, -1.5)                                                      \
	X("%F", double, HUGE_VAL, HUGE_VAL)                                              \
	X("%12.4e|", double, 12345.678, 12345.678)                                       \
	X("%E", double, 1e-300, 1e-300)                                                  \
	X("%g", double, 1e20, 1e20)                                                      \
	X("%#G", double, 2.0, 2.0)                                                       \
	X("%a", double, 0.1, 0.1)                                                        \
	X("%A", double, -0.0, -0.0)                                                      \
	X("%-3c|", uint32_t, 'x', 'x')                                                   \
	X("%p", uint64_t, 0x1234, (void *)0x1234)

/* A kernel that prints one format with its arguments. */
#define PRINT_ONE                                                                        \
	PRINT_MODULE                                                                     \
	".visible .entry k(.param .u64 f, .param .u64 a) {\n"                            \
	".reg .b32 %r<3>; .reg .b64 %rd<3>;\n"                                           \
	"ld.param.u64 %rd1, [f]; ld.param.u64 %rd2, [a];\n"                              \
	"{ .param .b64 p0; .param .b64 p1; .param .b32 q;\n"                             \
	"st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;\n"                            \
	"call.uni (q), vprintf, (p0, p1); ld.param.b32 %r1, [q]; } ret; }\n"

TEST(every_conversion_prints_what_c_prints)
{
	static const char ptx[] = PRINT_ONE;
	CLEAN_RIG rig = rig_new(ptx);
	struct {
		char *format;
		void *arguments;
	} params = { rig_alloc(rig, 64), rig_alloc(rig, 16) };
	char text[512], expected[512];

#define PRINT_ROW(_format, _T, _argument, _c)                                            \
	strcpy(params.format, _format);                                                  \
	*(_T *)params.arguments = (_argument);                                           \
	memset(text, 0, sizeof(text));                                                   \
	rig->hooks = (struct softgpu_hooks){ .data = text, .print = collect };           \
	rig_launch(rig, "k", 1, 1, &params, sizeof(params));                             \
	snprintf(expected, sizeof(expected), _format, _c);                               \
	check_str(text, expected);

	PRINT_ROWS(PRINT_ROW)
}

/* Digits after an asterisk are not valid in C: they are skipped, and do not overflow. */
TEST(a_width_from_an_argument_takes_no_digits_from_the_text)
{
	static const char ptx[] = PRINT_ONE;
	CLEAN_RIG rig = rig_new(ptx);
	struct {
		char *format;
		uint32_t *arguments;
	} params = { rig_alloc(rig, 64), rig_alloc(rig, 16) };
	char text[512] = "";

	strcpy(params.format, "%*999999999d|%.*99999d|");
	params.arguments[0] = (uint32_t)-4;
	params.arguments[1] = 7;
	params.arguments[2] = 3;
	params.arguments[3] = 5;
	rig->hooks = (struct softgpu_hooks){ .data = text, .print = collect };
	rig_launch(rig, "k", 1, 1, &params, sizeof(params));
	check_str(text, "7   |005|");
}
