/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: descriptions of textures and surfaces, right ones and all others
 */

#include "e2e.h"

static const char fetch_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry fetch(.param .u64 object, .param .f32 x, .param .f32 y, "
	".param .u64 out) {\n"
	".reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %d<2>;\n"
	"ld.param.u64 %d0, [object]; ld.param.u64 %d1, [out];\n"
	"ld.param.f32 %f0, [x]; ld.param.f32 %f1, [y];\n"
	"tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%f0, %f1}];\n"
	"st.global.v4.u32 [%d1], {%r0, %r1, %r2, %r3}; ret; }\n";

#define WIDTH 64u
#define HEIGHT 4u
#define PITCH 1024u /* room for 4 channels of 4 bytes */

struct bench {
	struct fixture fixture;
	CUfunction fetch;
	CUdeviceptr out;
	CUdeviceptr texels; /* HEIGHT rows of PITCH bytes, which count */
	CUarray array;
	CUarray cube;
	CUmipmappedArray mipmap;
};

static struct bench bench_new(void)
{
	static uint8_t bytes[HEIGHT * PITCH];
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { .Width = WIDTH,
		.Height = HEIGHT,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1 };
	struct bench bench = { .fixture = fixture_new() };
	CUmodule module;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	check_ok(cuModuleLoadData(&module, fetch_ptx));
	check_ok(cuModuleGetFunction(&bench.fetch, module, "fetch"));
	check_ok(cuMemAlloc(&bench.out, 16));
	check_ok(cuMemAlloc(&bench.texels, sizeof(bytes)));
	check_ok(cuMemcpyHtoD(bench.texels, bytes, sizeof(bytes)));
	check_ok(cuArray3DCreate(&bench.array, &descriptor));
	check_ok(cuMipmappedArrayCreate(&bench.mipmap, &descriptor, 2));
	descriptor = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = 8,
		.Height = 8,
		.Depth = 6,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_CUBEMAP };
	check_ok(cuArray3DCreate(&bench.cube, &descriptor));
	return bench;
}

static CUDA_RESOURCE_DESC pitched(const struct bench *bench, CUarray_format format)
{
	return (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_PITCH2D,
		.res.pitch2D = { bench->texels, format, 1, WIDTH, HEIGHT, PITCH } };
}

static CUresult fetch(
	struct bench *bench, CUtexObject object, float x, float y, unsigned int *valuep)
{
	void *parameters[] = { &object, &x, &y, &bench->out };
	CUresult r;

	check_ok(cuLaunchKernel(
		bench->fetch, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	r = cuCtxSynchronize();
	if (r == CUDA_SUCCESS)
		check_ok(cuMemcpyDtoH(valuep, bench->out, sizeof(*valuep)));
	return r;
}

/* Programs describe integers with a linear filter; the mean of integers is undefined, and
 * the nearest texel is what they get.
 */
TEST(integers_are_not_filtered_whatever_the_filter)
{
	static const CUarray_format formats[] = { CU_AD_FORMAT_UNSIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32 };
	const CUDA_TEXTURE_DESC texture = { .filterMode = CU_TR_FILTER_MODE_LINEAR,
		.addressMode = { CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
			CU_TR_ADDRESS_MODE_CLAMP },
		.flags = CU_TRSF_READ_AS_INTEGER };
	static const float xs[] = { 0.0f, 0.5f, 0.99f, 1.0f, 1.5f, 10.75f, 63.5f, 70.0f };
	struct bench bench = bench_new();

	for (unsigned int k = 0; k < 3; k++) {
		const CUDA_RESOURCE_DESC resource = pitched(&bench, formats[k]);
		CUtexObject object;

		check_ok(cuTexObjectCreate(&object, &resource, &texture, NULL));
		for (size_t i = 0; i < sizeof(xs) / sizeof(*xs); i++) {
			unsigned int at = xs[i] < WIDTH ? (unsigned int)xs[i] : WIDTH - 1;
			unsigned int size = 1u << k, expected = 0, got = ~0u;

			for (unsigned int byte = 0; byte < size; byte++)
				expected |= ((at * size + byte) & 255) << 8 * byte;
			check_ok(fetch(&bench, object, xs[i], 1.25f, &got));
			check_eq(got, expected);
		}
		check_ok(cuTexObjectDestroy(object));
	}
}

enum change {
	NOTHING,
	ADDRESS,
	FORMAT,
	CHANNELS,
	ROW,
	ROWS,
	STRIDE,
	RESOURCE_FLAGS,
	RESOURCE_TYPE,
	MODE,
	FILTER,
	LEVEL_FILTER,
	FLAGS,
	VIEW,
	ANISOTROPY,
};

static void change(const struct bench *bench, CUDA_RESOURCE_DESC *resource,
	CUDA_TEXTURE_DESC *texture, enum change what, unsigned long long value)
{
	unsigned int *u32 = NULL;

	switch (what) {
	case ADDRESS:
		resource->res.pitch2D.devPtr = value == 64 ? bench->texels + 64 : value;
		break;
	case ROW:
		resource->res.pitch2D.width = value;
		break;
	case ROWS:
		resource->res.pitch2D.height = value;
		break;
	case STRIDE:
		resource->res.pitch2D.pitchInBytes = value;
		break;
	case FORMAT:
		u32 = (unsigned int *)&resource->res.pitch2D.format;
		break;
	case CHANNELS:
		u32 = &resource->res.pitch2D.numChannels;
		break;
	case RESOURCE_FLAGS:
		u32 = &resource->flags;
		break;
	case RESOURCE_TYPE:
		u32 = (unsigned int *)&resource->resType;
		break;
	case MODE:
		u32 = (unsigned int *)&texture->addressMode[1];
		break;
	case FILTER:
		u32 = (unsigned int *)&texture->filterMode;
		break;
	case LEVEL_FILTER:
		u32 = (unsigned int *)&texture->mipmapFilterMode;
		break;
	case FLAGS:
		u32 = &texture->flags;
		break;
	case ANISOTROPY:
		u32 = &texture->maxAnisotropy;
		break;
	default:
		break;
	}
	if (u32)
		*u32 = (unsigned int)value;
}

/* Each is a right description of memory with rows, with one thing changed. */
TEST(one_wrong_field_is_answered_as_documented)
{
	static const struct {
		enum change change;
		unsigned long long value;
		CUresult expected;
	} cases[] = {
		{ NOTHING, 0, CUDA_SUCCESS },
		{ ADDRESS, 0, CUDA_ERROR_INVALID_VALUE },
		{ ADDRESS, 64, CUDA_ERROR_INVALID_VALUE },
		{ ADDRESS, UINT64_MAX, CUDA_ERROR_INVALID_VALUE },
		{ FORMAT, 0, CUDA_ERROR_INVALID_VALUE },
		{ FORMAT, 4, CUDA_ERROR_INVALID_VALUE },
		{ FORMAT, 0x7fffffff, CUDA_ERROR_INVALID_VALUE },
		{ FORMAT, UINT32_MAX, CUDA_ERROR_INVALID_VALUE },
		{ CHANNELS, 0, CUDA_ERROR_INVALID_VALUE },
		{ CHANNELS, 3, CUDA_ERROR_INVALID_VALUE },
		{ CHANNELS, UINT32_MAX, CUDA_ERROR_INVALID_VALUE },
		{ CHANNELS, 4, CUDA_SUCCESS },
		{ ROW, 0, CUDA_ERROR_INVALID_VALUE },
		{ ROW, UINT64_MAX, CUDA_ERROR_INVALID_VALUE },
		{ ROW, 1ull << 62, CUDA_ERROR_INVALID_VALUE },
		{ ROWS, 0, CUDA_ERROR_INVALID_VALUE },
		{ ROWS, 1u << 20, CUDA_ERROR_INVALID_VALUE },
		{ ROWS, UINT64_MAX, CUDA_ERROR_INVALID_VALUE },
		{ STRIDE, 0, CUDA_ERROR_INVALID_VALUE },
		{ STRIDE, WIDTH - 1, CUDA_ERROR_INVALID_VALUE },
		{ STRIDE, PITCH + 1, CUDA_ERROR_INVALID_VALUE },
		{ STRIDE, UINT64_MAX - 31, CUDA_ERROR_INVALID_VALUE },
		{ RESOURCE_FLAGS, 1, CUDA_ERROR_INVALID_VALUE },
		{ RESOURCE_TYPE, 4, CUDA_ERROR_INVALID_VALUE },
		{ RESOURCE_TYPE, UINT32_MAX, CUDA_ERROR_INVALID_VALUE },
		{ MODE, 4, CUDA_ERROR_INVALID_VALUE },
		{ MODE, UINT32_MAX, CUDA_ERROR_INVALID_VALUE },
		{ FILTER, 2, CUDA_ERROR_INVALID_VALUE },
		{ FILTER, UINT32_MAX, CUDA_ERROR_INVALID_VALUE },
		{ LEVEL_FILTER, 2, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, 4, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, 0x80000000u, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, CU_TRSF_SEAMLESS_CUBEMAP, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CUDA_SUCCESS },
		{ FLAGS, CU_TRSF_SRGB, CUDA_SUCCESS },
		{ VIEW, 0, CUDA_ERROR_INVALID_VALUE },
		{ ANISOTROPY, UINT32_MAX, CUDA_SUCCESS },
	};
	struct bench bench = bench_new();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CUDA_RESOURCE_DESC resource = pitched(&bench, CU_AD_FORMAT_UNSIGNED_INT8);
		const CUDA_RESOURCE_VIEW_DESC view = { .width = WIDTH, .height = HEIGHT };
		CUDA_TEXTURE_DESC texture = {};
		CUtexObject object = 0;
		CUresult r;

		change(&bench, &resource, &texture, cases[i].change, cases[i].value);
		r = cuTexObjectCreate(&object, &resource, &texture,
			cases[i].change == VIEW ? &view : NULL);
		if (r != cases[i].expected)
			test_fail(__FILE__, __LINE__, "case %zu is %d, not %d", i, r,
				cases[i].expected);
		if (r == CUDA_SUCCESS)
			check_ok(cuTexObjectDestroy(object));
	}
}

TEST(errors_that_depend_on_the_resource_are_as_documented)
{
	struct bench bench = bench_new();
	CUDA_RESOURCE_DESC cube = { .resType = CU_RESOURCE_TYPE_ARRAY,
		.res.array.hArray = bench.cube };
	CUDA_RESOURCE_DESC mipmap = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
		.res.mipmap.hMipmappedArray = bench.mipmap };
	CUDA_RESOURCE_DESC linear = { .resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear = { bench.texels, CU_AD_FORMAT_FLOAT, 1, 1024 } };
	CUDA_TEXTURE_DESC texture = {};
	CUtexObject object;
	CUsurfObject surface;

	/* Levels need coordinates that mean the same in each. */
	check_cu(cuTexObjectCreate(&object, &mipmap, &texture, NULL),
		CUDA_ERROR_INVALID_VALUE);
	texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
	check_ok(cuTexObjectCreate(&object, &mipmap, &texture, NULL));
	check_ok(cuTexObjectDestroy(object));
	/* Of linear memory no mode means anything. */
	texture = (CUDA_TEXTURE_DESC){ .filterMode = (CUfilter_mode)77,
		.addressMode = { (CUaddress_mode)9 } };
	check_ok(cuTexObjectCreate(&object, &linear, &texture, NULL));
	check_ok(cuTexObjectDestroy(object));
	linear.res.linear.sizeInBytes = 3;
	check_cu(cuTexObjectCreate(&object, &linear, &texture, NULL),
		CUDA_ERROR_INVALID_VALUE);
	linear.res.linear.sizeInBytes = UINT64_MAX;
	check_cu(cuTexObjectCreate(&object, &linear, &texture, NULL),
		CUDA_ERROR_INVALID_VALUE);
	/* Cubes alone have seams. */
	texture = (CUDA_TEXTURE_DESC){ .flags = CU_TRSF_SEAMLESS_CUBEMAP,
		.filterMode = CU_TR_FILTER_MODE_LINEAR };
	check_ok(cuTexObjectCreate(&object, &cube, &texture, NULL));
	check_ok(cuTexObjectDestroy(object));
	/* Handles of the wrong kind, and invalid ones. */
	texture = (CUDA_TEXTURE_DESC){};
	cube.res.array.hArray = NULL;
	check_cu(cuTexObjectCreate(&object, &cube, &texture, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	cube.res.array.hArray = (CUarray)bench.mipmap;
	check_cu(cuTexObjectCreate(&object, &cube, &texture, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	mipmap.res.mipmap.hMipmappedArray = (CUmipmappedArray)bench.array;
	check_cu(cuTexObjectCreate(&object, &mipmap, &texture, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	/* Surfaces are created over arrays with the surface flag only. */
	check_cu(cuSurfObjectCreate(&surface, &linear), CUDA_ERROR_INVALID_VALUE);
	cube.res.array.hArray = bench.cube;
	check_cu(cuSurfObjectCreate(&surface, &cube), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuTexObjectCreate(NULL, &cube, &texture, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuTexObjectCreate(&object, NULL, &texture, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuTexObjectCreate(&object, &cube, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

enum kind {
	ARRAY,
	LAYERED,
	VOLUME,
	CUBE,
	CUBES,
	MIPMAP,
	LINEAR,
	PITCHED,
	_KIND_N,
};

static CUDA_RESOURCE_DESC resource_of(const struct bench *bench, enum kind kind)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { .Width = 8,
		.Height = 8,
		.Depth = 3,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1 };
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };

	switch (kind) {
	case ARRAY:
		resource.res.array.hArray = bench->array;
		return resource;
	case CUBE:
		resource.res.array.hArray = bench->cube;
		return resource;
	case MIPMAP:
		return (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
			.res.mipmap.hMipmappedArray = bench->mipmap };
	case LINEAR:
		return (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_LINEAR,
			.res.linear = { bench->texels, CU_AD_FORMAT_FLOAT, 1, 1024 } };
	case PITCHED:
		return pitched(bench, CU_AD_FORMAT_UNSIGNED_INT8);
	case LAYERED:
		d.Flags = CUDA_ARRAY3D_LAYERED;
		break;
	case CUBES:
		d.Depth = 12;
		d.Flags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;
		break;
	default:
		break;
	}
	check_ok(cuArray3DCreate(&resource.res.array.hArray, &d));
	return resource;
}

/* Each kind of resource with a right description of the texture, one thing changed. */
TEST(one_wrong_field_of_the_texture_is_answered_for_each_resource)
{
	static const struct {
		enum change change;
		unsigned int value;
		CUresult expected;
		CUresult linear; /* where filter and modes have no meaning */
	} cases[] = {
		{ NOTHING, 0, CUDA_SUCCESS, CUDA_SUCCESS },
		{ MODE, 4, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS },
		{ MODE, UINT32_MAX, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS },
		{ FILTER, 2, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS },
		{ FILTER, UINT32_MAX, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS },
		{ LEVEL_FILTER, 2, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS },
		{ LEVEL_FILTER, UINT32_MAX, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS },
		{ FLAGS, 4, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, 8, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, 128, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE },
		{ FLAGS, UINT32_MAX, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE },
		{ ANISOTROPY, UINT32_MAX, CUDA_SUCCESS, CUDA_SUCCESS },
	};
	struct bench bench = bench_new();

	for (int kind = 0; kind < _KIND_N; kind++) {
		CUDA_RESOURCE_DESC resource = resource_of(&bench, kind);

		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			CUDA_TEXTURE_DESC texture = {
				.flags = CU_TRSF_NORMALIZED_COORDINATES
			};
			CUresult r, want = kind == LINEAR ? cases[i].linear
							  : cases[i].expected;
			CUtexObject object = 0;

			change(&bench, &resource, &texture, cases[i].change,
				cases[i].value);
			r = cuTexObjectCreate(&object, &resource, &texture, NULL);
			if (r != want)
				test_fail(__FILE__, __LINE__,
					"resource %d, case %zu is %d, not %d", kind, i, r,
					want);
			if (r == CUDA_SUCCESS)
				check_ok(cuTexObjectDestroy(object));
		}
		resource.flags = 1;
		check_cu(cuTexObjectCreate(&(CUtexObject){ 0 }, &resource,
				 &(CUDA_TEXTURE_DESC){}, NULL),
			CUDA_ERROR_INVALID_VALUE);
	}
}

/* Right views of resources, and each field of them wrong. */
TEST(one_wrong_field_of_a_view_is_answered_as_documented)
{
	static const CUDA_RESOURCE_VIEW_DESC right[_KIND_N] = {
		[ARRAY] = { .width = WIDTH, .height = HEIGHT },
		[LAYERED] = { .width = 8, .height = 8, .lastLayer = 2 },
		[VOLUME] = { .width = 8, .height = 8, .depth = 3 },
		[CUBE] = { .width = 8, .height = 8 },
		[CUBES] = { .width = 8, .height = 8, .lastLayer = 11 },
		[MIPMAP] = { .width = WIDTH, .height = HEIGHT, .lastMipmapLevel = 1 },
		[LINEAR] = { .width = 256 },
		[PITCHED] = { .width = WIDTH, .height = HEIGHT },
	};
	static const unsigned int numbers[] = { 0, 1, 2, 3, 5, 6, 8, 11, 12, 35, 64, 255,
		0x7fffffff, UINT32_MAX };
	struct bench bench = bench_new();
	unsigned int n_right = 0;

	for (int kind = 0; kind < _KIND_N; kind++) {
		const CUDA_RESOURCE_DESC resource = resource_of(&bench, kind);
		const bool is_memory = kind == LINEAR || kind == PITCHED;
		const CUDA_TEXTURE_DESC texture = {
			.flags = CU_TRSF_NORMALIZED_COORDINATES
		};
		const unsigned int size = kind == ARRAY || kind == MIPMAP ? 1 : 4;

		for (unsigned int k = 0; k < 8 * 14; k++) {
			CUDA_RESOURCE_VIEW_DESC view = right[kind];
			unsigned int value = numbers[k % 14], was = 0;
			bool is_right = true, is_format = false;
			CUtexObject object = 0;
			CUresult r;

			switch (k / 14) {
			case 0:
				is_format = true;
				view.format = (CUresourceViewFormat)value;
				/* 1 to 6 have 1, 2 and 4 bytes, twice; those of 4 bytes
				 * are the last ones. */
				is_right =
					!value || (size == 1 ? value == 1
							     : value == 3 || value == 6 ||
									  value == 8 ||
									  value == 11);
				break;
			case 1:
				was = (unsigned int)view.width;
				view.width = value;
				is_right = value == was;
				break;
			case 2:
				was = (unsigned int)view.height;
				view.height = value;
				is_right = value == was;
				break;
			case 3:
				was = (unsigned int)view.depth;
				view.depth = value;
				is_right = kind != VOLUME || value == was;
				break;
			case 4:
				view.firstMipmapLevel = value;
				is_right = value <= view.lastMipmapLevel;
				break;
			case 5:
				view.lastMipmapLevel = value;
				is_right = value <= right[kind].lastMipmapLevel;
				break;
			case 6:
				view.firstLayer = value;
				is_right = kind == CUBES ? value == 0 || value == 6
							 : value <= view.lastLayer;
				break;
			default:
				view.lastLayer = value;
				is_right = kind == CUBES ? value == 5 || value == 11
							 : value <= right[kind].lastLayer;
				break;
			}
			is_right &= !is_memory;
			r = cuTexObjectCreate(&object, &resource, &texture, &view);
			/* Compressed blocks are not there. */
			if (is_format && value == 35 && !is_memory && r) {
				check(r == CUDA_ERROR_NOT_SUPPORTED ||
					r == CUDA_ERROR_INVALID_VALUE);
				continue;
			}
			if (r != (is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE))
				test_fail(__FILE__, __LINE__,
					"resource %d, field %u of a view = %u is %d",
					kind, k / 14, value, r);
			if (r == CUDA_SUCCESS) {
				n_right++;
				check_ok(cuTexObjectDestroy(object));
			}
		}
	}
	check(n_right > 50);
}

static uint64_t seed = 1;

/* One of these, or now and then any number. */
static unsigned int pick(const unsigned int *values, unsigned int n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 60 ? values[(seed >> 33) % n] : (unsigned int)(seed >> 28);
}

#define PICK(...)                                                                        \
	pick((const unsigned int[]){ __VA_ARGS__ },                                      \
		sizeof((const unsigned int[]){ __VA_ARGS__ }) / sizeof(unsigned int))

static CUDA_RESOURCE_DESC any_resource(const struct bench *bench)
{
	CUDA_RESOURCE_DESC resource = { .resType = (CUresourcetype)PICK(0, 1, 2, 3),
		.flags = PICK(0, 0, 0, 0, 0, 1) };
	unsigned int format = PICK(1, 2, 3, 8, 9, 10, 16, 32, 0, 4, 145, 176, 192);
	unsigned int channels = PICK(1, 2, 4, 0, 3);

	switch (resource.resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		resource.res.array.hArray = PICK(0, 1) ? bench->array : bench->cube;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		resource.res.mipmap.hMipmappedArray = bench->mipmap;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		resource.res.linear.devPtr = bench->texels + PICK(0, 0, 512, 1, 4096);
		resource.res.linear.format = (CUarray_format)format;
		resource.res.linear.numChannels = channels;
		resource.res.linear.sizeInBytes = PICK(1024, 2048, 0, 1, 1u << 31);
		break;
	default:
		resource.res.pitch2D.devPtr = bench->texels + PICK(0, 0, 512, 1, 4096);
		resource.res.pitch2D.format = (CUarray_format)format;
		resource.res.pitch2D.numChannels = channels;
		resource.res.pitch2D.width = PICK(WIDTH, 1, 0, 1u << 17);
		resource.res.pitch2D.height = PICK(HEIGHT, 1, 0, 65000);
		resource.res.pitch2D.pitchInBytes = PICK(PITCH, 256, 0, 31, 2097120);
		break;
	}
	return resource;
}

static float any_float(void)
{
	unsigned int bits = PICK(0, 0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static CUDA_TEXTURE_DESC any_texture(void)
{
	return (CUDA_TEXTURE_DESC){
		.addressMode = { (CUaddress_mode)PICK(0, 1, 2, 3),
			(CUaddress_mode)PICK(0, 1, 2, 3, 4),
			(CUaddress_mode)PICK(0, 1, 2, 3) },
		.filterMode = (CUfilter_mode)PICK(0, 1),
		.flags = PICK(0, 1, 2, 3, 16, 18, 32, 64, 4),
		.maxAnisotropy = PICK(0, 16),
		.mipmapFilterMode = (CUfilter_mode)PICK(0, 1),
		.mipmapLevelBias = any_float(),
		.minMipmapLevelClamp = any_float(),
		.maxMipmapLevelClamp = any_float(),
		.borderColor = { any_float(), any_float(), any_float(), any_float() },
	};
}

static CUDA_RESOURCE_VIEW_DESC any_view(void)
{
	return (CUDA_RESOURCE_VIEW_DESC){
		.format = (CUresourceViewFormat)PICK(0, 1, 4, 13, 22, 25, 34, 35),
		.width = PICK(WIDTH, 8, 256),
		.height = PICK(HEIGHT, 8, 16),
		.depth = PICK(0, 6),
		.firstMipmapLevel = PICK(0, 1),
		.lastMipmapLevel = PICK(0, 1),
		.firstLayer = PICK(0, 1),
		.lastLayer = PICK(0, 5),
	};
}

TEST(any_description_is_refused_or_samples)
{
	struct bench bench = bench_new();
	unsigned int n_made = 0, n_refused = 0, value;

	for (int i = 0; i < 4000; i++) {
		CUDA_RESOURCE_DESC resource = any_resource(&bench);
		CUDA_TEXTURE_DESC texture = any_texture();
		CUDA_RESOURCE_VIEW_DESC view = any_view();
		CUtexObject object = 0;
		CUresult r;

		r = cuTexObjectCreate(&object, &resource, &texture, i % 3 ? NULL : &view);
		if (r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_NOT_SUPPORTED ||
			r == CUDA_ERROR_INVALID_HANDLE) {
			n_refused++;
			continue;
		}
		check_ok(r);
		if (n_made++ % 8 == 0)
			check_ok(fetch(&bench, object, any_float(), any_float(), &value));
		check_ok(cuTexObjectDestroy(object));
	}
	check(n_made > 100 && n_refused > 1000);
}
