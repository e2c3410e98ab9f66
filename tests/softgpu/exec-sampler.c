/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches with offsets and with a separate sampler, reductions of texels, and queries;
 * expected values follow from the place of a texel
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec-harness.h"
#include "exec/texture.h"
#include "test.h"

enum { WIDTH = 9, HEIGHT = 7, DEPTH = 5, LAYERS = DEPTH, PITCH = 64 };

/* %r8 to %r11 and %f8 to %f11 have the thread's numbers, %r4 to %r7 are its results. */
#define KERNEL(_name, _text)                                                             \
	".visible .entry " _name "(.param .u64 object, .param .u64 in, "                 \
	".param .u64 out) {\n"                                                           \
	".reg .b32 %r<16>; .reg .f32 %f<16>; .reg .s32 %s<4>; .reg .b64 %d<8>;\n"        \
	"ld.param.u64 %d0, [object]; ld.param.u64 %d1, [in];\n"                          \
	"ld.param.u64 %d2, [out]; mov.u32 %r0, %tid.x;\n"                                \
	"mul.wide.u32 %d3, %r0, 16; add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;\n"     \
	"ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d1];\n"                              \
	"mov.b32 %f8, %r8; mov.b32 %f9, %r9; mov.b32 %f10, %r10;\n"                      \
	"mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;\n" _text        \
	"\nst.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7}; ret; }\n"

#define HEADER ".version 9.0\n.target sm_121\n.address_size 64\n"
#define TO "{%r4, %r5, %r6, %r7}, "
#define Y0 "0f3FC00000" /* 1.5 */

enum { THREADS = 32 };

union four {
	float f[4];
	uint32_t u[4];
	int32_t s[4];
};

struct bench {
	struct rig *rig;
	struct softgpu_texture chunk[TEXTURE_CHUNK];
	struct softgpu_textures table;
	union four *in;
	union four *out;
	float *texels;
};

static float texel(int x, int y, int z)
{
	return (float)(x + 10 * y + 100 * z);
}

static void bench_init(struct bench *bench, const char *ptx)
{
	*bench = (struct bench){ .rig = rig_new(ptx) };
	bench->table.chunks[0] = bench->chunk;
	bench->rig->textures = &bench->table;
	bench->in = rig_alloc(bench->rig, THREADS * sizeof(*bench->in));
	bench->out = rig_alloc(bench->rig, THREADS * sizeof(*bench->out));
	bench->texels = rig_alloc(bench->rig, PITCH * HEIGHT * DEPTH);
	for (int z = 0; z < DEPTH; z++)
		for (int y = 0; y < HEIGHT; y++)
			for (int x = 0; x < WIDTH; x++)
				bench->texels[(z * HEIGHT + y) * PITCH / 4 + x] =
					texel(x, y, z);
}

static struct softgpu_texture *make(
	struct bench *bench, unsigned int format, unsigned int n_dimensions)
{
	struct softgpu_texture *t = &bench->chunk[1];

	*t = (struct softgpu_texture){
		.number = 1u << TEXTURE_INDEX_BITS | 1,
		.n_levels = 1,
		.levels[0] = { .address = (uintptr_t)bench->texels,
			.pitch = PITCH,
			.slice = PITCH * HEIGHT,
			.width = WIDTH,
			.height = n_dimensions > 1 ? HEIGHT : 0,
			.depth = n_dimensions > 2 ? DEPTH : 0 },
		.format = (uint8_t)format,
		.n_channels = 1,
		.n_dimensions = (uint8_t)n_dimensions,
		.address_modes = { TEXTURE_CLAMP, TEXTURE_CLAMP, TEXTURE_CLAMP },
	};
	return t;
}

static int run(struct bench *bench, const char *name)
{
	const struct {
		uint64_t object;
		void *in;
		void *out;
	} params = { bench->chunk[1].number, bench->in, bench->out };

	return rig_run(bench->rig, name, 1, THREADS, &params, sizeof(params));
}

static void launch(struct bench *bench, const char *name)
{
	if (run(bench, name))
		test_fail(__FILE__, __LINE__, "%s: %s", name, bench->rig->fault.text);
}

static int bounded(int i, int n)
{
	return i < 0 ? 0 : i < n ? i : n - 1;
}

/* Four bits of the operand count. */
static int offset_of(int i)
{
	int low = i & 15;

	return low < 8 ? low : low - 16;
}

static void check_nearest(struct bench *bench, const char *name, unsigned int n)
{
	make(bench, TEXEL_F32, n);
	for (int i = 0; i < THREADS; i++) {
		bench->in[i].f[0] = (float)(i % 11) - 0.5f;
		for (int k = 1; k < 4; k++)
			bench->in[i].s[k] = i * (k + 2) % 40 - 20;
	}
	launch(bench, name);
	for (int i = 0; i < THREADS; i++) {
		const union four *in = &bench->in[i];
		int x = (int)floorf(in->f[0]) + offset_of(in->s[1]);
		int y = n > 1 ? 1 + offset_of(in->s[2]) : 0;
		int z = n > 2 ? 2 + offset_of(in->s[3]) : 0;
		float want =
			texel(bounded(x, WIDTH), bounded(y, HEIGHT), bounded(z, DEPTH));

		if (bench->out[i].f[0] != want)
			test_fail(__FILE__, __LINE__, "%s %d: %g instead of %g", name, i,
				bench->out[i].f[0], want);
	}
}

/* clang-format off */
static const char offsets_ptx[] = HEADER
	KERNEL("one", "tex.1d.v4.f32.f32 " TO "[%d0, {%r8}], {%r9};")
	KERNEL("one_alone", "mov.b32 %s0, %r9;\n"
		"tex.1d.v4.f32.f32 " TO "[%d0, {%r8}], %s0;")
	KERNEL("two", "tex.2d.v4.f32.f32 " TO "[%d0, {%f8, " Y0 "}], {%r9, %r10};")
	KERNEL("three", "mov.f32 %f9, " Y0 "; mov.f32 %f10, 0f40200000;\n"
		"tex.3d.v4.f32.f32 " TO "[%d0, {%f8, %f9, %f10, %f10}], "
		"{%r9, %r10, %r11, %r11};")
	KERNEL("level", "tex.level.2d.v4.f32.f32 " TO "[%d0, {%f8, " Y0 "}], 0f00000000, "
		"{%r9, %r10};")
	KERNEL("grad", "tex.grad.2d.v4.f32.f32 " TO "[%d0, {%f8, " Y0 "}], {%f9, %f9}, "
		"{%f9, %f9}, {%r9, %r10};")
	KERNEL("base", "tex.base.2d.v4.f32.f32 " TO "[%d0, {%f8, " Y0 "}], {%r9, %r10};")
	KERNEL("fetch", "cvt.rmi.s32.f32 %r8, %f8; mov.b32 %r12, 1;\n"
		"tex.2d.v4.f32.s32 " TO "[%d0, {%r8, %r12}], {%r9, %r10};")
	KERNEL("fixed", "tex.2d.v4.f32.f32 " TO "[%d0, {%f8, " Y0 "}], {-3, 2};")
	KERNEL("gather", "tld4.r.2d.v4.f32.f32 " TO "[%d0, {%f8, " Y0 "}], {%r9, %r10};")
	KERNEL("layer", "tex.a2d.v4.f32.f32 " TO "[%d0, {3, %f8, " Y0 ", " Y0 "}], "
		"{%r9, %r10};");
/* clang-format on */

TEST(offsets_move_a_fetch_by_texels)
{
	static struct bench bench;

	bench_init(&bench, offsets_ptx);
	check_nearest(&bench, "one", 1);
	check_nearest(&bench, "one_alone", 1);
	check_nearest(&bench, "two", 2);
	check_nearest(&bench, "three", 3);
	check_nearest(&bench, "level", 2);
	check_nearest(&bench, "grad", 2);
	check_nearest(&bench, "base", 2);
	rig_free(bench.rig);
}

/* Without filter or modes: outside of the texture there are zeros. */
TEST(offsets_are_added_to_integers)
{
	static struct bench bench;

	bench_init(&bench, offsets_ptx);
	make(&bench, TEXEL_F32, 2);
	for (int i = 0; i < THREADS; i++) {
		bench.in[i].f[0] = (float)(i % 9);
		bench.in[i].s[1] = i % 16 - 8;
		bench.in[i].s[2] = i % 5 - 2;
	}
	launch(&bench, "fetch");
	for (int i = 0; i < THREADS; i++) {
		int x = i % 9 + i % 16 - 8, y = 1 + i % 5 - 2;
		bool inside = x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT;

		check(bench.out[i].f[0] == (inside ? texel(x, y, 0) : 0.0f));
	}
	rig_free(bench.rig);
}

/* Offsets wrap with the address mode, move both texels of a filter, and a footprint. */
TEST(offsets_apply_before_the_address_mode)
{
	static struct bench bench;
	struct softgpu_texture *t;

	bench_init(&bench, offsets_ptx);
	t = make(&bench, TEXEL_F32, 2);
	t->is_normalized = true;
	t->filters_linearly = true;
	t->address_modes[0] = TEXTURE_WRAP;
	t->address_modes[1] = TEXTURE_MIRROR;
	for (int i = 0; i < THREADS; i++)
		bench.in[i].f[0] = ((float)i + 0.75f) / WIDTH;
	launch(&bench, "fixed");
	for (int i = 0; i < THREADS; i++) {
		/* 1.5 is in the middle of row 10 of 14, which mirror seven. */
		int x = (i + 9 - 3) % 9, row = 13 - (10 + 2);
		float want =
			0.75f * texel(x, row, 0) + 0.25f * texel((x + 1) % 9, row, 0);

		if (fabsf(bench.out[i].f[0] - want) > 0.05f)
			test_fail(__FILE__, __LINE__, "%d: %g instead of %g", i,
				bench.out[i].f[0], want);
	}
	t->is_normalized = false;
	for (int i = 0; i < THREADS; i++) {
		bench.in[i].f[0] = 4.25f;
		bench.in[i].s[1] = i % 4 - 2;
		bench.in[i].s[2] = i % 3;
	}
	launch(&bench, "gather");
	for (int i = 0; i < THREADS; i++) {
		int x = 3 + i % 4 - 2, y = 1 + i % 3;

		check(bench.out[i].f[0] == texel(x, y + 1, 0));
		check(bench.out[i].f[1] == texel(x + 1, y + 1, 0));
		check(bench.out[i].f[2] == texel(x + 1, y, 0));
		check(bench.out[i].f[3] == texel(x, y, 0));
	}
	t = make(&bench, TEXEL_F32, 2);
	t->is_layered = true;
	t->levels[0].depth = LAYERS;
	launch(&bench, "layer");
	for (int i = 0; i < THREADS; i++)
		check(bench.out[i].f[0] == texel(4 + i % 4 - 2, 1 + i % 3, 3));
	rig_free(bench.rig);
}

/* clang-format off */
static const char samplers_ptx[] = ".version 9.0\n.target sm_121, texmode_independent\n"
	".address_size 64\n.global .texref t;\n"
	".global .samplerref s_plain;\n"
	".global .samplerref s_wraps = { addr_mode_0 = wrap, addr_mode_1 = mirror,\n"
	" filter_mode = nearest };\n"
	".global .samplerref s_mixes = { addr_mode_0 = clamp_to_edge,\n"
	" addr_mode_1 = clamp_to_border, addr_mode_2 = mirror, filter_mode = linear,\n"
	" force_unnormalized_coords = 1 };\n"
	KERNEL("wraps", "tex.2d.v4.f32.f32 " TO "[%d0, s_wraps, {%f8, %f9}];")
	KERNEL("mixes", "tex.2d.v4.f32.f32 " TO "[%d0, s_mixes, {%f8, %f9}];")
	KERNEL("bound", "st.global.u64 [t], %d0;\n"
		"tex.2d.v4.f32.f32 " TO "[t, s_mixes, {%f8, %f9}];")
	KERNEL("pointed", "st.global.u64 [t], %d0; mov.u64 %d4, t;\n"
		"tex.2d.v4.f32.f32 " TO "[%d4, s_mixes, {%f8, %f9}];")
	KERNEL("wrong", "mov.u64 %d4, t; add.u64 %d4, %d4, 4;\n"
		"tex.2d.v4.f32.f32 " TO "[%d4, s_mixes, {%f8, %f9}];")
	KERNEL("queries", "txq.addr_mode_0.b32 %r4, [s_mixes];\n"
		"txq.addr_mode_1.b32 %r5, [s_mixes];\n"
		"txq.addr_mode_2.b32 %r6, [s_mixes];\n"
		"txq.filter_mode.b32 %r7, [s_mixes];")
	KERNEL("more", "txq.force_unnormalized_coords.b32 %r4, [s_mixes];\n"
		"txq.force_unnormalized_coords.b32 %r5, [s_wraps];\n"
		"txq.addr_mode_1.b32 %r6, [s_wraps];\n"
		"txq.addr_mode_0.b32 %r7, [s_plain];");
/* clang-format on */

/* The texture is a number, a reference, or the address of one. */
TEST(a_sampler_decides_how_a_texture_is_fetched)
{
	static const char *const names[] = { "mixes", "bound", "pointed" };
	static struct bench bench;
	struct softgpu_texture *t;

	bench_init(&bench, samplers_ptx);
	t = make(&bench, TEXEL_F32, 2);
	t->is_normalized = true;
	t->filters_linearly = true;
	for (int i = 0; i < THREADS; i++) {
		bench.in[i].f[0] = ((float)i + 0.5f) / WIDTH;
		bench.in[i].f[1] = ((float)i + 0.5f) / HEIGHT;
	}
	launch(&bench, "wraps");
	for (int i = 0; i < THREADS; i++) {
		int y = i % 14;

		check(bench.out[i].f[0] == texel(i % 9, y < 7 ? y : 13 - y, 0));
	}
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		for (int i = 0; i < THREADS; i++) {
			bench.in[i].f[0] = (float)i - 5.25f;
			bench.in[i].f[1] = (float)(i % 6) + 0.5f;
		}
		launch(&bench, names[k]);
		for (int i = 0; i < THREADS; i++) {
			int x = i - 6;
			float low = texel(bounded(x, WIDTH), i % 6, 0);
			float high = texel(bounded(x + 1, WIDTH), i % 6, 0);

			check(fabsf(bench.out[i].f[0] - 0.75f * low - 0.25f * high) <
				1e-3f);
		}
	}
	/* Outside of the second axis there is the border, whose colour is the texture's.
	 */
	t->border[0] = 7.0f;
	bench.in[0].f[1] = -4.0f;
	launch(&bench, "mixes");
	check(bench.out[0].f[0] == 7.0f);
	check_eq(run(&bench, "wrong"), SOFTGPU_ERROR_ILLEGAL_ADDRESS);
	rig_free(bench.rig);
}

TEST(fields_of_a_sampler_are_queried)
{
	static struct bench bench;

	bench_init(&bench, samplers_ptx);
	make(&bench, TEXEL_F32, 2);
	launch(&bench, "queries");
	check_eq(bench.out[3].u[0], TEXTURE_CLAMP);
	check_eq(bench.out[3].u[1], TEXTURE_BORDER);
	check_eq(bench.out[3].u[2], TEXTURE_MIRROR);
	check_eq(bench.out[3].u[3], 1);
	launch(&bench, "more");
	check_eq(bench.out[3].u[0], 1);
	check_eq(bench.out[3].u[1], 0);
	check_eq(bench.out[3].u[2], TEXTURE_MIRROR);
	check_eq(bench.out[3].u[3], TEXTURE_WRAP);
	rig_free(bench.rig);
}

/* clang-format off */
static const char texels_ptx[] = HEADER
	KERNEL("add", "sured.p.add.2d.b32.zero [%d0, {%r8, %r9}], %r10;")
	KERNEL("min", "sured.p.min.2d.b32.zero [%d0, {%r8, %r9}], %r10;")
	KERNEL("max", "sured.p.max.2d.b32.zero [%d0, {%r8, %r9}], %r10;")
	KERNEL("and", "sured.p.and.2d.b32.clamp [%d0, {%r8, %r9}], %r10;")
	KERNEL("or", "sured.p.or.2d.b32.zero [%d0, {%r8, %r9}], %r10;")
	KERNEL("min64", "mov.b64 %d4, {%r10, %r11};\n"
		"sured.p.min.2d.b64.zero [%d0, {%r8, %r9}], %d4;")
	KERNEL("max64", "mov.b64 %d4, {%r10, %r11};\n"
		"sured.p.max.2d.b64.zero [%d0, {%r8, %r9}], %d4;")
	KERNEL("samples", "txq.num_samples.b32 %r4, [%d0];\n"
		"txq.force_unnormalized_coords.b32 %r5, [%d0];\n"
		"txq.memory_layout.b32 %r6, [%d0]; txq.array_size.b32 %r7, [%d0];")
	KERNEL("layout", "suq.memory_layout.b32 %r4, [%d0];");
/* clang-format on */

static uint64_t reduced(const char *name, bool is_signed, uint64_t a, uint64_t b)
{
	bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;

	switch (name[1]) {
	case 'd':
		return a + b;
	case 'i':
		return less ? a : b;
	case 'a':
		return less ? b : a;
	case 'n':
		return a & b;
	default:
		return a | b;
	}
}

static void check_reduction(struct bench *bench, const char *name, unsigned int format)
{
	static const uint32_t numbers[] = { 0, 1, 0x7fffffff, 0x80000000, UINT32_MAX,
		77 };
	bool is_signed = format == TEXEL_S32, is_wide = strstr(name, "64");
	struct softgpu_texture *t = make(bench, format, 2);
	uint32_t *texels = (uint32_t *)bench->texels;

	t->number |= TEXTURE_SURFACE_BIT;
	t->reads_integers = true;
	t->n_channels = is_wide ? 2 : 1;
	t->levels[0].width = is_wide ? WIDTH / 2 : WIDTH;
	for (unsigned int k = 0; k < 36; k++) {
		uint32_t old = numbers[k % 6], by = numbers[k / 6];
		uint64_t want, got;

		/* One thread; all others are outside, where a reduction has no effect. */
		for (unsigned int i = 0; i < THREADS; i++)
			bench->in[i] = (union four){ .u = { WIDTH, 2, by, by } };
		bench->in[5].u[0] = 3;
		for (unsigned int i = 0; i < PITCH / 4; i++)
			texels[2 * PITCH / 4 + i] = old;
		if (strcmp(name, "and") == 0)
			for (unsigned int i = 0; i < THREADS; i++)
				bench->in[i].u[0] = 3;
		launch(bench, name);
		if (is_wide) {
			want = reduced(name, is_signed, (uint64_t)old << 32 | old,
				(uint64_t)by << 32 | by);
			memcpy(&got, &texels[2 * PITCH / 4 + 6], 8);
		} else {
			want = (uint32_t)reduced(name, is_signed,
				is_signed ? (uint64_t)(int32_t)old : old,
				is_signed ? (uint64_t)(int32_t)by : by);
			got = texels[2 * PITCH / 4 + 3];
		}
		if (got != want)
			test_fail(__FILE__, __LINE__, "%s of %x and %x: %llx, not %llx",
				name, old, by, (long long)got, (long long)want);
		check_eq(texels[2 * PITCH / 4], old);
		check_eq(texels[2 * PITCH / 4 + 8], old);
	}
}

TEST(reductions_of_texels_have_the_type_of_the_surface)
{
	static struct bench bench;
	static const char *const names[] = { "add", "min", "max", "and", "or", "min64",
		"max64" };

	bench_init(&bench, texels_ptx);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		check_reduction(&bench, names[i], TEXEL_U32);
		check_reduction(&bench, names[i], TEXEL_S32);
	}
	/* A surface of floats, and one with texels of another size. */
	make(&bench, TEXEL_F32, 2)->number |= TEXTURE_SURFACE_BIT;
	check_eq(run(&bench, "add"), SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
	make(&bench, TEXEL_U32, 2)->number |= TEXTURE_SURFACE_BIT;
	check_eq(run(&bench, "min64"), SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
	make(&bench, TEXEL_U32, 2);
	check_eq(run(&bench, "add"), SOFTGPU_ERROR_ILLEGAL_ADDRESS);
	rig_free(bench.rig);
}

TEST(properties_that_every_texture_has)
{
	static struct bench bench;
	struct softgpu_texture *t;

	bench_init(&bench, texels_ptx);
	t = make(&bench, TEXEL_F32, 2);
	launch(&bench, "samples");
	check_eq(bench.out[0].u[0], 1);
	check_eq(bench.out[0].u[1], 0);
	check_eq(bench.out[0].u[2], 0);
	check_eq(bench.out[0].u[3], 0);
	t->is_linear_memory = true;
	launch(&bench, "samples");
	check_eq(bench.out[0].u[2], 1);
	t->is_linear_memory = false;
	t->number |= TEXTURE_SURFACE_BIT;
	launch(&bench, "layout");
	check_eq(bench.out[0].u[0], 0);
	rig_free(bench.rig);
}

/* A form that ptxas accepts and softgpu does not run is refused with the reason. */
TEST(textures_that_do_not_exist_are_refused_by_name)
{
	static const char *const forms[][2] = {
		{ "tex.2d.v4.f32.f32 " TO "[%d0, {%f8, %f9}], %f10;", "depths" },
		{ "tex.2d.v4.f32.f32 " TO "[%d0, {%f8, %f9}], {%r8, %r9}, %f10;",
			"depths" },
		{ "tex.level.cube.v4.f32.f32 " TO
		  "[%d0, {%f8, %f9, %f8, %f8}], %f9, %f10;",
			"depths" },
		{ "tld4.r.2d.v4.f32.f32 " TO "[%d0, {%f8, %f9}], %f10;", "depths" },
		{ "tex.2dms.v4.f32.s32 " TO "[%d0, {%r8, %r9, %r10, %r11}];", "samples" },
		{ "tex.a2dms.v4.f32.s32 " TO "[%d0, {%r8, %r9, %r10, %r11}];",
			"samples" },
		{ "tex.2d.v4.f32.f32 " TO "[%d0, %d1, {%f8, %f9}];", "no variable" },
		{ "tex.2d.v4.f32.f32 " TO "[given, {%f8, %f9}];", "no variable" },
		{ "tex.2d.v4.f32.f32 " TO "[%d0, {%f8, %f9}], 1;", "fewer offsets" },
		{ "tex.cube.v4.f32.f32 " TO "[%d0, {%f8, %f9, %f8, %f8}], 1;",
			"no offsets" },
	};
	struct softgpu_message message;
	char ptx[2048], name[64];

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		snprintf(ptx, sizeof(ptx),
			HEADER
			".visible .entry k(.param .texref given) { .reg .b32 "
			"%%r<12>;\n.reg .f32 %%f<12>; .reg .b64 %%d<2>; %s ret; }\n",
			forms[i][0]);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(forms[i][0], " "),
			forms[i][0]);
		memset(&message, 0, sizeof(message));
		check_eq(rig_lookup(ptx, "k", &message), SOFTGPU_ERROR_NOT_SUPPORTED);
		if (!strstr(message.text, forms[i][1]) || !strstr(message.text, name))
			test_fail(__FILE__, __LINE__, "%s: %s", name, message.text);
	}
}
