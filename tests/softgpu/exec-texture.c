/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches from textures: a warp that fetches at once gets what the sampler gives each of
 * its lanes, to the bit
 */

#include <math.h>
#include <string.h>

#include "exec-harness.h"
#include "exec/texture.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

enum { THREADS = 96, WIDTH = 13, HEIGHT = 6, DEPTH = 3, TEXELS = WIDTH * HEIGHT * DEPTH };

/* Every fourth thread leaves its results as they are where %r12 is not 0. */
#define KERNEL(_name, _fetch)                                                            \
	".visible .entry " _name "(.param .u64 object, .param .u64 other, "              \
	".param .u64 in, .param .u64 out, .param .u32 some) {\n"                         \
	".reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<3>;\n"                         \
	"ld.param.u64 %d0, [object]; ld.param.u64 %d1, [in];\n"                          \
	"ld.param.u64 %d2, [out]; ld.param.u32 %r12, [some]; mov.u32 %r0, %tid.x;\n"     \
	"ld.param.u64 %d4, [other];\n"                                                   \
	"mul.wide.u32 %d3, %r0, 16; add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;\n"     \
	"ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d1];\n"                              \
	"ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2];\n"                                \
	"and.b32 %r12, %r12, %r0; setp.ne.u32 %p1, %r12, 3; and.b32 %r13, %r0, 1;\n"     \
	"setp.ne.u32 %p2, %r13, 0; selp.b64 %d0, %d4, %d0, %p2;\n@%p1 " _fetch           \
	"\nst.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7}; ret; }\n"

#define TO "{%r4, %r5, %r6, %r7}, "

static const char ptx[] = ".version 8.8\n.target sm_120\n.address_size 64\n" KERNEL(
	"f0", "tex.1d.v4.f32.f32 " TO "[%d0, {%r8}];") KERNEL("f1",
	"tex.2d.v4.f32.f32 " TO "[%d0, {%r8, %r9}];") KERNEL("f2",
	"tex.3d.v4.f32.f32 " TO "[%d0, {%r8, %r9, %r10, %r10}];") KERNEL("f3",
	"tex.a1d.v4.f32.f32 " TO "[%d0, {%r11, %r8}];") KERNEL("f4",
	"tex.a2d.v4.f32.f32 " TO "[%d0, {%r11, %r8, %r9, %r9}];") KERNEL("i0",
	"tex.1d.v4.u32.s32 " TO
	"[%d0, {%r8}];") KERNEL("i1", "tex.2d.v4.u32.s32 " TO "[%d0, {%r8, %r9}];")
	KERNEL("i2", "tex.3d.v4.u32.s32 " TO "[%d0, {%r8, %r9, %r10, %r10}];") KERNEL(
		"i3", "tex.a1d.v4.u32.s32 " TO "[%d0, {%r11, %r8}];") KERNEL("i4",
		"tex.a2d.v4.u32.s32 " TO "[%d0, {%r11, %r8, %r9, %r9}];")
		KERNEL("half", "tex.2d.v2.f16x2.f32 {%r4, %r5}, [%d0, {%r8, %r9}];");

struct texels {
	uint32_t bits[THREADS][4];
};

struct params {
	uint64_t object;
	uint64_t other; /* what odd threads name */
	void *in;
	void *out;
	uint32_t some;
};

struct bench {
	struct rig *rig;
	struct softgpu_texture chunk[TEXTURE_CHUNK];
	struct softgpu_textures table;
	struct texels *in;
	struct texels *out;
	uint8_t *memory; /* of texels, up to the end of all memory */
	uint64_t seed;
};

static uint32_t next_random(struct bench *bench)
{
	bench->seed = bench->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(bench->seed >> 32);
}

static uint32_t bits_of(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

/* The numbers where indices, weights and conversions turn over, then any. */
static float coordinate(struct bench *bench, unsigned int i, float size, bool normalized)
{
	const float edges[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-40f,
		-1e-9f, 1e-9f, 0.5f, -0.5f, 1.0f, -1.0f, 1.5f, size - 0.5f, size,
		size + 0.5f, 2 * size, -size, 3e38f, -3e38f, 1073741824.0f,
		-1073741824.0f, 1073741888.0f, -2147483648.0f, 16777217.0f, 0.501953125f,
		0.49999997f, size - 0.50000003f, 5e9f, -7.25f };
	const unsigned int n = sizeof(edges) / sizeof(edges[0]);
	float x = i < n ? edges[i]
			: ((float)(next_random(bench) >> 8) / 16777216.0f * 4.0f - 1.5f) *
				  size;

	return normalized && (i >= n || i % 2) ? x / size : x;
}

static void make_coordinates(
	struct bench *bench, bool is_integer, const struct softgpu_texture *t)
{
	static const uint32_t layers[] = { 0, 1, 2, 3, 0x7fffffff, UINT32_MAX };
	const float sizes[3] = { WIDTH, HEIGHT, DEPTH };

	for (unsigned int i = 0; i < THREADS; i++) {
		/* Every edge meets others on the other axes. */
		for (unsigned int k = 0; k < 3; k++) {
			unsigned int at = (i + 7 * k) % THREADS;
			float x = coordinate(bench, at, sizes[k], t->is_normalized);
			int32_t n = (int32_t)(next_random(bench) % 20) - 4;

			bench->in->bits[i][k] = is_integer ? (uint32_t)n : bits_of(x);
		}
		bench->in->bits[i][3] = layers[next_random(bench) % 6];
	}
	if (is_integer) {
		bench->in->bits[5][0] = INT32_MAX;
		bench->in->bits[6][1] = 1u << 31;
	}
}

static void bench_init(struct bench *bench)
{
	*bench = (struct bench){ .rig = rig_new(ptx), .seed = 1 };
	bench->table.chunks[0] = bench->chunk;
	bench->rig->textures = &bench->table;
	bench->in = rig_alloc(bench->rig, sizeof(*bench->in));
	bench->out = rig_alloc(bench->rig, sizeof(*bench->out));
	bench->memory = rig_alloc(bench->rig, RIG_MEMORY - bench->rig->used);
}

/* The texels end with the memory, before an inaccessible page. */
static struct softgpu_texture *make_texture(
	struct bench *bench, unsigned int shape, unsigned int format, unsigned int n)
{
	static const uint8_t dimensions[] = { 1, 2, 3, 1, 2 };
	struct softgpu_texture *t = &bench->chunk[1];
	uint64_t row = (uint64_t)WIDTH * n * texel_channel_size(format);
	uint64_t pitch = (row + 31) & ~UINT64_C(31), size;
	uint8_t *end = bench->rig->memory + RIG_MEMORY;
	bool is_3d = shape >= 2, is_2d = shape != 0 && shape != 3;

	*t = (struct softgpu_texture){
		.number = 1u << TEXTURE_INDEX_BITS | 1,
		.n_levels = 1,
		.levels[0] = { .pitch = is_2d ? pitch : 0,
			.slice = is_3d ? pitch * HEIGHT : 0,
			.width = WIDTH,
			.height = is_2d ? HEIGHT : 0,
			.depth = is_3d ? DEPTH : 0 },
		.format = (uint8_t)format,
		.n_channels = (uint8_t)n,
		.n_dimensions = dimensions[shape],
		.is_layered = shape > 2,
		.border = { 0.25f, -3.0f, 1e30f, 7.5f },
	};
	size = is_3d ? pitch * HEIGHT * DEPTH : is_2d ? pitch * HEIGHT : pitch;
	t->levels[0].address = (uintptr_t)(end - size + (pitch - row));
	return t;
}

static void fill_texels(struct bench *bench)
{
	uint8_t *end = bench->rig->memory + RIG_MEMORY;

	/* Any bits: as floats some of them are NaN, infinite or subnormal. */
	for (uint8_t *p = end - TEXELS * 16 - 4096; p < end; p += 4) {
		uint32_t u = next_random(bench);

		if (!(u % 16))
			u |= 0x7f800000;
		memcpy(p, &u, 4);
	}
}

/* Return: whether the sampler can read what the thread asks for. */
static bool sample(struct bench *bench, const struct softgpu_texture *t,
	unsigned int shape, bool is_integer, unsigned int thread, uint32_t result[4],
	uint64_t *faultp)
{
	const uint32_t *in = bench->in->bits[thread];
	struct texture_query query = {
		.space = &bench->rig->space,
		.texture = t,
		.shape = (uint8_t)shape,
		.gather = -1,
		.is_integer = is_integer,
		.layer = in[3],
		.coordinates = { in[0], in[1], in[2] },
	};

	if (shape == TEXTURE_1D || shape == TEXTURE_1D_LAYERED)
		query.coordinates[1] = 0;
	if (shape != TEXTURE_3D)
		query.coordinates[2] = 0;
	return softgpu_texture_sample(&query, result, faultp);
}

static int run(struct bench *bench, const char *name, uint64_t other, uint32_t some)
{
	const struct params params = {
		.object = bench->chunk[1].number,
		.other = other,
		.in = bench->in,
		.out = bench->out,
		.some = some,
	};

	memset(bench->out, 0xee, sizeof(*bench->out));
	return rig_run(bench->rig, name, 1, THREADS, &params, 36);
}

static void compare(struct bench *bench, unsigned int shape, bool is_integer,
	const struct softgpu_texture *other, uint32_t some)
{
	const struct softgpu_texture *t = &bench->chunk[1];
	const char name[3] = { is_integer ? 'i' : 'f', (char)('0' + shape) };
	uint64_t fault;

	if (run(bench, name, other->number, some))
		test_fail(__FILE__, __LINE__, "%s", bench->rig->fault.text);
	for (unsigned int i = 0; i < THREADS; i++) {
		uint32_t want[4] = { 0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee };
		const uint32_t *got = bench->out->bits[i], *in = bench->in->bits[i];

		if ((i & some) != 3)
			check(sample(bench, i % 2 ? other : t, shape, is_integer, i, want,
				&fault));
		if (memcmp(got, want, sizeof(want)))
			test_fail(__FILE__, __LINE__,
				"%s format %u x %u mode %u linear %d normalized %d, "
				"{%x, %x, %x, %x}: {%x, %x, %x, %x} instead of "
				"{%x, %x, %x, %x}",
				name, t->format, t->n_channels, t->address_modes[0],
				t->filters_linearly, t->is_normalized, in[0], in[1],
				in[2], in[3], got[0], got[1], got[2], got[3], want[0],
				want[1], want[2], want[3]);
	}
}

static void compare_samplings(struct bench *bench, unsigned int shape,
	struct softgpu_texture *t, const struct softgpu_texture *other)
{
	for (unsigned int m = 0; m < 64; m++) {
		for (unsigned int k = 0; k < 3; k++)
			t->address_modes[k] = (uint8_t)((m + (m >> 4) * k) % 4);
		t->filters_linearly = m >> 2 & 1;
		t->is_normalized = m >> 3 & 1;
		t->reads_integers = m >> 4 & 1;
		make_coordinates(bench, false, t);
		compare(bench, shape, false, other, m >> 5 ? 3 : 0);
	}
	for (unsigned int m = 0; m < 4; m++) {
		t->reads_integers = m & 1;
		make_coordinates(bench, true, t);
		compare(bench, shape, true, other, m >> 1 ? 3 : 0);
	}
}

TEST(all_lanes_at_once_get_what_each_of_them_gets)
{
	static struct bench bench;

	bench_init(&bench);
	fill_texels(&bench);
	for (unsigned int shape = 0; shape <= TEXTURE_2D_LAYERED; shape++)
		for (unsigned int format = 0; format < _TEXEL_N; format++)
			for (unsigned int n = 1; n <= 4; n *= 2) {
				struct softgpu_texture *t =
					make_texture(&bench, shape, format, n);

				compare_samplings(&bench, shape, t, t);
			}
	rig_free(bench.rig);
}

/* Colour curves, levels and cubes are the sampler's; so is a warp with two textures. */
TEST(irregular_accesses_are_fetched_lane_by_lane)
{
	static struct bench bench;
	struct softgpu_texture *t;

	bench_init(&bench);
	fill_texels(&bench);
	t = make_texture(&bench, TEXTURE_2D, TEXEL_U8, 4);
	t->is_srgb = true;
	compare_samplings(&bench, TEXTURE_2D, t, t);
	t = make_texture(&bench, TEXTURE_2D, TEXEL_F16, 2);
	t->n_levels = 2;
	t->levels[1] = t->levels[0];
	t->levels[1].width = WIDTH / 2;
	compare_samplings(&bench, TEXTURE_2D, t, t);
	t = make_texture(&bench, TEXTURE_2D, TEXEL_F32, 1);
	t->levels[0].pitch = UINT64_C(1) << 33; /* one row that is there */
	t->levels[0].height = 1;
	compare_samplings(&bench, TEXTURE_2D, t, t);
	t = make_texture(&bench, TEXTURE_2D, TEXEL_U16, 2);
	bench.chunk[2] = *t;
	bench.chunk[2].number = 1u << TEXTURE_INDEX_BITS | 2;
	bench.chunk[2].n_channels = 1;
	compare_samplings(&bench, TEXTURE_2D, t, &bench.chunk[2]);
	rig_free(bench.rig);
}

TEST(results_of_sixteen_bits_are_the_same_rounded)
{
	static struct bench bench;
	struct softgpu_texture *t;
	float x, y;

	bench_init(&bench);
	t = make_texture(&bench, TEXTURE_2D, TEXEL_S8, 4);
	for (uint64_t i = 0; i < HEIGHT * t->levels[0].pitch - (64 - WIDTH * 4); i++)
		((int8_t *)(uintptr_t)t->levels[0].address)[i] = (int8_t)(i * 37);
	t->filters_linearly = true;
	make_coordinates(&bench, false, t);
	check_eq(run(&bench, "half", t->number, 3), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		uint32_t want[4], *got = bench.out->bits[i];
		uint64_t fault;

		if ((i & 3) == 3) {
			check_eq(got[0], 0xeeeeeeee);
			continue;
		}
		check(sample(&bench, t, TEXTURE_2D, false, i, want, &fault));
		for (unsigned int k = 0; k < 4; k++) {
			_Float16 half;

			memcpy(&half, (uint16_t *)got + k, sizeof(half));
			memcpy(&x, &want[k], sizeof(x));
			y = (float)half;
			check(fabsf(x - y) <= 0x1p-11f);
		}
	}
	rig_free(bench.rig);
}

/* A texture whose end is not backed by memory: the lane at fault is found, and its
 * texel. */
TEST(a_texel_outside_of_memory_is_a_fault_of_its_lane)
{
	static struct bench bench;
	struct softgpu_texture *t;
	uint32_t result[4];
	uint64_t fault = 0;
	unsigned int first;

	bench_init(&bench);
	fill_texels(&bench);
	for (unsigned int linear = 0; linear < 2; linear++) {
		t = make_texture(&bench, TEXTURE_2D, TEXEL_F32, 1);
		t->levels[0].height = HEIGHT + 1;
		t->filters_linearly = linear;
		for (unsigned int i = 0; i < THREADS; i++) {
			bench.in->bits[i][0] = bits_of(2.5f + (float)(i % 7));
			bench.in->bits[i][1] = bits_of(0.5f);
		}
		check_eq(run(&bench, "f1", t->number, 0), 0);
		bench.in->bits[43][1] = bits_of(HEIGHT + 0.5f);
		check_eq(run(&bench, "f1", t->number, 3), 0); /* it is left out */
		check_eq(run(&bench, "f1", t->number, 0), SOFTGPU_ERROR_ILLEGAL_ADDRESS);
		for (first = 0; first < THREADS; first++)
			if (!sample(&bench, t, TEXTURE_2D, false, first, result, &fault))
				break;
		check_eq(first, 43);
		check_eq(bench.rig->fault.thread[0], 43);
		check_eq(bench.rig->fault.address, fault);
	}
	rig_free(bench.rig);
}
