/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: texture and surface objects
 *
 * Kernels fetch by a texture or write by a surface; the results are computed anew on the
 * CPU, with the formulas of the CUDA programming guide.
 */

#include <math.h>
#include <stdio.h>

#include "texture.h"

/* clang-format off */
static const char texture_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	KERNEL("fetch_1d", "tex.1d.v4.u32.s32 " RESULT ", [%d0, {%r8}];\n")
	KERNEL("tex_1d", "tex.1d.v4.f32.f32 " RESULT ", [%d0, {%r8}];\n")
	KERNEL("tex_2d", "tex.2d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9}];\n")
	KERNEL("tex_3d", "tex.3d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9, %r10, %r10}];\n")
	KERNEL("tex_a1d", "tex.a1d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9}];\n")
	KERNEL("tex_a2d",
		"tex.a2d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9, %r10, %r10}];\n")
	KERNEL("tex_cube",
		"tex.cube.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9, %r10, %r10}];\n")
	KERNEL("tex_acube",
		"tex.acube.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9, %r10, %r11}];\n")
	KERNEL("level_2d",
		"tex.level.2d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9}], %r10;\n")
	KERNEL("grad_2d",
		"tex.grad.2d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9}], {%r10, "
		"0f00000000}, {0f00000000, %r11};\n")
	KERNEL("gather", "tld4.g.2d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9}];\n")
	KERNEL("sizes",
		"txq.width.b32 %r4, [%d0]; txq.height.b32 %r5, [%d0];\n"
		"txq.depth.b32 %r6, [%d0]; txq.num_mipmap_levels.b32 %r7, [%d0];\n")
	KERNEL("resident",
		"tex.2d.v4.f32.f32 {%r4, _, _, _}|%p0, [%d0, {%r8, %r9}];\n"
		"selp.b32 %r5, 1, 2, %p0;\n")
	KERNEL("half_2d", "tex.2d.v2.f16x2.f32 {%r4, %r5}, [%d0, {%r8, %r9}];\n")
	KERNEL("load_2d", "suld.b.2d.b32.trap %r4, [%d0, {%r8, %r9}];\n")
	KERNEL("load_2d_zero", "suld.b.2d.v4.b8.zero " RESULT ", [%d0, {%r8, %r9}];\n")
	KERNEL("load_2d_clamp", "suld.b.2d.b32.clamp %r4, [%d0, {%r8, %r9}];\n")
	KERNEL("load_1d_wide",
		".reg .b64 %w<2>; suld.b.1d.v2.b64.trap {%w0, %w1}, [%d0, {%r8}];\n"
		"mov.b64 {%r4, %r5}, %w0; mov.b64 {%r6, %r7}, %w1;\n")
	KERNEL("store_2d", "sust.b.2d.b32.trap [%d0, {%r8, %r9}], %r10;\n")
	KERNEL("store_2d_zero", "sust.b.2d.b32.zero [%d0, {%r8, %r9}], %r10;\n")
	KERNEL("store_3d", "sust.b.3d.b32.trap [%d0, {%r8, %r9, %r10, %r10}], %r11;\n")
	KERNEL("store_a2d", "sust.b.a2d.b32.trap [%d0, {%r8, %r9, %r10, %r10}], %r11;\n")
	KERNEL("add_2d", "sured.b.add.2d.u32.trap [%d0, {%r8, %r9}], %r10;\n")
	KERNEL("max_2d", "sured.b.max.2d.s32.trap [%d0, {%r8, %r9}], %r10;\n")
	KERNEL("surface_sizes",
		"suq.width.b32 %r4, [%d0]; suq.height.b32 %r5, [%d0];\n"
		"suq.channel_data_type.b32 %r6, [%d0];\n"
		"suq.channel_order.b32 %r7, [%d0];\n");
/* clang-format on */

/* The index that an address mode makes of one. Return: -1 for the border. */
static int addressed(int i, int n, CUaddress_mode mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case CU_TR_ADDRESS_MODE_WRAP:
		return (i % n + n) % n;
	case CU_TR_ADDRESS_MODE_MIRROR:
		i = (i % (2 * n) + 2 * n) % (2 * n);
		return i < n ? i : 2 * n - 1 - i;
	case CU_TR_ADDRESS_MODE_CLAMP:
		return i < 0 ? 0 : n - 1;
	default:
		return -1;
	}
}

static float texel_1d(const float *texels, int n, int i, CUaddress_mode mode)
{
	int at = addressed(i, n, mode);

	return at < 0 ? 0.25f : texels[at];
}

TEST(linear_memory_is_fetched_by_index)
{
	CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear = { .format = CU_AD_FORMAT_UNSIGNED_INT16, .numChannels = 2,
			.sizeInBytes = 64 * 4 },
	}, got;
	uint16_t texels[128];
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUtexObject object;

	for (int i = 0; i < 128; i++)
		texels[i] = i * 509;
	check_ok(cuMemAlloc(&resource.res.linear.devPtr, sizeof(texels)));
	check_ok(cuMemcpyHtoD(resource.res.linear.devPtr, texels, sizeof(texels)));
	object = make_texture(&resource, CU_TR_ADDRESS_MODE_CLAMP,
		CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
	for (int i = 0; i < THREADS; i++)
		in[i].s[0] = i * 3 - 16;
	check_ok(run(&bench, "fetch_1d", object, in, out));
	for (int i = 0; i < THREADS; i++) {
		int at = i * 3 - 16;
		bool inside = at >= 0 && at < 64;

		check_eq(out[i].u[0], inside ? texels[2 * at] : 0);
		check_eq(out[i].u[1], inside ? texels[2 * at + 1] : 0);
	}
	check_ok(cuTexObjectGetResourceDesc(&got, object));
	check_eq(got.resType, CU_RESOURCE_TYPE_LINEAR);
	check_eq(got.res.linear.devPtr, resource.res.linear.devPtr);
	check_eq(got.res.linear.sizeInBytes, 256);
	check_ok(cuTexObjectDestroy(object));
	/* More than there is. */
	resource.res.linear.sizeInBytes = 257;
	check_cu(cuTexObjectCreate(&object, &resource, &(CUDA_TEXTURE_DESC){}, NULL),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(one_dimension_follows_all_address_modes)
{
	const CUaddress_mode modes[] = { CU_TR_ADDRESS_MODE_WRAP,
		CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_MIRROR,
		CU_TR_ADDRESS_MODE_BORDER };
	float texels[8];
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object;
	CUarray array;

	for (int i = 0; i < 8; i++)
		texels[i] = 1.5f * i * i - 3.0f;
	array = make_array(8, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	check_ok(cuMemcpyHtoA(array, 0, texels, sizeof(texels)));
	resource = over_array(array);
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = (i - 12) / 8.0f + 1 / 64.0f;
	for (int m = 0; m < 4; m++) {
		object = make_texture(&resource, modes[m], CU_TR_FILTER_MODE_POINT,
			CU_TRSF_NORMALIZED_COORDINATES);
		check_ok(run(&bench, "tex_1d", object, in, out));
		for (int i = 0; i < THREADS; i++)
			check_near(out[i].f[0], texel_1d(texels, 8, i - 12, modes[m]));
		check_ok(cuTexObjectDestroy(object));
		object = make_texture(&resource, modes[m], CU_TR_FILTER_MODE_LINEAR,
			CU_TRSF_NORMALIZED_COORDINATES);
		check_ok(run(&bench, "tex_1d", object, in, out));
		for (int i = 0; i < THREADS; i++) {
			/* x = i - 12 + 1/8, minus a half: 5/8 between two texels. */
			float a = texel_1d(texels, 8, i - 13, modes[m]);
			float b = texel_1d(texels, 8, i - 12, modes[m]);

			check_near(out[i].f[0], 0.375f * a + 0.625f * b);
		}
		check_ok(cuTexObjectDestroy(object));
	}
}

/* The weight of a texel has 8 fractional bits. */
TEST(weights_have_eight_bits_of_fraction)
{
	const float texels[2] = { 0.0f, 256.0f };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object;
	CUarray array;

	array = make_array(2, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	check_ok(cuMemcpyHtoA(array, 0, texels, sizeof(texels)));
	resource = over_array(array);
	object = make_texture(
		&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = 0.5f + (7 * i + 0.25f) / 256.0f;
	check_ok(run(&bench, "tex_1d", object, in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], 7.0f * i);
}

/* A bilinear fetch of the first channel, by the formula. */
static float bilinear(const float *texels, int width, int height, float x, float y,
	CUaddress_mode mode, int channels)
{
	float xb = x - 0.5f, yb = y - 0.5f, sum = 0;
	int i = floorf(xb), j = floorf(yb);
	float a = rintf((xb - i) * 256) / 256, b = rintf((yb - j) * 256) / 256;

	for (int k = 0; k < 4; k++) {
		int u = addressed(i + (k & 1), width, mode);
		int v = addressed(j + (k >> 1), height, mode);
		float t = u < 0 || v < 0 ? 0.25f : texels[(v * width + u) * channels];

		sum += (k & 1 ? a : 1 - a) * (k >> 1 ? b : 1 - b) * t;
	}
	return sum;
}

TEST(two_dimensions_are_filtered_over_arrays_and_over_memory)
{
	enum { WIDTH = 12, HEIGHT = 7 };
	float texels[HEIGHT][WIDTH][2];
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resources[2];
	CUtexObject object;
	CUdeviceptr memory;
	size_t pitch;

	for (int i = 0; i < HEIGHT * WIDTH * 2; i++)
		(&texels[0][0][0])[i] = (i * 37 % 101) - 50.0f;
	resources[0] = over_array(make_array(WIDTH, HEIGHT, 0, CU_AD_FORMAT_FLOAT, 2, 0));
	fill_array(resources[0].res.array.hArray, texels, sizeof(texels[0]), HEIGHT, 1);
	check_ok(cuMemAllocPitch(&memory, &pitch, sizeof(texels[0]), HEIGHT, 8));
	for (int y = 0; y < HEIGHT; y++)
		check_ok(cuMemcpyHtoD(memory + y * pitch, texels[y], sizeof(texels[0])));
	resources[1] = (CUDA_RESOURCE_DESC){
		.resType = CU_RESOURCE_TYPE_PITCH2D,
		.res.pitch2D = { .devPtr = memory,
			.format = CU_AD_FORMAT_FLOAT,
			.numChannels = 2,
			.width = WIDTH,
			.height = HEIGHT,
			.pitchInBytes = pitch },
	};
	for (int i = 0; i < THREADS; i++) {
		in[i].f[0] = i * 0.53125f - 2.0f;
		in[i].f[1] = (i * 11 % THREADS) * 0.3125f - 1.0f;
	}
	for (int k = 0; k < 2; k++) {
		object = make_texture(&resources[k], CU_TR_ADDRESS_MODE_BORDER,
			CU_TR_FILTER_MODE_LINEAR, 0);
		check_ok(run(&bench, "tex_2d", object, in, out));
		for (int i = 0; i < THREADS; i++)
			check_near(out[i].f[0],
				bilinear(&texels[0][0][0], WIDTH, HEIGHT, in[i].f[0],
					in[i].f[1], CU_TR_ADDRESS_MODE_BORDER, 2));
		check_ok(cuTexObjectDestroy(object));
	}
	/* A rectangle that does not fit its allocation. */
	resources[1].res.pitch2D.height = HEIGHT + 100000;
	check_cu(cuTexObjectCreate(&object, &resources[1], &(CUDA_TEXTURE_DESC){}, NULL),
		CUDA_ERROR_INVALID_VALUE);
}

/* The values that formats of 8 and 16 bits are read as. */
TEST(integers_are_read_as_they_are_or_as_fractions)
{
	const CUarray_format formats[4] = { CU_AD_FORMAT_UNSIGNED_INT8,
		CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16,
		CU_AD_FORMAT_SIGNED_INT16 };
	const float scales[4] = { 255, 127, 65535, 32767 };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	uint16_t words[4 * THREADS];
	CUtexObject object;

	for (int i = 0; i < 4 * THREADS; i++)
		words[i] = i * 40503 + 128;
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = i + 0.5f;
	for (int f = 0; f < 4; f++) {
		CUarray array = make_array(THREADS, 0, 0, formats[f], 4, 0);

		check_ok(cuMemcpyHtoA(array, 0, words, THREADS * (f < 2 ? 4 : 8)));
		resource = over_array(array);
		for (int k = 0; k < 2; k++) {
			object = make_texture(&resource, CU_TR_ADDRESS_MODE_CLAMP,
				CU_TR_FILTER_MODE_POINT, k ? CU_TRSF_READ_AS_INTEGER : 0);
			check_ok(run(&bench, "tex_1d", object, in, out));
			for (int i = 0; i < 4 * THREADS; i++) {
				const int values[4] = { ((uint8_t *)words)[i],
					((int8_t *)words)[i], words[i],
					(int16_t)words[i] };
				const union four *o = &out[i / 4];

				if (k)
					check_eq(o->s[i % 4], values[f]);
				else
					check_near(o->f[i % 4],
						fmaxf(values[f] / scales[f], -1));
			}
			check_ok(cuTexObjectDestroy(object));
		}
		check_ok(cuArrayDestroy(array));
	}
}

TEST(halves_are_read_and_returned)
{
	/* 1, -2, 0.5 and 65504. */
	const uint16_t halves[4] = { 0x3c00, 0xc000, 0x3800, 0x7bff };
	const float values[4] = { 1.0f, -2.0f, 0.5f, 65504.0f };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object;

	resource = over_array(make_array(1, 1, 0, CU_AD_FORMAT_HALF, 4, 0));
	fill_array(resource.res.array.hArray, halves, 8, 1, 1);
	object = make_texture(
		&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
	check_ok(run(&bench, "tex_2d", object, in, out));
	for (int i = 0; i < 4; i++)
		check_near(out[5].f[i], values[i]);
	check_ok(run(&bench, "half_2d", object, in, out));
	check_eq(out[3].u[0], 0xc0003c00);
	check_eq(out[3].u[1], 0x7bff3800);
	check_ok(run(&bench, "resident", object, in, out));
	check_near(out[9].f[0], 1.0f);
	check_eq(out[9].u[1], 1);
}

TEST(three_dimensions_and_layers_are_distinguished)
{
	enum { N = 4 };
	float texels[N][N][N];
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object;

	for (int i = 0; i < N * N * N; i++)
		(&texels[0][0][0])[i] = i * i;
	resource = over_array(make_array(N, N, N, CU_AD_FORMAT_FLOAT, 1, 0));
	fill_array(resource.res.array.hArray, texels, sizeof(texels[0][0]), N, N);
	object = make_texture(
		&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
	for (int i = 0; i < THREADS; i++) {
		in[i].f[0] = 1.0f + i % 2;
		in[i].f[1] = 1.0f + i / 2 % 2;
		in[i].f[2] = 1.0f + i / 4 % 2;
	}
	check_ok(run(&bench, "tex_3d", object, in, out));
	for (int i = 0; i < THREADS; i++) {
		float sum = 0;

		for (int k = 0; k < 8; k++)
			sum += texels[i / 4 % 2 + k / 4][i / 2 % 2 + k / 2 % 2]
				     [i % 2 + k % 2];
		check_near(out[i].f[0], sum / 8);
	}
	/* Layers are not filtered between, and bounded. */
	resource = over_array(
		make_array(N, N, N, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED));
	fill_array(resource.res.array.hArray, texels, sizeof(texels[0][0]), N, N);
	object = make_texture(
		&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
	for (int i = 0; i < THREADS; i++) {
		in[i].u[0] = i;
		in[i].f[1] = 1.0f;
		in[i].f[2] = 2.5f;
	}
	check_ok(run(&bench, "tex_a2d", object, in, out));
	for (int i = 0; i < THREADS; i++) {
		int layer = i < N ? i : N - 1;

		check_near(out[i].f[0], (texels[layer][2][0] + texels[layer][2][1]) / 2);
	}
	resource = over_array(
		make_array(N, 0, N, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED));
	fill_array(resource.res.array.hArray, texels, sizeof(texels[0][0]), 1, N);
	object = make_texture(
		&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	check_ok(run(&bench, "tex_a1d", object, in, out));
	for (int i = 0; i < N; i++)
		check_near(out[i].f[0], texels[0][i][1]);
}

TEST(directions_find_the_faces_of_cubes)
{
	float faces[12][2][2], way[6][3] = { { 1, 0, 0 }, { -1, 0, 0 }, { 0, 1, 0 },
		{ 0, -1, 0 }, { 0, 0, 1 }, { 0, 0, -1 } };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object;

	for (int i = 0; i < 48; i++)
		(&faces[0][0][0])[i] = 100 * (i / 4) + i % 4;
	resource = over_array(
		make_array(2, 2, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP));
	fill_array(resource.res.array.hArray, faces, sizeof(faces[0][0]), 2, 6);
	object = make_texture(&resource, CU_TR_ADDRESS_MODE_CLAMP,
		CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
	for (int i = 0; i < THREADS; i++)
		memcpy(in[i].f, way[i % 6], sizeof(way[0]));
	/* To the right and up on the face of +z: s = 3/4, t = 1/4. */
	in[4].f[0] = 0.5f;
	in[4].f[1] = 0.5f;
	check_ok(run(&bench, "tex_cube", object, in, out));
	for (int i = 0; i < 6; i++)
		check_near(out[i].f[0], 100 * i + (i == 4 ? 1.0f : 1.5f));
	resource = over_array(make_array(2, 2, 12, CU_AD_FORMAT_FLOAT, 1,
		CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
	fill_array(resource.res.array.hArray, faces, sizeof(faces[0][0]), 2, 12);
	object = make_texture(&resource, CU_TR_ADDRESS_MODE_CLAMP,
		CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
	for (int i = 0; i < 12; i++) {
		in[i].u[0] = i / 6;
		memcpy(in[i].f + 1, way[i % 6], sizeof(way[0]));
	}
	check_ok(run(&bench, "tex_acube", object, in, out));
	for (int i = 0; i < 12; i++)
		check_near(out[i].f[0], 100 * i + 1.5f);
}

TEST(levels_are_chosen_mixed_and_viewed)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { 8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY };
	CUDA_TEXTURE_DESC texture = {
		.flags = CU_TRSF_NORMALIZED_COORDINATES,
		.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR,
		.maxMipmapLevelClamp = 2.5f,
	}, got_texture;
	CUDA_RESOURCE_VIEW_DESC view = { .format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
		.width = 8,
		.height = 8,
		.firstMipmapLevel = 1,
		.lastMipmapLevel = 2 },
				got_view;
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC got;
	CUtexObject object, viewed;
	float texels[64];

	check_ok(cuMipmappedArrayCreate(
		&resource.res.mipmap.hMipmappedArray, &descriptor, 4));
	for (int i = 0; i < 4; i++) {
		CUarray level;

		for (int k = 0; k < 64; k++)
			texels[k] = 10.0f * i;
		check_ok(cuMipmappedArrayGetLevel(
			&level, resource.res.mipmap.hMipmappedArray, i));
		fill_array(level, texels, 4 * (8 >> i), 8 >> i, 1);
	}
	check_ok(cuTexObjectCreate(&object, &resource, &texture, NULL));
	for (int i = 0; i < THREADS; i++) {
		in[i].f[0] = in[i].f[1] = 0.5f;
		in[i].f[2] = i * 0.125f;
		/* A step of 2^(i / 8) texels in one direction. */
		in[i].f[3] = 0;
	}
	check_ok(run(&bench, "level_2d", object, in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], fminf(i * 1.25f, 25.0f));
	for (int i = 0; i < THREADS; i++) {
		in[i].f[2] = (i + 1) / 8.0f;
		in[i].f[3] = 1 / 16.0f;
	}
	check_ok(run(&bench, "grad_2d", object, in, out));
	check_near(out[0].f[0], 0.0f);
	check_near(out[1].f[0], 10.0f);
	check_near(out[3].f[0], 20.0f);
	check_near(out[7].f[0], 25.0f);
	/* Levels 1 and 2 alone. */
	view.width = view.height = 8;
	check_ok(cuTexObjectCreate(&viewed, &resource, &texture, &view));
	check_ok(run(&bench, "sizes", viewed, in, out));
	check_eq(out[0].u[3], 2);
	check_eq(out[0].u[0], 4);
	check_ok(cuTexObjectGetResourceViewDesc(&got_view, viewed));
	check_eq(got_view.lastMipmapLevel, 2);
	check_eq(got_view.format, CU_RES_VIEW_FORMAT_FLOAT_1X32);
	check_cu(cuTexObjectGetResourceViewDesc(&got_view, object),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuTexObjectGetTextureDesc(&got_texture, object));
	check_eq(got_texture.flags, CU_TRSF_NORMALIZED_COORDINATES);
	check_near(got_texture.maxMipmapLevelClamp, 2.5f);
	check_ok(cuTexObjectGetResourceDesc(&got, object));
	check_eq((uintptr_t)got.res.mipmap.hMipmappedArray,
		(uintptr_t)resource.res.mipmap.hMipmappedArray);
}

TEST(gathers_return_four_texels_of_a_channel)
{
	float texels[3][3][2];
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUtexObject object;

	for (int i = 0; i < 18; i++)
		(&texels[0][0][0])[i] = i;
	resource = over_array(
		make_array(3, 3, 0, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_TEXTURE_GATHER));
	fill_array(resource.res.array.hArray, texels, sizeof(texels[0]), 3, 1);
	object = make_texture(
		&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = in[i].f[1] = 2.0f;
	check_ok(run(&bench, "gather", object, in, out));
	check_near(out[1].f[0], texels[2][1][1]);
	check_near(out[1].f[1], texels[2][2][1]);
	check_near(out[1].f[2], texels[1][2][1]);
	check_near(out[1].f[3], texels[1][1][1]);
}

TEST(surfaces_are_written_and_read)
{
	enum { WIDTH = 8, HEIGHT = 4 };
	uint32_t texels[HEIGHT][WIDTH], got[HEIGHT][WIDTH] = {};
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource;
	CUsurfObject surface;
	CUarray array;

	array = make_array(WIDTH, HEIGHT, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1,
		CUDA_ARRAY3D_SURFACE_LDST);
	surface = make_surface(array);
	for (int i = 0; i < THREADS; i++) {
		in[i].s[0] = 4 * (i % WIDTH);
		in[i].s[1] = i / WIDTH;
		in[i].u[2] = texels[i / WIDTH][i % WIDTH] = i * 2654435761u;
	}
	check_ok(run(&bench, "store_2d", surface, in, out));
	for (int y = 0; y < HEIGHT; y++) {
		CUDA_MEMCPY2D copy = {
			.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			.srcArray = array,
			.srcY = y,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = got[y],
			.WidthInBytes = sizeof(got[y]),
			.Height = 1,
		};

		check_ok(cuMemcpy2D(&copy));
	}
	check(!memcmp(got, texels, sizeof(got)));
	check_ok(run(&bench, "load_2d", surface, in, out));
	for (int i = 0; i < THREADS; i++)
		check_eq(out[i].u[0], texels[i / WIDTH][i % WIDTH]);
	check_ok(run(&bench, "surface_sizes", surface, in, out));
	check_eq(out[0].u[0], WIDTH);
	check_eq(out[0].u[1], HEIGHT);
	/* Additions of many lanes to one place all count; so does the largest. */
	for (int i = 0; i < THREADS; i++)
		in[i] = (union four){ .s = { 4, 1, i + 1 } };
	check_ok(run(&bench, "add_2d", surface, in, out));
	check_ok(run(&bench, "load_2d", surface, in, out));
	check_eq(out[0].u[0], texels[1][1] + 528);
	for (int i = 0; i < THREADS; i++)
		in[i] = (union four){ .s = { 8, 1, 0x70000000 + i } };
	check_ok(run(&bench, "max_2d", surface, in, out));
	check_ok(run(&bench, "load_2d", surface, in, out));
	check_eq(out[0].s[0],
		(int32_t)texels[1][2] > 0x7000001f ? (int)texels[1][2] : 0x7000001f);
	check_ok(cuSurfObjectGetResourceDesc(&resource, surface));
	check_eq((uintptr_t)resource.res.array.hArray, (uintptr_t)array);
	check_ok(cuSurfObjectDestroy(surface));
	check_cu(cuSurfObjectDestroy(surface), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuSurfObjectGetResourceDesc(&resource, surface),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(surfaces_have_slices_layers_and_edges)
{
	uint32_t words[64] = {}, expected[64] = {};
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);
	const char *const kernels[2] = { "store_3d", "store_a2d" };
	CUsurfObject surface;
	CUarray array;

	for (int k = 0; k < 2; k++) {
		CUDA_MEMCPY3D copy = {
			.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = words,
			.dstPitch = 16,
			.dstHeight = 4,
			.WidthInBytes = 16,
			.Height = 4,
			.Depth = 4,
		};

		array = make_array(4, 4, 4, CU_AD_FORMAT_UNSIGNED_INT32, 1,
			CUDA_ARRAY3D_SURFACE_LDST | (k ? CUDA_ARRAY3D_LAYERED : 0));
		memset(expected, 0, sizeof(expected));
		fill_array(array, expected, 16, 4, 4);
		surface = make_surface(array);
		for (int i = 0; i < THREADS; i++) {
			int x = i % 4, y = i / 4 % 4, z = i / 16 * 3;

			in[i] = k ? (union four){ .s = { z, 4 * x, y, i + 1 } }
				  : (union four){ .s = { 4 * x, y, z, i + 1 } };
			expected[16 * z + 4 * y + x] = i + 1;
		}
		check_ok(run(&bench, kernels[k], surface, in, out));
		copy.srcArray = array;
		check_ok(cuMemcpy3D(&copy));
		check(!memcmp(words, expected, sizeof(words)));
	}
	array = make_array(
		4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
	for (int i = 0; i < 16; i++)
		words[i] = i + 100;
	fill_array(array, words, 16, 4, 1);
	surface = make_surface(array);
	for (int i = 0; i < THREADS; i++)
		in[i] = (union four){ .s = { 4 * (i - 8), i - 16, 7 } };
	check_ok(run(&bench, "load_2d_clamp", surface, in, out));
	for (int i = 0; i < THREADS; i++) {
		int x = addressed(i - 8, 4, CU_TR_ADDRESS_MODE_CLAMP);
		int y = addressed(i - 16, 4, CU_TR_ADDRESS_MODE_CLAMP);

		check_eq(out[i].u[0], 100 + 4 * y + x);
	}
	/* Nothing is inside on that diagonal. */
	check_ok(run(&bench, "store_2d_zero", surface, in, out));
	check_ok(run(&bench, "load_2d_zero", surface, in, out));
	for (int i = 0; i < THREADS; i++)
		check_eq(out[i].u[0] | out[i].u[1] | out[i].u[2] | out[i].u[3], 0);
	for (int i = 0; i < THREADS; i++)
		in[i] = (union four){ .s = { 0 } };
	check_ok(run(&bench, "load_1d_wide", surface, in, out));
	for (int i = 0; i < 4; i++)
		check_eq(out[31].u[i], 100 + i);
}

/* Each of these ends the context, so each is a test. */
static void check_faults(
	const char *kernel, unsigned long long object, bool is_surface, CUresult expected)
{
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texture_ptx);

	if (is_surface)
		object = make_surface(make_array(4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1,
			CUDA_ARRAY3D_SURFACE_LDST));
	in[7].s[0] = expected == CUDA_ERROR_MISALIGNED_ADDRESS ? 2 : 16;
	check_cu(run(&bench, kernel, object, in, out), expected);
}

TEST(a_number_that_is_no_texture_is_a_fault)
{
	check_faults("tex_2d", 0x1234567, false, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(the_largest_number_is_no_texture_either)
{
	check_faults("gather", UINT64_MAX, false, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_number_that_is_no_surface_is_a_fault)
{
	check_faults("store_2d", 0, false, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_store_outside_of_a_surface_is_a_fault)
{
	check_faults("store_2d", 0, true, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_load_outside_of_a_surface_is_a_fault)
{
	check_faults("load_2d", 0, true, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_surface_address_is_aligned)
{
	check_faults("store_2d", 0, true, CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST(objects_are_their_contexts_and_end_once)
{
	CUtexObject object, other, numbers[300];
	struct bench bench = bench_new(texture_ptx);
	CUDA_RESOURCE_DESC resource, got;
	CUDA_TEXTURE_DESC texture;
	CUcontext context;
	CUarray array;

	array = make_array(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	resource = over_array(array);
	object = make_texture(&resource, CU_TR_ADDRESS_MODE_WRAP,
		CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
	check_ok(cuTexObjectGetTextureDesc(&texture, object));
	check_eq(texture.addressMode[1], CU_TR_ADDRESS_MODE_WRAP);
	check_eq(texture.filterMode, CU_TR_FILTER_MODE_LINEAR);
	check(texture.borderColor[2] == 0.75f);
	check_ok(cuTexObjectGetResourceDesc(&got, object));
	check_eq((uintptr_t)got.res.array.hArray, (uintptr_t)array);
	for (int i = 0; i < 300; i++) {
		numbers[i] = make_texture(
			&resource, CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, 0);
		for (int j = 0; j < i; j++)
			check(numbers[i] != numbers[j]);
	}
	for (int i = 0; i < 300; i++)
		check_ok(cuTexObjectDestroy(numbers[i]));
	/* Of the device's own, not of a context that is not current. */
	check_ok(cuCtxCreate_v4(&context, NULL, 0, bench.fixture.device));
	check_cu(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxDestroy(context));
	check_ok(cuCtxSetCurrent(bench.fixture.context));
	check_ok(cuTexObjectDestroy(object));
	check_cu(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuTexObjectGetResourceDesc(&got, object), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuTexObjectDestroy(12345), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuSurfObjectDestroy(12345), CUDA_ERROR_INVALID_VALUE);
	/* 0 is what a program has that made none. */
	check_ok(cuTexObjectDestroy(0));
	check_ok(cuSurfObjectDestroy(0));
	/* The array must exist. */
	check_ok(cuArrayDestroy(array));
	check_cu(cuTexObjectCreate(&other, &resource, &texture, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	resource.resType = 17;
	check_cu(cuTexObjectCreate(&other, &resource, &texture, NULL),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_surface_needs_an_array_that_was_made_for_it)
{
	CUDA_RESOURCE_DESC resource;
	CUsurfObject surface;

	bench_new(texture_ptx);
	resource = over_array(make_array(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0));
	check_cu(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
	resource.resType = CU_RESOURCE_TYPE_LINEAR;
	check_cu(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
}

TEST(linear_textures_have_a_largest_width)
{
	CUdevice device = fixture_new().device;
	size_t width = 0;
	int attribute = 0;

	check_ok(cuDeviceGetAttribute(
		&attribute, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, device));
	check_ok(cuDeviceGetTexture1DLinearMaxWidth(
		&width, CU_AD_FORMAT_FLOAT, 4, device));
	check(width >= 1u << 27);
	check(attribute >= 1 << 27);
	check_cu(
		cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, device),
		CUDA_ERROR_INVALID_VALUE);
}
