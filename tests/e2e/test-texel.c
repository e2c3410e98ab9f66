/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: formats of texels that are converted when they are stored or read
 */

#include <math.h>
#include <stdio.h>

#include "texture.h"

/* clang-format off */
static const char texel_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	KERNEL("tex_2d", "tex.2d.v4.f32.f32 " RESULT ", [%d0, {%r8, %r9}];\n")
	KERNEL("sizes",
		"txq.width.b32 %r4, [%d0]; txq.height.b32 %r5, [%d0];\n"
		"txq.depth.b32 %r6, [%d0]; txq.num_mipmap_levels.b32 %r7, [%d0];\n")
	KERNEL("store_texels",
		"sust.p.2d.v4.b32.zero [%d0, {%r8, %r9}], {%r10, %r11, %r11, %r10};\n");
/* clang-format on */

/* The bits of a channel of a surface in a word of 32 bits. */
static uint32_t channel_of(CUarray_format format, uint32_t word)
{
	int32_t s = (int32_t)word;
	_Float16 half;
	uint16_t bits;
	float f;

	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
		return word > 255 ? 255 : word;
	case CU_AD_FORMAT_SIGNED_INT8:
		return (uint8_t)(s < -128 ? -128 : s > 127 ? 127 : s);
	case CU_AD_FORMAT_UNSIGNED_INT16:
		return word > 65535 ? 65535 : word;
	case CU_AD_FORMAT_SIGNED_INT16:
		return (uint16_t)(s < -32768 ? -32768 : s > 32767 ? 32767 : s);
	case CU_AD_FORMAT_HALF:
		memcpy(&f, &word, 4);
		half = (_Float16)f;
		memcpy(&bits, &half, 2);
		return bits;
	default:
		return word;
	}
}

/* Coordinates count texels there, and the surface defines the channels. */
TEST(formatted_stores_convert_to_the_format_of_the_surface)
{
	enum { WIDTH = 8, HEIGHT = 4 };
	static const struct {
		CUarray_format format;
		unsigned int n, size;
	} forms[] = { { CU_AD_FORMAT_UNSIGNED_INT8, 4, 1 },
		{ CU_AD_FORMAT_SIGNED_INT8, 2, 1 }, { CU_AD_FORMAT_UNSIGNED_INT16, 1, 2 },
		{ CU_AD_FORMAT_SIGNED_INT16, 4, 2 },
		{ CU_AD_FORMAT_UNSIGNED_INT32, 2, 4 },
		{ CU_AD_FORMAT_SIGNED_INT32, 1, 4 }, { CU_AD_FORMAT_HALF, 4, 2 },
		{ CU_AD_FORMAT_FLOAT, 4, 4 } };
	static const uint32_t words[] = { 0, 1, 127, 128, 255, 256, 32767, 32768, 65535,
		65536, 0xffffffff, 0xffffff80, 0xffffff7f, 0xffff8000, 0x80000000,
		0x7fffffff, 0x3f800000, 0xc2f00000, 0x477fe000, 0x33800000 };
	struct bench bench = bench_new(texel_ptx);

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		bool is_real = forms[f].format == CU_AD_FORMAT_HALF ||
			       forms[f].format == CU_AD_FORMAT_FLOAT;
		uint8_t got[WIDTH * HEIGHT * 16] = {};
		union four in[THREADS] = {}, out[THREADS];
		size_t texel = forms[f].n * forms[f].size;
		CUarray array = make_array(WIDTH, HEIGHT, 0, forms[f].format, forms[f].n,
			CUDA_ARRAY3D_SURFACE_LDST);
		CUsurfObject surface = make_surface(array);
		CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			.srcArray = array,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = got,
			.WidthInBytes = WIDTH * texel,
			.Height = HEIGHT };

		for (int i = 0; i < THREADS; i++) {
			/* The last ones are outside: no texel is written. */
			in[i].s[0] = i < 30 ? i % WIDTH : i == 30 ? -1 : WIDTH;
			in[i].s[1] = i / WIDTH;
			in[i].u[2] = words[is_real ? 16 + i % 4 : (i + (int)f) % 16];
			in[i].u[3] = words[is_real ? 16 + i % 3 : (2 * i + 5) % 16];
		}
		check_ok(run(&bench, "store_texels", surface, in, out));
		check_ok(cuMemcpy2D(&copy));
		for (int i = 0; i < 30; i++) {
			for (unsigned int k = 0; k < forms[f].n; k++) {
				uint32_t x = 0,
					 want = channel_of(forms[f].format,
						 in[i].u[k == 1 || k == 2 ? 3 : 2]);

				memcpy(&x, got + i * texel + k * forms[f].size,
					forms[f].size);
				if (x != want)
					test_fail(__FILE__, __LINE__,
						"form %zu, texel %d, channel %u: %x, not "
						"%x",
						f, i, k, x, want);
			}
		}
		check_ok(cuSurfObjectDestroy(surface));
		check_ok(cuArrayDestroy(array));
	}
}

struct fraction {
	CUarray_format format;
	unsigned int n;
	double least, most;
};

/* Stores a fraction by a surface in each texel, and fetches it by a texture. */
static void check_fractions(struct bench *bench, const struct fraction *fraction)
{
	static const float given[] = { 0, 1, -1, 0.5f, -0.5f, 0.251f, 3, -7, 1e-4f, NAN };
	union four in[THREADS] = {}, out[THREADS];
	CUarray array = make_array(
		8, 4, 0, fraction->format, fraction->n, CUDA_ARRAY3D_SURFACE_LDST);
	CUsurfObject surface = make_surface(array);
	CUDA_RESOURCE_DESC resource = over_array(array);
	/* That integers are wanted has no effect. */
	CUtexObject object = make_texture(&resource, CU_TR_ADDRESS_MODE_CLAMP,
		CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);

	for (int i = 0; i < THREADS; i++) {
		in[i].s[0] = i % 8;
		in[i].s[1] = i / 8;
		in[i].f[2] = given[i % 10];
		in[i].f[3] = given[(i + 3) % 10];
	}
	check_ok(run(bench, "store_texels", surface, in, out));
	for (int i = 0; i < THREADS; i++) {
		in[i].f[0] = (float)(i % 8);
		in[i].f[1] = (float)(i / 8);
	}
	check_ok(run(bench, "tex_2d", object, in, out));
	for (int i = 0; i < THREADS; i++)
		for (unsigned int k = 0; k < 4; k++) {
			double x = (double)in[i].f[k == 0 || k == 3 ? 2 : 3];
			double want = k == 3;

			/* What is no number is the least. */
			x = x > fraction->least ? x : fraction->least;
			x = x < 1 ? x : 1;
			if (k < fraction->n)
				want = round(x * fraction->most) / fraction->most;
			if (fabs((double)out[i].f[k] - want) > 1e-6)
				test_fail(__FILE__, __LINE__,
					"format %d texel %d channel %u: %g, not %g",
					fraction->format, i, k, (double)out[i].f[k],
					want);
		}
	check_ok(cuTexObjectDestroy(object));
	check_ok(cuSurfObjectDestroy(surface));
	check_ok(cuArrayDestroy(array));
}

TEST(formats_of_fractions_are_stored_rounded_and_read_as_floats)
{
	static const struct fraction fractions[] = {
		{ CU_AD_FORMAT_UNORM_INT8X1, 1, 0, 255 },
		{ CU_AD_FORMAT_UNORM_INT8X2, 2, 0, 255 },
		{ CU_AD_FORMAT_UNORM_INT8X4, 4, 0, 255 },
		{ CU_AD_FORMAT_UNORM_INT16X1, 1, 0, 65535 },
		{ CU_AD_FORMAT_UNORM_INT16X2, 2, 0, 65535 },
		{ CU_AD_FORMAT_UNORM_INT16X4, 4, 0, 65535 },
		{ CU_AD_FORMAT_SNORM_INT8X1, 1, -1, 127 },
		{ CU_AD_FORMAT_SNORM_INT8X2, 2, -1, 127 },
		{ CU_AD_FORMAT_SNORM_INT8X4, 4, -1, 127 },
		{ CU_AD_FORMAT_SNORM_INT16X1, 1, -1, 32767 },
		{ CU_AD_FORMAT_SNORM_INT16X2, 2, -1, 32767 },
		{ CU_AD_FORMAT_SNORM_INT16X4, 4, -1, 32767 },
	};
	struct bench bench = bench_new(texel_ptx);
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { 8, 4, 0, CU_AD_FORMAT_UNORM_INT8X2, 4, 0 };
	CUarray array;

	for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++)
		check_fractions(&bench, &fractions[i]);
	/* The format has a number of channels. */
	check_cu(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
}

/* 4 x 4 texels of one colour each, in an array of 2 x 2 pairs of integers. */
TEST(blocks_are_viewed_in_arrays_of_integers)
{
	static const uint32_t colours[4] = { 0xf800, 0x07e0, 0x001f, 0xffff };
	static const float channels[4][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 },
		{ 1, 1, 1 } };
	uint32_t blocks[4][2];
	CUDA_RESOURCE_VIEW_DESC view = {
		.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1, .width = 8, .height = 8
	};
	const CUDA_TEXTURE_DESC texture = {
		.addressMode = { CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP },
		.filterMode = CU_TR_FILTER_MODE_LINEAR,
	};
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new(texel_ptx);
	CUDA_RESOURCE_DESC resource =
		over_array(make_array(2, 2, 0, CU_AD_FORMAT_UNSIGNED_INT32, 2, 0));
	CUtexObject object;

	for (int i = 0; i < 4; i++) {
		blocks[i][0] = colours[i] << 16 | colours[i];
		blocks[i][1] = 0;
	}
	fill_array(resource.res.array.hArray, blocks, sizeof(blocks[0]) * 2, 2, 1);
	check_ok(cuTexObjectCreate(&object, &resource, &texture, &view));
	for (int i = 0; i < THREADS; i++) {
		in[i].f[0] = (float)(i % 8) + 0.5f;
		in[i].f[1] = (float)(i / 8 * 2) + 0.5f;
	}
	/* Between the blocks of a row, as between any two texels. */
	in[31].f[0] = 4.0f;
	check_ok(run(&bench, "tex_2d", object, in, out));
	for (int i = 0; i < THREADS - 1; i++)
		for (int k = 0; k < 3; k++)
			check_near(out[i].f[k], channels[i % 8 / 4 + i / 16 * 2][k]);
	for (int k = 0; k < 3; k++)
		check_near(out[31].f[k], 0.5f * (channels[2][k] + channels[3][k]));
	check_ok(run(&bench, "sizes", object, in, out));
	check_eq(out[0].u[0], 8);
	check_eq(out[0].u[1], 8);
	check_ok(cuTexObjectDestroy(object));
	/* The sizes are those in texels, and a block of BC2 has 16 bytes. */
	view.width = 2;
	check_cu(cuTexObjectCreate(&object, &resource, &texture, &view),
		CUDA_ERROR_INVALID_VALUE);
	view.width = 8;
	view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC2;
	check_cu(cuTexObjectCreate(&object, &resource, &texture, &view),
		CUDA_ERROR_INVALID_VALUE);
	resource = over_array(make_array(2, 2, 0, CU_AD_FORMAT_FLOAT, 2, 0));
	view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
	check_cu(cuTexObjectCreate(&object, &resource, &texture, &view),
		CUDA_ERROR_INVALID_VALUE);
	/* An array of blocks itself. */
	check_cu(cuArray3DCreate(&resource.res.array.hArray,
			 &(CUDA_ARRAY3D_DESCRIPTOR){
				 8, 8, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0 }),
		CUDA_ERROR_NOT_SUPPORTED);
}
