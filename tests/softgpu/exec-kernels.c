/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole kernels on the engine: what first programs do
 */

#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 7.0\n.target sm_75\n.address_size 64\n"
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
		".reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<10>; .reg .b64 %rd<11>;\n"
		"ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];\n"
		"ld.param.u32 %r2, [n];\n" GLOBAL_ID
		"setp.ge.s32 %p1, %r9, %r2;\n"
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
	} params = {a, b, c, n};

	for (uint32_t i = 0; i < n; i++) {
		a[i] = (float)i * 0.5f;
		b[i] = 3.0f - (float)i;
	}
	rig_launch(rig, "add", 4, 256, &params, sizeof(params));
	for (uint32_t i = 0; i < n; i++)
		check(c[i] == a[i] + b[i]);
	check(c[n] == 0);
}
