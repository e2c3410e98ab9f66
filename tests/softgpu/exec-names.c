/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and operands: variables in functions and outside of the module, elements, lists
 * of targets, bytes and vectors; and numbers in few bits
 */

#include "exec-body.h"

/*
 * Registers and variables
 */

TEST(bytes_are_put_together_and_taken_apart)
{
	CLEAN_RIG rig = rig_of("",
		"mov.u32 %r1, 0x44332211; mov.b32 {%b1, %b2, %b3, %b4}, %r1;\n"
		"mov.b32 %r2, {%b4, %b3, %b2, %b1}; mov.b16 %h1, {%b2, %b1};\n"
		"mov.b16 {%b5, %b6}, %h1; cvt.u32.u16 %r3, %h1; mov.b16 %h2, {%b6, "
		"%b5};\n"
		"cvt.u32.u16 %r4, %h2; st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r1};");
	struct buffers b = buffers_of(rig, 1);
	const uint32_t want[4] = { 0x11223344, 0x1122, 0x2211, 0x44332211 };

	run_well(rig, &b, 1);
	check(!memcmp(b.out[0], want, sizeof(want)));
}

TEST(the_threads_number_is_a_vector)
{
	CLEAN_RIG rig = rig_of("", "mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid;\n"
				   "st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};");
	struct buffers b = buffers_of(rig, 64);
	const uint32_t want[4] = { 64, 1, 1, 0 };

	run_well(rig, &b, 64);
	check(!memcmp(b.out[63], want, sizeof(want)));
}

/* In the order of the elements: an index counts those, in 32 bits. */
TEST(elements_of_variables_are_operands)
{
	CLEAN_RIG rig = rig_of(".global .u32 g[8] = {10, 11, 12, 13, 14, 15, 16, 17};\n"
			       ".global .v2 .u16 v[3] = {{1, 2}, {3, 4}, {5, 6}};",
		".shared .u32 s[72]; .local .u32 m[4]; .shared .u32 t[2][3];\n"
		"st.shared.u32 s[%r0], %r0; st.shared.u32 s[%r0+1], %r0; bar.sync 0;\n"
		"and.b32 %r1, %r0, 3; ld.global.u32 %r2, g[%r1+2]; ld.global.u32 %r3, "
		"g[7];\n"
		"st.local.u32 m[%r1], %r2; ld.local.u32 %r4, m[%r1]; ld.shared.u32 %r5, "
		"s[2];\n"
		"sub.u32 %r6, %r1, 4; ld.shared.u32 %r6, s[%r6+4]; mov.u32 %r7, t[1];\n"
		"mov.u32 %r8, t; sub.u32 %r7, %r7, %r8; mov.u64 %d3, g[%r1];\n"
		"ld.global.u32 %r8, [%d3]; ld.global.u16 %r9, v[1];\n"
		"st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5};\n"
		"st.global.v4.u32 [%d1+16], {%r6, %r7, %r8, %r9};");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t k = i % 4, seen = b.out[i][4];
		const uint32_t want[8] = { 12 + k, 17, 12 + k, b.out[i][3], seen, 4,
			10 + k, 3 };

		check(!memcmp(b.out[i], want, sizeof(want)));
		check(b.out[i][3] == 1 || b.out[i][3] == 2);
		check(seen == k || seen + 1 == k);
	}
}

/* They are the module's: they last, and each function has its own. */
TEST(variables_of_a_module_are_declared_in_functions)
{
	CLEAN_RIG rig = rig_of(".global .u32 x = 1000;\n"
			       ".func (.reg .u32 o) f() { .global .u32 x = 5; .const "
			       ".u32 c[2] = {7, 8};\n"
			       ".reg .b32 r; ld.global.u32 o, [x]; add.u32 r, o, 1; "
			       "st.global.u32 [x], r;\n"
			       "ld.const.u32 r, [c+4]; mad.lo.u32 o, r, 100, o; ret; }",
		"ld.global.u32 %r4, [x];\n"
		"{ .global .u32 x[2] = {1, 2}, y; // .global .u32 z;\n"
		".global .u64 at = x; /* ; .global .u32 x; */\n"
		"{ .global .align 8 .u32 x; st.global.u32 [x], 77; ld.global.u32 %r5, "
		"[x]; }\n"
		"ld.global.u64 %d3, [at]; ld.u32 %r1, [%d3+4]; ld.global.u32 %r2, [y];\n"
		"add.u32 %r6, %r2, 1; st.global.u32 [y], %r6; }\n"
		"call (%r3), f; ld.global.u32 %r6, [x];\n"
		"st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};\n"
		"st.global.v2.u32 [%d1+16], {%r5, %r6};");
	struct buffers b = buffers_of(rig, 1);

	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t want[6] = { 2, i, 805 + i, 1000, 77, 1000 };

		run_well(rig, &b, 1);
		check(!memcmp(b.out[0], want, sizeof(want)));
	}
}

TEST(an_external_variable_concerns_the_kernels_that_use_it)
{
	static const char text[] =
		HEADER ".extern .global .u32 missing[4]; .extern .const .u32 other[];\n"
		       ".visible .entry uses() { .reg .b32 %r;\n"
		       "ld.global.u32 %r, [missing+4]; ret; }\n"
		       ".visible .entry k(.param .u64 p, .param .u64 o) { .reg .b64 %d;\n"
		       "ld.param.u64 %d, [o]; st.global.u32 [%d], 3; ret; }\n";
	struct softgpu_message message = {};
	CLEAN_RIG rig = rig_new(text);
	struct buffers b = buffers_of(rig, 1);

	run_well(rig, &b, 1);
	check_eq(b.out[0][0], 3);
	check_eq(rig_lookup(text, "uses", &message), SOFTGPU_ERROR_INVALID_PTX);
	check(strstr(message.text, "missing") && strstr(message.text, "line 6"));
}

TEST(a_list_of_targets_gives_the_type_of_a_call)
{
	CLEAN_RIG rig = rig_of(".func (.param .u32 o) f(.param .u32 x) { .reg .b32 r; "
			       "ld.param.u32 r, [x];\n"
			       "add.u32 r, r, 1; st.param.u32 [o], r; ret; }\n"
			       ".func (.param .u32 o) g(.param .u32 x) { .reg .b32 r; "
			       "ld.param.u32 r, [x];\n"
			       "mul.lo.u32 r, r, r; st.param.u32 [o], r; ret; }",
		"and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; mov.u64 %d3, f;\n"
		"@%p1 mov.u64 %d3, g; { .param .u32 a; .param .u32 r;\n"
		"T: .calltargets f, g; st.param.u32 [a], %r0; call (r), %d3, (a), T;\n"
		"ld.param.u32 %r2, [r]; } st.global.u32 [%d1], %r2;");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++)
		check_eq(b.out[i][0], i % 2 ? i + 1 : i * i);
}

TEST(an_address_is_asked_for_its_type)
{
	CLEAN_RIG rig = rig_of(".global .texref t; .global .surfref s; .global .u64 g; "
			       ".global .texref u;",
		"mov.u64 %d3, u; istypep.texref %p1, %d3; istypep.surfref %p2, %d3;\n"
		"istypep.samplerref %p3, %d3; selp.u32 %r1, 1, 0, %p1;\n"
		"selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 1, 0, %p3; istypep.surfref %p1, "
		"s;\n"
		"mov.u64 %d3, g; istypep.texref %p2, %d3; selp.u32 %r4, 1, 0, %p1;\n"
		"selp.u32 %r5, 1, 0, %p2; st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};\n"
		"st.global.u32 [%d1+16], %r5;");
	struct buffers b = buffers_of(rig, 1);
	const uint32_t want[5] = { 1, 0, 0, 1, 0 };

	run_well(rig, &b, 1);
	check(!memcmp(b.out[0], want, sizeof(want)));
}

/*
 * Numbers
 */

static int32_t clamp(int32_t x, int32_t low, int32_t high)
{
	return x < low ? low : x > high ? high : x;
}

/* Literally the ISA's table of cvt.pack. */
TEST(numbers_are_saturated_and_packed)
{
	static const struct {
		const char *type;
		uint32_t bits;
		bool is_signed;
	} forms[] = { { "u2", 2, false }, { "s2", 2, true }, { "u4", 4, false },
		{ "s4", 4, true }, { "u8", 8, false }, { "s8", 8, true },
		{ "u16", 16, false }, { "s16", 16, true } };
	static const int32_t edges[] = { 0, 1, -1, 2, -2, -3, 3, 4, 7, 8, -8, -9, 15, 16,
		127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769, 65535,
		65536, INT32_MAX, INT32_MIN };
	enum { N = sizeof(edges) / sizeof(edges[0]) };

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		uint32_t n = forms[f].bits, ones = (1u << n) - 1;
		int32_t high = (int32_t)(forms[f].is_signed ? ones / 2 : ones);
		int32_t low = forms[f].is_signed ? -high - 1 : 0;
		CLEAN_RIG rig = NULL;
		struct buffers b;
		char body[512];

		snprintf(body, sizeof(body),
			n < 16 ? "ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%d1];\n"
				 "cvt.pack.sat.%s.s32.b32 %%r5, %%r1, %%r2, %%r3;\n"
				 "st.global.u32 [%%d1+16], %%r5;"
			       : "ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%d1];\n"
				 "cvt.pack.sat.%s.s32 %%r5, %%r1, %%r2;\n"
				 "st.global.u32 [%%d1+16], %%r5;",
			forms[f].type);
		rig = rig_of("", body);
		b = buffers_of(rig, N * N);
		for (uint32_t i = 0; i < N * N; i++) {
			b.out[i][0] = (uint32_t)edges[i / N];
			b.out[i][1] = (uint32_t)edges[i % N];
			b.out[i][2] = 0x89abcdefu * (i + 1);
		}
		run_well(rig, &b, N * N);
		for (uint32_t i = 0; i < N * N; i++) {
			uint32_t ta = (uint32_t)clamp(edges[i / N], low, high) & ones;
			uint32_t tb = (uint32_t)clamp(edges[i % N], low, high) & ones;
			uint32_t want = ta << n | tb;

			if (n < 16)
				want |= (0x89abcdefu * (i + 1)) << 2 * n;
			if (b.out[i][4] != want)
				test_fail(__FILE__, __LINE__, "%s: %d, %d is %x, not %x",
					forms[f].type, edges[i / N], edges[i % N],
					b.out[i][4], want);
		}
	}
}

TEST(the_least_magnitude_of_three_is_found)
{
	static const float rows[][3] = { { -1, 2, -3 }, { NAN, -4, 5 }, { -0.0f, 0, 1 },
		{ -INFINITY, -2, NAN }, { NAN, NAN, NAN } };
	enum { N = sizeof(rows) / sizeof(rows[0]) };
	CLEAN_RIG rig = rig_of("",
		"ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+4];\n"
		"ld.global.f32 %f3, [%d1+8]; min.abs.f32 %f4, %f1, %f2, %f3;\n"
		"max.NaN.abs.f32 %f5, %f1, %f2, %f3; st.global.f32 [%d1+16], %f4;\n"
		"st.global.f32 [%d1+20], %f5;");
	struct buffers b = buffers_of(rig, N);

	for (uint32_t i = 0; i < N; i++)
		memcpy(b.out[i], rows[i], 12);
	run_well(rig, &b, N);
	for (uint32_t i = 0; i < N; i++) {
		const float *x = rows[i];
		float least = NAN, most = NAN;
		uint32_t want[2];
		bool nan = x[0] != x[0] || x[1] != x[1] || x[2] != x[2];

		for (uint32_t k = 0; k < 3; k++) {
			least = combine(MIN, least, fabsf(x[k]));
			most = combine(MAX, most, fabsf(x[k]));
		}
		memcpy(&want[0], &least, 4);
		memcpy(&want[1], &most, 4);
		want[0] = least != least ? 0x7fffffff : want[0];
		want[1] = nan ? 0x7fffffff : want[1];
		check_eq(b.out[i][4], want[0]);
		check_eq(b.out[i][5], want[1]);
	}
}
