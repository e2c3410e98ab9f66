/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Additions of later versions of PTX: 128 bits, vectors of atomic operations, memory from
 * the stack, clusters of one block, and hints without effect
 */

#include "exec-body.h"
#include "exec/texture.h"

/*
 * 128 bits
 */

TEST(registers_of_128_bits_are_put_together_and_taken_apart)
{
	CLEAN_RIG rig = rig_of("",
		"mov.u64 %d3, 0x1111222233334444; cvt.u64.u32 %d4, %r0;\n"
		"mov.b128 %q1, {%d3, %d4}; mov.b128 %q2, %q1;\n"
		"mov.b128 {%d5, %d6}, %q2; st.global.v2.b64 [%d1], {%d5, %d6};\n"
		"mov.b128 {%r1, %r2, %r3, %r4}, %q2; mov.b128 %q3, {%r4, %r3, %r2, "
		"%r1};\n"
		"st.global.b128 [%d1+16], %q3;");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++) {
		const uint32_t want[8] = { 0x33334444, 0x11112222, i, 0, 0, i, 0x11112222,
			0x33334444 };

		check(!memcmp(b.out[i], want, sizeof(want)));
	}
}

/* Through each space, by the plain, the ordered and the generic way. */
TEST(memory_is_read_and_written_by_128_bits)
{
	static const char *const ways[] = {
		"st.shared.b128 [%r5], %q1; ld.shared.b128 %q2, [%r5];",
		"st.volatile.shared.b128 [%r5], %q1; ld.volatile.shared.b128 %q2, [%r5];",
		"st.local.b128 [m+16], %q1; ld.local.b128 %q2, [m+16];",
		"cvt.u64.u32 %d7, %r5; cvta.shared.u64 %d7, %d7;\n"
		"st.b128 [%d7], %q1; ld.b128 %q2, [%d7];",
		"st.release.gpu.global.b128 [%d1], %q1;\n"
		"ld.acquire.gpu.global.b128 %q2, [%d1];",
		"st.volatile.b128 [%d1], %q1; ld.relaxed.sys.b128 %q2, [%d1];",
		"{ .param .b128 a; .param .b128 r; st.param.b128 [a], %q1;\n"
		"call (r), f, (a); ld.param.b128 %q2, [r]; }",
		"ld.global.nc.b128 %q2, [%d0]; mov.b128 {%d3, %d4}, %q2;\n"
		"cvt.u64.u32 %d5, %r0; add.u64 %d3, %d3, %d5; mov.b128 %q2, {%d3, %d4};",
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char body[1024];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			".shared .align 16 .b8 s[1024]; .local .align 16 .b8 m[32];\n"
			"mov.u32 %%r5, s; mad.lo.u32 %%r5, %%r0, 16, %%r5;\n"
			"ld.global.b128 %%q1, [%%d0]; mov.b128 {%%d3, %%d4}, %%q1;\n"
			"cvt.u64.u32 %%d5, %%r0; add.u64 %%d3, %%d3, %%d5;\n"
			"mov.b128 %%q1, {%%d3, %%d4}; %s\nst.global.b128 [%%d1+16], "
			"%%q2;",
			ways[i]);
		rig = rig_of(".func (.param .b128 o) f(.param .b128 x) { .reg .b128 q;\n"
			     "ld.param.b128 q, [x]; st.param.b128 [o], q; ret; }",
			body);
		b = buffers_of(rig, 64);
		memcpy(b.memory, (uint64_t[]){ 0xaabbccdd00000000, 0x1122334455667788 },
			16);
		run_well(rig, &b, 64);
		for (uint32_t t = 0; t < 64; t++) {
			uint64_t want[2] = { 0xaabbccdd00000000 + t, 0x1122334455667788 };

			if (memcmp(b.out[t] + 4, want, 16))
				test_fail(
					__FILE__, __LINE__, "%s: thread %u", ways[i], t);
		}
	}
}

/* From register to register, by variables, in place and as a subroutine. */
TEST(functions_take_and_return_128_bits)
{
	static const char *const functions[] = {
		".func (.reg .b128 o) f(.reg .b128 x) { .reg .b64 %a, %b;\n"
		"mov.b128 {%a, %b}, x; mov.b128 o, {%b, %a}; ret; }",
		".func (.reg .b128 o) f(.param .b128 x) { .reg .b64 %a, %b; .reg .b128 "
		"%q;\n"
		"ld.param.b128 %q, [x]; mov.b128 {%a, %b}, %q; mov.b128 o, {%b, %a}; "
		"ret; }",
		".func (.param .b128 o) f(.reg .b128 x) { .reg .b64 %a, %b; .reg .b128 "
		"%q;\n"
		".reg .pred %p; mov.b128 {%a, %b}, x; setp.eq.u64 %p, %a, 5;\n"
		"mov.b128 %q, {%b, %a}; @!%p bra END; call (%q), f, (%q);\n"
		"END: st.param.b128 [o], %q; ret; }",
	};
	static const char *const calls[] = { "call (%q2), f, (%q1);",
		"{ .param .b128 a; .param .b128 r; st.param.b128 [a], %q1;\n"
		"call (r), f, (a); ld.param.b128 %q2, [r]; }" };

	for (size_t i = 0; i < 6; i++) {
		char body[512];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			"cvt.u64.u32 %%d3, %%r0; mov.u64 %%d4, 0x123456789;\n"
			"mov.b128 %%q1, {%%d3, %%d4}; %s\nst.global.b128 [%%d1], %%q2;",
			calls[i % 2]);
		rig = rig_of(functions[i / 2], body);
		b = buffers_of(rig, 64);
		run_well(rig, &b, 64);
		for (uint32_t t = 0; t < 64; t++) {
			/* The last function calls itself there, and turns twice. */
			bool twice = i / 2 == 2 && t == 5;
			const uint64_t want[2] = { twice ? t : 0x123456789,
				twice ? 0x123456789 : t };

			if (memcmp(b.out[t], want, 16))
				test_fail(__FILE__, __LINE__, "way %zu: thread %u", i, t);
		}
	}
}

TEST(access_to_128_bits_is_aligned_to_them)
{
	static const char *const accesses[] = {
		"ld.global.b128 %q1, [%d1+8];",
		"st.global.b128 [%d1+8], %q1;",
		"ld.volatile.global.b128 %q1, [%d1+8];",
		"st.relaxed.gpu.global.b128 [%d1+8], %q1;",
		"ld.b128 %q1, [%d1+8];",
		"atom.global.exch.b128 %q1, [%d1+8], %q2;",
		"atom.cas.b128 %q1, [%d1+8], %q2, %q2;",
		".shared .align 16 .b8 s[64]; ld.shared.b128 %q1, [s+8];",
	};

	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		CLEAN_RIG rig = rig_of("", accesses[i]);
		struct buffers b = buffers_of(rig, 32);

		check_eq(run(rig, &b, 32), SOFTGPU_ERROR_MISALIGNED_ADDRESS);
	}
}

/* A counter of 128 bits, that all threads of some blocks add to. */
TEST(compare_and_swap_of_128_bits_takes_all_of_them)
{
	static const char loop[] =
		"ld.%s.b128 %%q1, [%s];\n"
		"L: mov.b128 {%%d3, %%d4}, %%q1; add.cc.u64 %%d5, %%d3, 1;\n"
		"addc.u64 %%d6, %%d4, 0; mov.b128 %%q2, {%%d5, %%d6};\n"
		"atom.%s.cas.b128 %%q3, [%s], %%q1, %%q2;\n"
		"mov.b128 {%%d7, %%d8}, %%q3; mov.b128 %%q1, %%q3;\n"
		"setp.ne.u64 %%p1, %%d7, %%d3; @%%p1 bra L;\n"
		"setp.ne.u64 %%p1, %%d8, %%d4; @%%p1 bra L;\n";
	const uint64_t start[2] = { UINT64_MAX - 100, 7 };
	uint64_t sum[2];
	char body[1024];

	for (int shared = 0; shared < 2; shared++) {
		CLEAN_RIG rig = NULL;
		struct buffers b;
		int n;

		n = snprintf(body, sizeof(body), "%s",
			!shared ? ""
				: ".shared .align 16 .b8 s[16];\n"
				  "ld.global.b128 %q4, [%d0]; setp.eq.u32 %p2, %r0, 0;\n"
				  "@%p2 st.shared.b128 [s], %q4; bar.sync 0;\n");
		n += snprintf(body + n, sizeof(body) - (size_t)n, loop,
			shared ? "shared" : "volatile.global", shared ? "s" : "%d0",
			shared ? "shared" : "global", shared ? "s" : "%d0");
		if (shared)
			snprintf(body + n, sizeof(body) - (size_t)n,
				"bar.sync 0; ld.shared.b128 %%q4, [s];\n"
				"@%%p2 st.global.b128 [%%d0], %%q4;\n");
		rig = rig_of("", body);
		b = buffers_of(rig, 256);
		memcpy(b.memory, start, 16);
		rig_launch(rig, "k", shared ? 1 : 3, 256, &b, sizeof(b));
		memcpy(sum, b.memory, 16);
		check_eq(sum[0], start[0] + (shared ? 256 : 768));
		check_eq(sum[1], 8);
	}
}

/* The operands that an instruction stores for its second operation do not mix with
 * another warp's. */
TEST(each_warp_compares_with_values_of_its_own)
{
	CLEAN_RIG rig = rig_of("", "ld.global.b128 %q1, [%d1]; add.u32 %r1, %r0, 1000;\n"
				   "mov.b128 %q2, {%r1, %r1, %r1, %r1};\n"
				   "atom.global.cas.b128 %q3, [%d1], %q1, %q2; "
				   "st.global.b128 [%d1+16], %q3;");
	struct buffers b = buffers_of(rig, 128);

	for (uint32_t i = 0; i < 128; i++)
		for (uint32_t k = 0; k < 4; k++)
			b.out[i][k] = 7 * i + k;
	run_well(rig, &b, 128);
	for (uint32_t i = 0; i < 128; i++)
		for (uint32_t k = 0; k < 4; k++) {
			check_eq(b.out[i][k], i + 1000);
			check_eq(b.out[i][4 + k], 7 * i + k);
		}
}

/* The same with coordinates. */
TEST(each_warp_loads_from_where_it_wants)
{
	static struct softgpu_texture objects[TEXTURE_CHUNK];
	struct softgpu_textures textures = { .chunks = { objects } };
	CLEAN_RIG rig = rig_of("",
		"mov.u64 %d3, 0x4000000000000001; and.b32 %r1, %r0, 15; shl.b32 %r1, "
		"%r1, 2;\n"
		"shr.u32 %r2, %r0, 4; suld.b.2d.b32.trap %r3, [%d3, {%r1, %r2}];\n"
		"st.global.u32 [%d1], %r3;");
	struct buffers b = buffers_of(rig, 128);
	uint32_t *texels = b.memory;

	objects[1] = (struct softgpu_texture){
		.number = TEXTURE_SURFACE_BIT | 1,
		.n_levels = 1,
		.levels[0] = { (uintptr_t)texels, 64, 512, 16, 8 },
		.format = TEXEL_U32,
		.n_channels = 1,
		.n_dimensions = 2,
	};
	for (uint32_t i = 0; i < 128; i++)
		texels[i] = 3 * i + 1;
	rig->textures = &textures;
	run_well(rig, &b, 128);
	for (uint32_t i = 0; i < 128; i++)
		check_eq(b.out[i][0], 3 * i + 1);
}

/* Each reads the value of another: together they are the initial value and all but one of
 * the new ones. */
TEST(exchange_of_128_bits_gives_what_was_there)
{
	CLEAN_RIG rig = rig_of("",
		"add.u32 %r1, %r0, 1; mov.b128 %q1, {%r1, %r1, %r1, %r1};\n"
		"atom.global.exch.b128 %q2, [%d0], %q1; st.global.b128 [%d1], %q2;");
	struct buffers b = buffers_of(rig, 128);
	bool seen[129] = {};

	run_well(rig, &b, 128);
	for (uint32_t i = 0; i <= 128; i++) {
		const uint32_t *x = i < 128 ? b.out[i] : b.memory;

		check(x[0] == x[1] && x[1] == x[2] && x[2] == x[3] && x[0] <= 128);
		check(!seen[x[0]]);
		seen[x[0]] = true;
	}
}

/*
 * Vectors of atomic operations
 */

static float from_half(uint16_t h)
{
	_Float16 x;

	memcpy(&x, &h, sizeof(x));
	return (float)x;
}

static uint16_t to_half(float f)
{
	_Float16 x = (_Float16)f;
	uint16_t h;

	memcpy(&h, &x, sizeof(h));
	return f != f ? 0x7fff : h;
}

static float from_bfloat(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

/* To nearest, ties to even, by the distances to both neighbours. */
static uint16_t to_bfloat(float f)
{
	uint32_t u, low;

	memcpy(&u, &f, sizeof(u));
	low = u & 0xffff;
	if (f != f)
		return 0x7fff;
	return (uint16_t)((u >> 16) + (low > 0x8000 || (low == 0x8000 && u >> 16 & 1)));
}

static uint16_t combine_16(enum which which, bool is_bfloat, uint16_t a, uint16_t b)
{
	if (is_bfloat)
		return to_bfloat(combine(which, from_bfloat(a), from_bfloat(b)));
	return to_half(combine(which, from_half(a), from_half(b)));
}

static const uint16_t halves[] = { 0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00,
	0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
	0x7fc1, 0x3f80, 0x4049, 0x3c01, 0x1234, 0x9abc };

#define N_HALVES (sizeof(halves) / sizeof(halves[0]))

struct form {
	const char *text; /* the modifiers */
	enum which which;
	bool is_bfloat;
	uint32_t n; /* 16-bit elements */
	bool is_packed;
};

static void check_halves(const struct form *form, bool is_red)
{
	uint32_t n = form->is_packed ? form->n / 2 : form->n;
	char body[2048] = "", old[200] = "{", add[200] = "{";
	const char *reg = form->is_packed ? "r" : "h";
	uint32_t width = form->is_packed ? 4 : 2;
	CLEAN_RIG rig = NULL;
	struct buffers b;

	/* Each thread has its own place; the operand follows it. */
	for (uint32_t i = 0; i < n; i++) {
		snprintf(body + strlen(body), sizeof(body) - strlen(body),
			"ld.global.b%u %%%s%u, [%%d1+%u];\n", 8 * width, reg, i + 1,
			16 + i * width);
		snprintf(old + strlen(old), sizeof(old) - strlen(old), "%s%%%s%u",
			i ? ", " : "", reg, i + 1);
	}
	strcat(old, "}");
	strcpy(add, old);
	snprintf(body + strlen(body), sizeof(body) - strlen(body),
		is_red ? "red.global.%s [%%d1], %s;\n"
		       : "atom.global.%s %s, [%%d1], %s;\n",
		form->text, is_red ? add : old, add);
	for (uint32_t i = 0; i < n && !is_red; i++)
		snprintf(body + strlen(body), sizeof(body) - strlen(body),
			"st.global.b%u [%%d1+%u], %%%s%u;\n", 8 * width, 16 + i * width,
			reg, i + 1);
	rig = rig_of("", body);
	b = buffers_of(rig, N_HALVES * N_HALVES);
	for (uint32_t t = 0; t < N_HALVES * N_HALVES; t++) {
		uint16_t *x = (uint16_t *)b.out[t];

		for (uint32_t i = 0; i < 8; i++) {
			x[i] = halves[(t + i) % N_HALVES];
			x[8 + i] = halves[(t / N_HALVES + 5 * i) % N_HALVES];
		}
	}
	run_well(rig, &b, N_HALVES * N_HALVES);
	for (uint32_t t = 0; t < N_HALVES * N_HALVES; t++) {
		const uint16_t *x = (const uint16_t *)b.out[t];

		for (uint32_t i = 0; i < 8; i++) {
			uint16_t first = halves[(t + i) % N_HALVES];
			uint16_t second = halves[(t / N_HALVES + 5 * i) % N_HALVES];
			uint16_t want = first, want_old = is_red ? second : first;

			if (i < form->n)
				want = combine_16(
					form->which, form->is_bfloat, first, second);
			else
				want_old = second;
			if (x[i] != want || x[8 + i] != want_old)
				test_fail(__FILE__, __LINE__,
					"%s %04x, %04x: %04x, not %04x; old %04x, not "
					"%04x",
					form->text, first, second, x[i], want, x[8 + i],
					want_old);
		}
	}
}

TEST(vectors_of_halves_are_combined_element_by_element)
{
	static const struct form forms[] = {
		{ "add.noftz.v2.f16", ADD, false, 2, false },
		{ "min.noftz.v4.f16", MIN, false, 4, false },
		{ "max.noftz.v8.f16", MAX, false, 8, false },
		{ "add.noftz.v8.bf16", ADD, true, 8, false },
		{ "min.noftz.v2.bf16", MIN, true, 2, false },
		{ "max.noftz.v4.bf16", MAX, true, 4, false },
		{ "add.noftz.v4.f16x2", ADD, false, 8, true },
		{ "min.noftz.v2.f16x2", MIN, false, 4, true },
		{ "max.noftz.v2.f16x2", MAX, false, 4, true },
		{ "add.noftz.v2.bf16x2", ADD, true, 4, true },
		{ "min.noftz.v4.bf16x2", MIN, true, 8, true },
		{ "max.noftz.v2.bf16x2", MAX, true, 4, true },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		check_halves(&forms[i], false);
		check_halves(&forms[i], true);
	}
}

/* The results go where operands came from, and one is not wanted. */
TEST(vectors_of_floats_are_added_element_by_element)
{
	CLEAN_RIG rig = rig_of("",
		"cvt.rn.f32.u32 %f1, %r0; mov.f32 %f2, 0f3f000000; mov.f32 %f3, "
		"0fbf800000;\n"
		"mov.f32 %f4, 0f40000000;\n"
		"atom.global.add.v4.f32 {%f2, _, %f4, %f1}, [%d1], {%f1, %f2, %f3, "
		"%f4};\n"
		"st.global.v4.f32 [%d1+16], {%f1, %f2, %f3, %f4};\n"
		"mov.f32 %f5, 0f3f800000; red.global.add.v2.f32 [%d0], {%f5, %f2};");
	struct buffers b = buffers_of(rig, 64);
	float sums[2], *x;

	for (uint32_t i = 0; i < 64; i++)
		for (uint32_t k = 0; k < 4; k++)
			((float *)b.out[i])[k] = (float)(10 * i + k);
	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++) {
		x = (float *)b.out[i];
		check(x[0] == (float)(10 * i + i) && x[1] == (float)(10 * i + 1) + 0.5f);
		check(x[2] == (float)(10 * i + 2) - 1 && x[3] == (float)(10 * i + 3) + 2);
		check(x[4] == (float)(10 * i + 3) && x[5] == (float)(10 * i));
		check(x[6] == -1 && x[7] == (float)(10 * i + 2));
	}
	memcpy(sums, b.memory, sizeof(sums));
	check(sums[0] == 64 && sums[1] == 10 * 64 * 63 / 2);
}

TEST(a_vector_of_atomic_operations_is_aligned_to_all_of_it)
{
	CLEAN_RIG rig =
		rig_of("", "atom.global.add.v2.f32 {%f1, %f2}, [%d1+4], {%f3, %f4};");
	struct buffers b = buffers_of(rig, 32);

	check_eq(run(rig, &b, 32), SOFTGPU_ERROR_MISALIGNED_ADDRESS);
	check_eq(b.out[0][1], 0);
}

/*
 * Lanes
 */

TEST(one_of_the_given_lanes_is_elected)
{
	CLEAN_RIG rig = rig_of("",
		"mov.u32 %r5, 99; elect.sync %r1|%p1, 0xffffffff;\n"
		"selp.u32 %r2, 1, 0, %p1; and.b32 %r3, %r0, 1; setp.eq.u32 %p2, %r3, 1;\n"
		"@%p2 bra ODD; elect.sync _|%p3, 0x55555550; bra END;\n"
		"ODD: elect.sync %r5|%p3, 0xaaaaaaaa;\n"
		"END: selp.u32 %r4, 1, 0, %p3;\n"
		"st.global.v4.u32 [%d1], {%r1, %r2, %r4, %r5};");
	struct buffers b = buffers_of(rig, 48);

	run_well(rig, &b, 48);
	for (uint32_t i = 0; i < 48; i++) {
		uint32_t lane = i % 32;

		check_eq(b.out[i][0], 0);
		check_eq(b.out[i][1], lane == 0);
		check_eq(b.out[i][3], lane % 2 ? 1 : 99);
		if (lane % 2)
			check_eq(b.out[i][2], lane == 1);
		else if (lane >= 4)
			check_eq(b.out[i][2], lane == 4);
	}
}

TEST(the_least_and_the_greatest_float_of_a_warp_are_found)
{
	static const char *const forms[] = { "min", "max", "min.abs", "max.NaN",
		"min.abs.NaN", "max.abs" };
	static const float rows[][3] = { { 1, -2, 3 }, { 0.0f, -0.0f, 0.0f },
		{ NAN, 5, -7 }, { NAN, NAN, NAN }, { INFINITY, -INFINITY, 1e-42f } };

	for (size_t f = 0; f < 6; f++) {
		char body[512];
		bool absolute = strstr(forms[f], "abs"), nan = strstr(forms[f], "NaN");
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			"ld.global.f32 %%f1, [%%d1]; redux.sync.%s.f32 %%f2, %%f1, "
			"0xffffffff;\nst.global.f32 [%%d1+4], %%f2;",
			forms[f]);
		rig = rig_of("", body);
		b = buffers_of(rig, 32);
		for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			float want = NAN, got;
			bool has_nan = false;

			for (uint32_t i = 0; i < 32; i++) {
				float x = rows[row][i % 3];

				memcpy(b.out[i], &x, 4);
				x = absolute ? fabsf(x) : x;
				has_nan |= x != x;
				want = combine(forms[f][1] == 'i' ? MIN : MAX, want, x);
			}
			if (nan && has_nan)
				want = NAN;
			run_well(rig, &b, 32);
			memcpy(&got, b.out[row] + 1, 4);
			if (want != want ? b.out[row][1] != 0x7fffffff
					 : memcmp(&want, &got, 4) != 0)
				test_fail(__FILE__, __LINE__, "%s, row %zu: %g, not %g",
					forms[f], row, got, want);
		}
	}
}

/*
 * Clusters of one block
 */

/* To arrive and to wait are two steps, and warps run between them. */
TEST(the_barrier_of_a_cluster_is_that_of_its_block)
{
	CLEAN_RIG rig = rig_of("",
		".shared .u32 s[128]; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
		"mov.u32 %r3, s; mad.lo.u32 %r4, %r0, 4, %r3; sub.u32 %r5, 127, %r0;\n"
		"mad.lo.u32 %r5, %r5, 4, %r3;\n"
		"L: add.u32 %r1, %r1, 1; mad.lo.u32 %r6, %r0, 1000, %r1;\n"
		"st.shared.u32 [%r4], %r6; barrier.cluster.arrive.release;\n"
		"add.u32 %r2, %r2, 1; barrier.cluster.wait.acquire;\n"
		"ld.shared.u32 %r7, [%r5]; add.u32 %r2, %r2, %r7;\n"
		"barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
		"setp.lt.u32 %p1, %r1, 5; @%p1 bra L; st.global.u32 [%d1], %r2;");
	struct buffers b = buffers_of(rig, 128);

	run_well(rig, &b, 128);
	for (uint32_t i = 0; i < 128; i++)
		check_eq(b.out[i][0], 5 + 5 * 1000 * (127 - i) + 15);
}

/* Threads that end count for all later times, and not twice for the one they arrived at.
 */
TEST(a_thread_that_has_arrived_may_end)
{
	CLEAN_RIG rig = rig_of("",
		".shared .u32 s; setp.lt.u32 %p1, %r0, 32; @%p1 bra FIRST;\n"
		"mov.u32 %r1, 7; setp.eq.u32 %p2, %r0, 63; @!%p2 bra REST;\n"
		"st.shared.u32 [s], %r1;\n"
		"REST: barrier.cluster.arrive; barrier.cluster.wait;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u32 %r2, [s];\n"
		"st.global.u32 [%d1], %r2; ret;\n"
		"FIRST: barrier.cluster.arrive; setp.lt.u32 %p1, %r0, 16; @%p1 exit;\n"
		"barrier.cluster.wait; ld.shared.u32 %r2, [s]; st.global.u32 [%d1], "
		"%r2;");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++)
		check_eq(b.out[i][0], i < 16 ? 0 : 7);
}

TEST(a_barrier_of_the_cluster_that_cannot_open_ends_the_kernel)
{
	CLEAN_RIG rig = rig_of("",
		"setp.eq.u32 %p1, %r0, 40; @%p1 bra OTHER; barrier.cluster.arrive;\n"
		"barrier.cluster.wait; ret;\nOTHER: bar.sync 1, 64;");
	struct buffers b = buffers_of(rig, 64);

	check_eq(run(rig, &b, 64), SOFTGPU_ERROR_LAUNCH_TIMEOUT);
	check(strstr(rig->fault.text, "barriers that cannot open") != NULL);
}

TEST(a_blocks_shared_memory_is_that_of_its_cluster)
{
	CLEAN_RIG rig = rig_of("",
		".shared .u32 s[64]; mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1;\n"
		"mapa.shared::cluster.u32 %r2, %r1, 0; st.shared::cluster.u32 [%r2], "
		"%r0;\n"
		"ld.shared.u32 %r3, [%r1]; getctarank.shared::cluster.u32 %r4, %r2;\n"
		"cvt.u64.u32 %d3, %r1; cvta.shared.u64 %d3, %d3; mapa.u64 %d4, %d3, 0;\n"
		"ld.u32 %r5, [%d4]; getctarank.u64 %r6, %d4; add.u32 %r4, %r4, %r6;\n"
		"mapa.shared::cluster.u32 %r7, s, 0; ld.shared::cluster.u32 %r7, "
		"[%r7+8];\n"
		"mov.u32 %r8, %cluster_nctarank; mov.u32 %r9, %cluster_ctarank;\n"
		"st.global.v4.u32 [%d1], {%r3, %r4, %r5, %r7};\n"
		"st.global.v2.u32 [%d1+16], {%r8, %r9};");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++) {
		const uint32_t want[6] = { i, 0, i, 2, 1, 0 };

		check(!memcmp(b.out[i], want, sizeof(want)));
	}
}

/*
 * The stack
 */

/* A list of pieces, each with the thread's number and a place in it. */
TEST(memory_from_the_stack_is_the_threads_own)
{
	CLEAN_RIG rig = rig_of("",
		"stacksave.u64 %d3; mov.u64 %d4, 0; mov.u32 %r1, 0;\n"
		"L: cvt.u64.u32 %d5, %r1; add.u64 %d5, %d5, 16; alloca.u64 %d6, %d5;\n"
		"st.local.u64 [%d6], %d4; mad.lo.u32 %r2, %r0, 100, %r1;\n"
		"st.local.u32 [%d6+8], %r2; mov.u64 %d4, %d6; add.u32 %r1, %r1, 1;\n"
		"setp.lt.u32 %p1, %r1, 9; @%p1 bra L; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
		"M: ld.local.u32 %r2, [%d4+8]; ld.local.u64 %d4, [%d4];\n"
		"add.u32 %r3, %r3, %r2; add.u32 %r4, %r4, 1; setp.ne.u64 %p1, %d4, 0;\n"
		"@%p1 bra M; stackrestore.u64 %d3; stacksave.u64 %d5; sub.u64 %d5, %d5, "
		"%d3;\n"
		"cvt.u32.u64 %r5, %d5; alloca.u32 %r6, 8, 64; and.b32 %r6, %r6, 63;\n"
		"st.global.v4.u32 [%d1], {%r3, %r4, %r5, %r6};");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++) {
		const uint32_t want[4] = { 900 * i + 36, 9, 0, 0 };

		check(!memcmp(b.out[i], want, sizeof(want)));
	}
}

/* Each call takes 1 KiB: without an end to it there would be no stack for all of them. */
TEST(a_function_gives_back_what_it_took_from_the_stack)
{
	static const char function[] =
		".func (.param .u32 o) f(.param .u32 x) { .reg .b64 %a; .reg .b32 %v;\n"
		".reg .pred %q; alloca.u64 %a, 1024; ld.param.u32 %v, [x];\n"
		"st.local.u32 [%a+1000], %v; setp.eq.u32 %q, %v, 1; %s\n"
		"END: ld.local.u32 %v, [%a+1000]; add.u32 %v, %v, 1;\n"
		"st.param.u32 [o], %v; ret; }";
	static const char body[] =
		"mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
		"L: { .param .u32 a; .param .u32 r; add.u32 %r3, %r0, %r1;\n"
		"st.param.u32 [a], %r3; call (r), f, (a); ld.param.u32 %r3, [r]; }\n"
		"add.u32 %r2, %r2, %r3; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, "
		"3000;\n"
		"@%p1 bra L; st.global.u32 [%d1], %r2;";
	/* With a call of itself it is a subroutine. */
	static const char *const inner[] = { "@%q bra END;",
		"@!%q bra END; { .param .u32 a; .param .u32 r; st.param.u32 [a], 2;\n"
		"call (r), f, (a); }" };

	for (size_t i = 0; i < 2; i++) {
		char text[1024];
		const char *at = strstr(function, "%s");
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - function), function,
			inner[i], at + 2);
		rig = rig_of(text, body);
		b = buffers_of(rig, 32);
		run_well(rig, &b, 32);
		for (uint32_t t = 0; t < 32; t++)
			check_eq(b.out[t][0], 3000 * (t + 1) + 3000 * 2999 / 2);
	}
}

TEST(a_stack_that_is_too_small_is_a_fault)
{
	static const char *const bodies[] = {
		"alloca.u64 %d3, 0x7fffffffffffffff;",
		"alloca.u64 %d3, 600000;",
		"L: alloca.u64 %d3, 4096; bra L;",
		"mov.u64 %d3, -8; stackrestore.u64 %d3;",
		".local .b8 m[64]; mov.u64 %d3, 8; stackrestore.u64 %d3; st.local.u32 "
		"[m], 1;",
		"L: call f; bra L;",
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		CLEAN_RIG rig = rig_of(".func f() { .reg .b64 %d; alloca.u64 %d, 64;\n"
				       "call f; ret; }",
			bodies[i]);
		struct buffers b = buffers_of(rig, 32);

		check_eq(run(rig, &b, 32), SOFTGPU_ERROR_HARDWARE_STACK);
	}
}

/*
 * Hints without effect
 */

TEST(hints_are_taken_and_change_nothing)
{
	CLEAN_RIG rig = rig_of(".global .align 64 .b8 map[128];",
		"createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d3, "
		"0.5;\n"
		"createpolicy.fractional.L2::evict_first.b64 %d4;\n"
		"createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d5, "
		"[%d0],\n"
		"%r0, %r0; createpolicy.cvt.L2.b64 %d6, %d3;\n"
		"setmaxnreg.inc.sync.aligned.u32 128; "
		"applypriority.global.L2::evict_normal\n"
		"[%d0], 128; prefetch.global.L2::evict_last [%d0]; prefetch.tensormap "
		"[%d0];\n"
		"prefetchu.L1 [%d0]; prefetch.local.L1 [%d0]; pmevent.mask 3;\n"
		"fence.proxy.async; fence.proxy.alias; membar.proxy.alias;\n"
		"fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;\n"
		"fence.proxy.tensormap::generic.acquire.gpu [%d0], 128;\n"
		"fence.acquire.sync_restrict::shared::cluster.cluster;\n"
		"st.global.L2::cache_hint.u32 [%d1], %r0, %d3;\n"
		"ld.global.L1::evict_last.L2::cache_hint.u32 %r1, [%d1], %d5;\n"
		"atom.global.add.L2::cache_hint.u32 %r2, [%d1], 5, %d6;\n"
		"red.global.add.L2::cache_hint.u32 [%d1], %r1, %d4;\n"
		"st.global.v2.u32 [%d1+8], {%r1, %r2};");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++) {
		const uint32_t want[4] = { 2 * i + 5, 0, i, i };

		check(!memcmp(b.out[i], want, sizeof(want)));
	}
}

TEST(shared_memory_is_filled_with_zeros)
{
	CLEAN_RIG rig = rig_of("",
		".shared .align 8 .b8 s[256]; mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, "
		"%r1;\n"
		"st.shared.u32 [%r1], 0xffffffff; bar.sync 0; setp.eq.u32 %p1, %r0, 5;\n"
		"@%p1 st.bulk.weak.shared::cta [s+8], 64, 0; setp.eq.u32 %p2, %r0, 9;\n"
		"mov.u64 %d3, s; cvta.shared.u64 %d3, %d3; mov.u64 %d4, 0;\n"
		"@%p2 st.bulk [%d3+200], 8, 0; @%p2 st.bulk [%d3], %d4, 0; bar.sync 0;\n"
		"ld.shared.u32 %r2, [%r1]; st.global.u32 [%d1], %r2;");
	struct buffers b = buffers_of(rig, 64);

	run_well(rig, &b, 64);
	for (uint32_t i = 0; i < 64; i++)
		check_eq(b.out[i][0],
			(i >= 2 && i < 18) || i == 50 || i == 51 ? 0 : 0xffffffff);
}

TEST(zeros_stay_in_shared_memory)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = {
		{ "st.bulk.shared::cta [s], 12, 0;", SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "st.bulk.shared::cta [s+4], 8, 0;", SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "st.bulk.shared::cta [s], 264, 0;", SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "st.bulk.shared::cta [s], 0xfffffffffffffff8, 0;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "st.bulk [%d0], 8, 0;", SOFTGPU_ERROR_ILLEGAL_ADDRESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEAN_RIG rig = rig_of(".shared .align 8 .b8 s[256];", rows[i].body);
		struct buffers b = buffers_of(rig, 32);

		check_eq(run(rig, &b, 32), rows[i].code);
	}
}
