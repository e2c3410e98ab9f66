/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler: cubes without seams, levels that gradients choose, and rows of probes
 */

#include <math.h>
#include <string.h>

#include "exec-harness.h"
#include "exec/texture.h"
#include "test.h"

static const char ptx[] = ".version 9.0\n.target sm_121\n.address_size 64\n"
			  ".visible .entry k() { ret; }\n";

/* The direction of a point on a face; the coordinates are from -1 to 1. */
static void direct(unsigned int face, double s, double t, double to[3])
{
	const double all[6][3] = { { 1, -t, -s }, { -1, -t, s }, { s, 1, t },
		{ s, -1, -t }, { s, -t, 1 }, { -s, -t, -1 } };

	memcpy(to, all[face], sizeof(all[face]));
}

static double centre(int i, int n)
{
	return (2.0 * i + 1.0 - n) / n;
}

struct bench {
	struct rig *rig;
	struct softgpu_texture texture;
	float *texels;
};

static void bench_init(struct bench *bench, uint32_t width, uint32_t height)
{
	*bench = (struct bench){ .rig = rig_new(ptx) };
	bench->texels = rig_alloc(bench->rig, 1u << 20);
	bench->texture = (struct softgpu_texture){
		.n_levels = 1,
		.levels[0] = { .address = (uintptr_t)bench->texels,
			.pitch = 4ull * width,
			.slice = 4ull * width * height,
			.width = width,
			.height = height },
		.format = TEXEL_F32,
		.n_channels = 1,
		.n_dimensions = 2,
		.is_normalized = true,
		.filters_linearly = true,
		.address_modes = { TEXTURE_CLAMP, TEXTURE_CLAMP, TEXTURE_CLAMP },
		.level_max = 99.0f,
	};
}

static void make_cube(struct bench *bench)
{
	bench->texture.is_cube = true;
	bench->texture.is_seamless = true;
	bench->texture.levels[0].depth = 6;
}

static uint32_t bits_of(double x)
{
	float f = (float)x;
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static void sample(struct bench *bench, struct texture_query *query, float to[4])
{
	uint32_t result[4];
	uint64_t fault;

	query->space = &bench->rig->space;
	query->texture = &bench->texture;
	check(softgpu_texture_sample(query, result, &fault));
	memcpy(to, result, sizeof(result));
}

static float sample_cube(struct bench *bench, const double direction[3])
{
	struct texture_query query = { .shape = TEXTURE_CUBE, .gather = -1 };
	float to[4];

	for (unsigned int i = 0; i < 3; i++)
		query.coordinates[i] = bits_of(direction[i]);
	sample(bench, &query, to);
	return to[0];
}

/* The number of the texel with that centre, or -1. */
static int find_texel(const double at[3], int n)
{
	double centres[3];

	for (unsigned int face = 0; face < 6; face++)
		for (int i = 0; i < n * n; i++) {
			direct(face, centre(i % n, n), centre(i / n, n), centres);
			if (fabs(centres[0] - at[0]) + fabs(centres[1] - at[1]) +
					fabs(centres[2] - at[2]) <
				1e-6)
				return (int)face * n * n + i;
		}
	return -1;
}

/* Folds the plane of the face over its edge, where @sign * (s or t) is 1. */
static void fold(
	unsigned int face, bool is_s, int sign, double along, int n, double to[3])
{
	double edge[3], middle[3];

	direct(face, is_s ? sign : along, is_s ? along : sign, edge);
	direct(face, 0, 0, middle);
	for (unsigned int i = 0; i < 3; i++)
		to[i] = edge[i] - middle[i] / n;
}

/* Exactly on the edge a filter mixes the texels on both sides, half and half. */
static void check_edges(struct bench *bench, int n)
{
	for (unsigned int face = 0; face < 6; face++)
		for (unsigned int side = 0; side < 4; side++)
			for (int i = 0; i < n; i++) {
				bool is_s = side & 1;
				int sign = side & 2 ? 1 : -1, near, beyond;
				int last = sign > 0 ? n - 1 : 0;
				double at[3], along = centre(i, n), got, want;

				fold(face, is_s, sign, along, n, at);
				beyond = find_texel(at, n);
				check(beyond >= 0);
				direct(face, is_s ? centre(last, n) : along,
					is_s ? along : centre(last, n), at);
				near = find_texel(at, n);
				direct(face, is_s ? sign * 0.999999 : along,
					is_s ? along : sign * 0.999999, at);
				got = sample_cube(bench, at);
				want = 0.5 * ((double)bench->texels[near] +
						     (double)bench->texels[beyond]);
				if (fabs(got - want) > 1e-3)
					test_fail(__FILE__, __LINE__,
						"n %d face %u side %u texel %d: %g, not "
						"%g",
						n, face, side, i, got, want);
			}
}

TEST(filters_go_on_over_the_edges_of_a_cube)
{
	static const int sizes[] = { 1, 2, 3, 8, 16 };
	static struct bench bench;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		int n = sizes[k];

		bench_init(&bench, (uint32_t)n, (uint32_t)n);
		make_cube(&bench);
		for (int i = 0; i < 6 * n * n; i++)
			bench.texels[i] = (float)(i * 37 % 101);
		check_edges(&bench, n);
		rig_free(bench.rig);
	}
}

/* Where three faces meet, each of their texels counts a third. */
TEST(corners_of_a_cube_are_means_of_three_texels)
{
	static struct bench bench;
	const int n = 4;

	bench_init(&bench, n, n);
	make_cube(&bench);
	for (int i = 0; i < 6 * n * n; i++)
		bench.texels[i] = (float)(i * 37 % 101);
	for (unsigned int corner = 0; corner < 8; corner++) {
		double at[3], sum = 0, got;

		for (unsigned int i = 0; i < 3; i++)
			at[i] = corner >> i & 1 ? 1.0 : -1.0;
		for (unsigned int k = 0; k < 3; k++) {
			double texel[3];
			int found;

			for (unsigned int i = 0; i < 3; i++)
				texel[i] = i == k ? at[i] : at[i] * (1.0 - 1.0 / n);
			found = find_texel(texel, n);
			check(found >= 0);
			sum += bench.texels[found];
		}
		/* Just inside of one face: the corner's own texel and the missing one. */
		at[corner % 3] *= 1.000001;
		got = sample_cube(&bench, at);
		if (fabs(got - sum / 3) > 1e-3)
			test_fail(__FILE__, __LINE__, "corner %u: %g, not %g", corner,
				got, sum / 3);
	}
	/* With seams there are none of the others. */
	bench.texture.is_seamless = false;
	check(sample_cube(&bench, (const double[3]){ 1.000001, 1, 1 }) ==
		bench.texels[0]);
	rig_free(bench.rig);
}

/* As a filter, a footprint of four texels goes on; it begins at the lower left. */
TEST(gathers_go_on_over_the_edges_of_a_cube)
{
	struct texture_query query = { .shape = TEXTURE_CUBE };
	static struct bench bench;
	const int n = 4;
	double at[3], beyond[3];
	float got[4];

	bench_init(&bench, n, n);
	make_cube(&bench);
	for (int i = 0; i < 6 * n * n; i++)
		bench.texels[i] = (float)i;
	direct(4, 0.95, 0.1, at);
	for (unsigned int i = 0; i < 3; i++)
		query.coordinates[i] = bits_of(at[i]);
	sample(&bench, &query, got);
	check(got[3] == (float)(4 * n * n + 1 * n + 3));
	check(got[0] == (float)(4 * n * n + 2 * n + 3));
	fold(4, true, 1, centre(1, n), n, beyond);
	check(got[2] == (float)find_texel(beyond, n));
	fold(4, true, 1, centre(2, n), n, beyond);
	check(got[1] == (float)find_texel(beyond, n));
	rig_free(bench.rig);
}

/* Directions that are none select some texel. */
TEST(directions_that_are_no_numbers_are_harmless)
{
	static struct bench bench;

	bench_init(&bench, 5, 5);
	make_cube(&bench);
	for (unsigned int i = 0; i < 125; i++) {
		const double numbers[] = { 0, NAN, INFINITY, -INFINITY, 3e38 };
		const double at[3] = { numbers[i % 5], numbers[i / 5 % 5],
			numbers[i / 25] };

		check(sample_cube(&bench, at) == 0.0f);
	}
	rig_free(bench.rig);
}

/* Each level has one colour, its number. */
static void make_levels(struct bench *bench, uint32_t n)
{
	struct softgpu_texture *t = &bench->texture;
	uint64_t used = 0;

	for (uint32_t i = 0; n >> i; i++) {
		uint32_t size = n >> i;

		t->levels[i] = (struct texture_level){
			.address = (uintptr_t)(bench->texels + used),
			.pitch = 4ull * size,
			.slice = 4ull * size * size,
			.width = size,
			.height = size,
			.depth = t->is_cube ? 6 : 0,
		};
		for (uint32_t k = 0; k < 6 * size * size; k++)
			bench->texels[used++] = (float)i;
		t->n_levels = i + 1;
	}
	t->filters_levels = true;
}

static float sample_gradient(struct bench *bench, const float dx[3], const float dy[3])
{
	struct texture_query query = {
		.shape = TEXTURE_2D, .gather = -1, .has_gradient = true
	};
	float to[4];

	query.coordinates[0] = bits_of(0.5);
	query.coordinates[1] = bits_of(0.5);
	memcpy(query.gradient[0], dx, sizeof(query.gradient[0]));
	memcpy(query.gradient[1], dy, sizeof(query.gradient[1]));
	sample(bench, &query, to);
	return to[0];
}

/* A row of 8 x 2 texels: one probe of 8, two of 4, or four of 2. */
TEST(anisotropy_divides_the_longer_gradient)
{
	static const struct {
		unsigned int most;
		float x, y, level;
	} cases[] = {
		{ 0, 8, 2, 3 },
		{ 1, 8, 2, 3 },
		{ 2, 8, 2, 2 },
		{ 4, 8, 2, 1 },
		{ 16, 8, 2, 1 },
		{ 16, 2, 8, 1 },
		{ 16, 8, 8, 3 },
		{ 16, 32, 1, 1 }, /* at most 16 probes */
		{ 3, 24, 1, 3 },
		{ 16, 5, 4, 1.32193f }, /* two probes of 2.5 texels */
		{ 16, 0, 0, 0 },
		{ 16, 8, 0, 0 },
		{ 16, INFINITY, 1, 6 },
		{ 16, NAN, 2, 1 },
	};
	static struct bench bench;

	bench_init(&bench, 64, 64);
	make_levels(&bench, 64);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const float dx[3] = { cases[i].x / 64.0f },
			    dy[3] = { 0, cases[i].y / 64 };
		float got;

		bench.texture.max_anisotropy = (uint8_t)cases[i].most;
		got = sample_gradient(&bench, dx, dy);
		if (fabsf(got - cases[i].level) > 1.0f / 128)
			test_fail(__FILE__, __LINE__, "case %zu: level %g, not %g", i,
				got, cases[i].level);
	}
	rig_free(bench.rig);
}

/* The result is the mean of filtered fetches in the middle of equal parts. */
TEST(probes_lie_along_the_longer_gradient)
{
	static struct bench bench;
	const int n = 16, probes = 4;
	const float dx[3] = { 8.0f / 16, 4.0f / 16 }, dy[3] = { 0, 2.0f / 16 };
	float got;
	double sum = 0;

	bench_init(&bench, (uint32_t)n, (uint32_t)n);
	for (int i = 0; i < n * n; i++)
		bench.texels[i] = (float)(i * i % 97);
	/* sqrt(80) / 2 is 4.5. */
	bench.texture.max_anisotropy = 4;
	got = sample_gradient(&bench, dx, dy);
	for (int i = 0; i < probes; i++) {
		double part = (i + 0.5) / probes - 0.5;
		double x = (0.5 + part * (double)dx[0]) * n - 0.5;
		double y = (0.5 + part * (double)dx[1]) * n - 0.5;
		int left = (int)floor(x), top = (int)floor(y);
		const float *at = &bench.texels[top * n + left];

		x -= left;
		y -= top;
		sum += (1 - y) * ((1 - x) * (double)at[0] + x * (double)at[1]) +
		       y * ((1 - x) * (double)at[n] + x * (double)at[n + 1]);
	}
	if (fabs((double)got - sum / probes) > 0.5)
		test_fail(__FILE__, __LINE__, "%g, not %g", got, sum / probes);
	/* A point filter has no mean. */
	bench.texture.filters_linearly = false;
	check(sample_gradient(&bench, dx, dy) == bench.texels[8 * n + 8]);
	rig_free(bench.rig);
}

/* On a face a change of the direction is half as long, and shorter farther out. */
TEST(gradients_of_directions_are_those_on_the_face)
{
	static struct bench bench;
	static const struct {
		float direction[3], change[3];
		double texels;
	} cases[] = {
		{ { 1, 0, 0 }, { 0, 0.25f, 0 }, 8 },
		{ { 4, 0, 0 }, { 0, 0, 0.25f }, 2 },
		{ { 0, -1, 0 }, { 0.125f, 0, 0 }, 4 },
		{ { 0, 0, 1 }, { 0.125f, 0, 0 }, 4 },
		{ { 0, 0, -1 }, { 0, 0.5f, 0 }, 16 },
		{ { 2, 0, 0 }, { 1, 0, 0 }, 0 }, /* along the direction */
		/* d(z/x) = -z/x^2 dx = 0.5 * 0.25 */
		{ { 1, 0, -0.5f }, { 0.25f, 0, 0 }, 4 },
	};

	bench_init(&bench, 64, 64);
	make_cube(&bench);
	make_levels(&bench, 64);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct texture_query query = {
			.shape = TEXTURE_CUBE, .gather = -1, .has_gradient = true
		};
		double want = cases[i].texels > 0 ? log2(cases[i].texels) : 0;
		float got[4];

		for (unsigned int k = 0; k < 3; k++)
			query.coordinates[k] = bits_of((double)cases[i].direction[k]);
		memcpy(query.gradient[1], cases[i].change, sizeof(query.gradient[1]));
		sample(&bench, &query, got);
		if (fabs((double)got[0] - want) > 1.0 / 128)
			test_fail(__FILE__, __LINE__, "case %zu: level %g, not %g", i,
				got[0], want);
	}
	rig_free(bench.rig);
}
