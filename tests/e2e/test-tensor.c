/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: tensor maps
 *
 * A map is opaque, so the tests compare maps: equal arguments make equal maps, and each
 * argument that changes makes another one. The errors are rows of tests/errors.
 */

#include "e2e.h"

struct tensor {
	cuuint64_t sizes[5];
	cuuint64_t strides[4];
	cuuint32_t box[5];
	cuuint32_t steps[5];
	int lower[3];
	int upper[3];
};

static const struct tensor plain = {
	.sizes = { 64, 32, 16, 8, 4 },
	.strides = { 256, 8192, 131072, 1048576 },
	.box = { 16, 8, 4, 2, 1 },
	.steps = { 1, 1, 1, 1, 1 },
	.lower = { -1, -1, -1 },
	.upper = { 1, 1, 1 },
};

static CUtensorMap map_of(const struct tensor *tensor, cuuint32_t rank,
	CUdeviceptr memory, CUtensorMapDataType type, CUtensorMapSwizzle swizzle)
{
	CUtensorMap map;

	memset(&map, 0xff, sizeof(map));
	check_ok(cuTensorMapEncodeTiled(&map, type, rank, (void *)(uintptr_t)memory,
		tensor->sizes, tensor->strides, tensor->box, tensor->steps,
		CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

static CUtensorMap plain_map(const struct tensor *tensor, CUdeviceptr memory)
{
	return map_of(tensor, 5, memory, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
		CU_TENSOR_MAP_SWIZZLE_64B);
}

static bool are_equal(const CUtensorMap *a, const CUtensorMap *b)
{
	return !memcmp(a, b, sizeof(*a));
}

TEST(a_map_says_all_that_is_known_of_a_tensor)
{
	CUtensorMap map, other;
	struct tensor tensor;
	CUdeviceptr memory;

	fixture_new();
	check_ok(cuMemAlloc(&memory, 4 << 20));
	map = plain_map(&plain, memory);
	other = plain_map(&plain, memory);
	check(are_equal(&map, &other));
	for (int i = 0; i < 5; i++) {
		tensor = plain;
		tensor.sizes[i]++;
		other = plain_map(&tensor, memory);
		check(!are_equal(&map, &other));
		tensor = plain;
		tensor.box[i] = i ? tensor.box[i] + 1 : 8;
		other = plain_map(&tensor, memory);
		check(!are_equal(&map, &other));
		tensor = plain;
		tensor.steps[i]++;
		other = plain_map(&tensor, memory);
		/* The first one is ignored. */
		check(are_equal(&map, &other) == !i);
	}
	for (int i = 0; i < 4; i++) {
		tensor = plain;
		tensor.strides[i] += 16;
		other = plain_map(&tensor, memory);
		check(!are_equal(&map, &other));
	}
	other = plain_map(&plain, memory + 16);
	check(!are_equal(&map, &other));
	other = map_of(&plain, 4, memory, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
		CU_TENSOR_MAP_SWIZZLE_64B);
	check(!are_equal(&map, &other));
	other = map_of(&plain, 5, memory, CU_TENSOR_MAP_DATA_TYPE_INT32,
		CU_TENSOR_MAP_SWIZZLE_64B);
	check(!are_equal(&map, &other));
	other = map_of(&plain, 5, memory, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
		CU_TENSOR_MAP_SWIZZLE_128B);
	check(!are_equal(&map, &other));
}

TEST(the_address_in_a_map_is_replaced)
{
	CUtensorMap map;
	CUtensorMap there;
	CUdeviceptr memory;

	fixture_new();
	check_ok(cuMemAlloc(&memory, 4 << 20));
	map = plain_map(&plain, memory);
	there = plain_map(&plain, memory + 4096);
	check(!are_equal(&map, &there));
	check_ok(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(memory + 4096)));
	check(are_equal(&map, &there));
	check_cu(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(memory + 8)),
		CUDA_ERROR_INVALID_VALUE);
	check(are_equal(&map, &there));
}

static CUtensorMap im2col_map(const struct tensor *tensor, CUdeviceptr memory,
	cuuint32_t channels, cuuint32_t pixels)
{
	CUtensorMap map;

	memset(&map, 0xff, sizeof(map));
	check_ok(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 5,
		(void *)(uintptr_t)memory, tensor->sizes, tensor->strides, tensor->lower,
		tensor->upper, channels, pixels, tensor->steps,
		CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA));
	return map;
}

TEST(columns_of_images_are_described)
{
	CUtensorMap map, other;
	struct tensor tensor;
	CUdeviceptr memory;

	fixture_new();
	check_ok(cuMemAlloc(&memory, 4 << 20));
	map = im2col_map(&plain, memory, 32, 256);
	other = im2col_map(&plain, memory, 32, 256);
	check(are_equal(&map, &other));
	for (int i = 0; i < 3; i++) {
		tensor = plain;
		tensor.lower[i]--;
		other = im2col_map(&tensor, memory, 32, 256);
		check(!are_equal(&map, &other));
		tensor = plain;
		tensor.upper[i]++;
		other = im2col_map(&tensor, memory, 32, 256);
		check(!are_equal(&map, &other));
	}
	other = im2col_map(&plain, memory, 16, 256);
	check(!are_equal(&map, &other));
	other = im2col_map(&plain, memory, 32, 1024);
	check(!are_equal(&map, &other));
}

static CUtensorMap wide_map(CUdeviceptr memory, int lower, int upper, cuuint32_t pixels,
	CUtensorMapIm2ColWideMode mode)
{
	CUtensorMap map;

	memset(&map, 0xff, sizeof(map));
	check_ok(cuTensorMapEncodeIm2colWide(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
		(void *)(uintptr_t)memory, plain.sizes, plain.strides, lower, upper, 64,
		pixels, plain.steps, CU_TENSOR_MAP_INTERLEAVE_NONE, mode,
		CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

TEST(wide_columns_are_described)
{
	CUtensorMap map, other;
	CUdeviceptr memory;

	fixture_new();
	check_ok(cuMemAlloc(&memory, 4 << 20));
	map = wide_map(memory, -1, 1, 64, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W);
	other = wide_map(memory, -1, 1, 64, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W);
	check(are_equal(&map, &other));
	other = wide_map(memory, -2, 1, 64, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W);
	check(!are_equal(&map, &other));
	other = wide_map(memory, -1, 2, 64, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W);
	check(!are_equal(&map, &other));
	other = wide_map(memory, -1, 1, 32, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W);
	check(!are_equal(&map, &other));
	/* Where the number of pixels is ignored. */
	map = wide_map(memory, -1, 1, 64, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
	check(!are_equal(&map, &other));
	other = wide_map(memory, -1, 1, 5000, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
	check(are_equal(&map, &other));
}

/* Which copies the parameter, as cp.async.bulk.tensor reads it. */
static const char copy_ptx[] = ".version 7.0\n"
			       ".target sm_52\n"
			       ".address_size 64\n"
			       ".visible .entry reads(.param .align 64 .b8 map[128],\n"
			       "	.param .u64 out)\n"
			       "{\n"
			       "	.reg .b64 %rd<5>;\n"
			       "	.reg .b32 %r<2>;\n"
			       "	ld.param.u64 %rd1, [out];\n"
			       "	mov.u32 %r1, %tid.x;\n"
			       "	mul.wide.u32 %rd2, %r1, 8;\n"
			       "	mov.u64 %rd3, map;\n"
			       "	add.s64 %rd3, %rd3, %rd2;\n"
			       "	ld.param.u64 %rd4, [%rd3];\n"
			       "	add.s64 %rd1, %rd1, %rd2;\n"
			       "	st.global.u64 [%rd1], %rd4;\n"
			       "	ret;\n"
			       "}\n";

TEST(a_kernel_gets_a_map_as_it_is)
{
	CUtensorMap map;
	CUtensorMap copy;
	CUdeviceptr memory, out;
	CUfunction reads;
	CUmodule module;
	void *parameters[] = { &map, &out };

	fixture_new();
	check_ok(cuMemAlloc(&memory, 4 << 20));
	check_ok(cuMemAlloc(&out, sizeof(copy)));
	map = plain_map(&plain, memory);
	check_ok(cuModuleLoadData(&module, copy_ptx));
	check_ok(cuModuleGetFunction(&reads, module, "reads"));
	check_ok(cuMemsetD8(out, 0xff, sizeof(copy)));
	check_ok(cuLaunchKernel(reads, 1, 1, 1, 16, 1, 1, 0, NULL, parameters, NULL));
	check_ok(cuMemcpyDtoH(&copy, out, sizeof(copy)));
	check(are_equal(&map, &copy));
}

TEST(a_map_is_encoded_in_a_context)
{
	CUtensorMap map;
	CUdeviceptr memory;

	fixture_new();
	check_ok(cuMemAlloc(&memory, 4 << 20));
	map = plain_map(&plain, memory);
	check_ok(cuCtxSetCurrent(NULL));
	check_cu(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)memory),
		CUDA_ERROR_INVALID_CONTEXT);
}
