/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: arrays, and copies from and to them
 *
 * The contents of an array are only known by copying them out again, for which each test
 * uses another path than for the copy in.
 */

#include "e2e.h"

static void pattern(uint8_t *bytes, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((i + seed) * 2654435761u >> 24);
}

static CUarray array_2d(size_t width, size_t height, CUarray_format format, int channels)
{
	CUDA_ARRAY_DESCRIPTOR descriptor = {
		.Width = width,
		.Height = height,
		.Format = format,
		.NumChannels = channels,
	};
	CUarray array = NULL;

	check_ok(cuArrayCreate(&array, &descriptor));
	check(array);
	return array;
}

static CUDA_ARRAY3D_DESCRIPTOR described(
	size_t width, size_t height, size_t depth, unsigned int flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = width,
		.Height = height,
		.Depth = depth,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
		.Flags = flags,
	};
}

TEST(descriptors_are_those_that_arrays_were_made_of)
{
	const CUDA_ARRAY3D_DESCRIPTOR wanted = described(20, 30, 5, CUDA_ARRAY3D_LAYERED);
	CUDA_ARRAY3D_DESCRIPTOR got = {};
	CUDA_ARRAY_DESCRIPTOR flat = {};
	CUarray array, other;

	fixture_new();
	check_ok(cuArray3DCreate(&array, &wanted));
	check_ok(cuArray3DGetDescriptor(&got, array));
	check_eq(got.Width, 20);
	check_eq(got.Height, 30);
	check_eq(got.Depth, 5);
	check_eq(got.Format, CU_AD_FORMAT_UNSIGNED_INT8);
	check_eq(got.NumChannels, 4);
	check_eq(got.Flags, CUDA_ARRAY3D_LAYERED);
	other = array_2d(7, 0, CU_AD_FORMAT_HALF, 2);
	check_ok(cuArrayGetDescriptor(&flat, other));
	check_eq(flat.Width, 7);
	check_eq(flat.Height, 0);
	check_eq(flat.Format, CU_AD_FORMAT_HALF);
	check_eq(flat.NumChannels, 2);
	check_ok(cuArrayDestroy(array));
	check_cu(cuArrayGetDescriptor(&flat, array), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuArrayDestroy(other));
}

TEST(impossible_arrays_are_refused)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = described(1u << 21, 16, 0, 0);
	struct fixture fixture = fixture_new();
	CUarray array;
	int width = 0;

	check_cu(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
	descriptor = described(0, 0, 0, 0);
	check_cu(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
	descriptor = described(16, 16, 0, 0);
	descriptor.NumChannels = 3;
	check_cu(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
	/* A cube has six faces, which are square. */
	descriptor = described(16, 16, 5, CUDA_ARRAY3D_CUBEMAP);
	check_cu(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuArray3DCreate(NULL, &descriptor), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuArray3DCreate(&array, NULL), CUDA_ERROR_INVALID_VALUE);
	/* The largest that the device names is the largest. */
	check_ok(cuDeviceGetAttribute(
		&width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, fixture.device));
	check(width >= 1024);
	descriptor = described(width, 0, 0, 0);
	check_ok(cuArray3DCreate(&array, &descriptor));
	check_ok(cuArrayDestroy(array));
	descriptor.Width++;
	check_cu(cuArray3DCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
}

TEST(arrays_count_as_device_memory_until_they_go)
{
	const CUDA_ARRAY3D_DESCRIPTOR wanted = described(1024, 1024, 4, 0);
	const CUDA_ARRAY3D_DESCRIPTOR huge = described(16384, 16384, 16384, 0);
	size_t before = 0, during = 0, after = 0, total;
	CUmipmappedArray mipmap;
	CUcontext context;
	CUarray array;

	fixture_new();
	check_ok(cuMemGetInfo(&before, &total));
	check_ok(cuArray3DCreate(&array, &wanted));
	check_ok(cuMemGetInfo(&during, &total));
	check(during + (16u << 20) <= before);
	check_ok(cuArrayDestroy(array));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(after, before);
	check_cu(cuArray3DCreate(&array, &huge), CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(after, before);
	/* A context that is destroyed destroys its objects. */
	check_ok(cuCtxCreate_v4(&context, NULL, 0, 0));
	check_ok(cuArray3DCreate(&array, &wanted));
	check_ok(cuMipmappedArrayCreate(&mipmap, &wanted, 3));
	check_ok(cuMemGetInfo(&during, &total));
	check(during + (32u << 20) <= before);
	check_ok(cuCtxDestroy(context));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(after, before);
}

TEST(linear_copies_meet_in_an_array)
{
	uint8_t in[4000], out[4000] = {}, *pinned;
	CUarray array, other;
	CUdeviceptr device;
	CUstream stream;

	fixture_new();
	pattern(in, sizeof(in), 1);
	array = array_2d(4000, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
	other = array_2d(1000, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1);
	check_ok(cuMemAlloc(&device, sizeof(in)));
	check_ok(cuMemAllocHost((void **)&pinned, sizeof(in)));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* Host to array to array to device to host. */
	check_ok(cuMemcpyHtoA(array, 0, in, sizeof(in)));
	check_ok(cuMemcpyAtoA(other, 400, array, 100, 2000));
	check_ok(cuMemcpyAtoD(device, other, 400, 2000));
	check_ok(cuMemcpyDtoH(out, device, 2000));
	check(!memcmp(out, in + 100, 2000));
	/* Device to array, and back to the host. */
	check_ok(cuMemcpyHtoD(device, in, sizeof(in)));
	check_ok(cuMemcpyDtoA(array, 8, device + 1000, 3000));
	check_ok(cuMemcpyAtoH(out, array, 8, 3000));
	check(!memcmp(out, in + 1000, 3000));
	/* The same in a stream, by pinned memory and by ordinary memory. */
	pattern(pinned, sizeof(in), 7);
	check_ok(cuMemcpyHtoAAsync(array, 0, pinned, 4000, stream));
	check_ok(cuMemcpyAtoHAsync(out, array, 0, 4000, stream));
	check_ok(cuStreamSynchronize(stream));
	check(!memcmp(out, pinned, 4000));
	check_ok(cuMemcpyHtoAAsync(array, 0, in, 4000, stream));
	check_ok(cuMemcpyAtoHAsync(pinned, array, 0, 4000, stream));
	check_ok(cuStreamSynchronize(stream));
	check(!memcmp(pinned, in, 4000));
	/* Boxes outside of an array are refused, on either side. */
	check_cu(cuMemcpyHtoA(array, 1, in, 4000), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyAtoH(out, array, 4000, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoA(array, SIZE_MAX, device, 2), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyAtoD(device + 3999, array, 0, 2), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyHtoA(NULL, 0, in, 4), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuArrayDestroy(array));
	check_cu(cuMemcpyHtoA(array, 0, in, 4), CUDA_ERROR_INVALID_HANDLE);
}

TEST(rectangles_go_through_an_array)
{
	enum { PITCH = 100, WIDTH = 40, HEIGHT = 20 };
	uint8_t in[PITCH * HEIGHT], out[PITCH * HEIGHT] = {};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = PITCH,
		.srcXInBytes = 10,
		.srcY = 2,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstXInBytes = 4,
		.dstY = 1,
		.WidthInBytes = WIDTH,
		.Height = 12,
	};
	CUdeviceptr device;
	CUarray array;

	fixture_new();
	pattern(in, sizeof(in), 3);
	array = array_2d(16, HEIGHT, CU_AD_FORMAT_UNSIGNED_INT8, 4);
	check_ok(cuMemAlloc(&device, sizeof(in)));
	copy.dstArray = array;
	check_ok(cuMemcpy2D(&copy));
	/* From the array to the device by another shape, and home. */
	copy = (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcXInBytes = 8,
		.srcY = 3,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = device,
		.dstPitch = 64,
		.WidthInBytes = 32,
		.Height = 9,
	};
	check_ok(cuMemcpy2DUnaligned(&copy));
	check_ok(cuMemcpyDtoH(out, device, 64 * 9));
	for (int y = 0; y < 9; y++)
		check(!memcmp(out + 64 * y, in + PITCH * (y + 4) + 14, 32));
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = out;
	copy.dstPitch = PITCH;
	memset(out, 0, sizeof(out));
	check_ok(cuMemcpy2DAsync(&copy, NULL));
	check_ok(cuStreamSynchronize(NULL));
	for (int y = 0; y < 9; y++)
		check(!memcmp(out + PITCH * y, in + PITCH * (y + 4) + 14, 32));
	check_eq(out[32], 0);
	/* Beyond the last row. */
	copy.srcY = HEIGHT - 8;
	check_cu(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	copy.srcArray = NULL;
	check_cu(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_HANDLE);
}

/* Larger than a staging block, so that it is copied in pieces. */
TEST(large_boxes_go_through_an_array)
{
	enum { WIDTH = 256, HEIGHT = 300, DEPTH = 5, SIZE = 4 * WIDTH * HEIGHT * DEPTH };
	const CUDA_ARRAY3D_DESCRIPTOR wanted = described(WIDTH, HEIGHT, DEPTH, 0);
	uint8_t *in = malloc(SIZE), *out = calloc(1, SIZE);
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 4 * WIDTH,
		.srcHeight = HEIGHT,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 4 * WIDTH,
		.Height = HEIGHT,
		.Depth = DEPTH,
	};
	CUarray array, other;

	fixture_new();
	pattern(in, SIZE, 11);
	check_ok(cuArray3DCreate(&array, &wanted));
	check_ok(cuArray3DCreate(&other, &wanted));
	copy.dstArray = array;
	check_ok(cuMemcpy3D(&copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.dstArray = other;
	check_ok(cuMemcpy3DAsync(&copy, NULL));
	copy = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = other,
		.srcZ = 1,
		.srcY = 3,
		.srcXInBytes = 8,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 4 * WIDTH,
		.dstHeight = HEIGHT,
		.WidthInBytes = 4 * WIDTH - 8,
		.Height = HEIGHT - 3,
		.Depth = DEPTH - 1,
	};
	check_ok(cuMemcpy3D(&copy));
	for (int z = 0; z < DEPTH - 1; z++)
		for (int y = 0; y < HEIGHT - 3; y++)
			check(!memcmp(out + (z * HEIGHT + y) * 4 * WIDTH,
				in + ((z + 1) * HEIGHT + y + 3) * 4 * WIDTH + 8,
				4 * WIDTH - 8));
	copy.Depth = DEPTH;
	check_cu(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
	free(in);
	free(out);
}

TEST(levels_of_a_mipmapped_array_are_arrays_of_their_own)
{
	const CUDA_ARRAY3D_DESCRIPTOR wanted = described(16, 8, 0, 0);
	CUDA_ARRAY3D_DESCRIPTOR got = {};
	CUarray levels[3], again, beyond;
	uint8_t bytes[64], out[64] = {};
	CUmipmappedArray mipmap;

	fixture_new();
	check_ok(cuMipmappedArrayCreate(&mipmap, &wanted, 3));
	for (int i = 0; i < 3; i++) {
		check_ok(cuMipmappedArrayGetLevel(&levels[i], mipmap, i));
		check_ok(cuArray3DGetDescriptor(&got, levels[i]));
		check_eq(got.Width, 16 >> i);
		check_eq(got.Height, 8 >> i);
		pattern(bytes, 4 * (16 >> i), i);
		check_ok(cuMemcpyHtoA(levels[i], 0, bytes, 4 * (16 >> i)));
	}
	check_ok(cuMipmappedArrayGetLevel(&again, mipmap, 1));
	check_eq((uintptr_t)again, (uintptr_t)levels[1]);
	for (int i = 0; i < 3; i++) {
		pattern(bytes, 4 * (16 >> i), i);
		check_ok(cuMemcpyAtoH(out, levels[i], 0, 4 * (16 >> i)));
		check(!memcmp(bytes, out, 4 * (16 >> i)));
	}
	check_cu(cuMipmappedArrayGetLevel(&beyond, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuArrayDestroy(levels[0]), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuMipmappedArrayDestroy(mipmap));
	check_cu(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuMemcpyAtoH(out, levels[0], 0, 4), CUDA_ERROR_INVALID_HANDLE);
}

/* Arrays with memory report it, all of it and in one plane. */
TEST(ordinary_arrays_have_no_tiles_no_planes_and_no_requirements)
{
	const CUDA_ARRAY3D_DESCRIPTOR wanted = described(16, 8, 0, 0);
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
	CUDA_ARRAY_SPARSE_PROPERTIES properties;
	struct fixture fixture = fixture_new();
	CUmipmappedArray mipmap;
	CUarray array, plane;

	check_ok(cuArray3DCreate(&array, &wanted));
	check_ok(cuMipmappedArrayCreate(&mipmap, &wanted, 2));
	check_cu(cuArrayGetPlane(&plane, array, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuArrayGetSparseProperties(&properties, array), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMipmappedArrayGetSparseProperties(&properties, mipmap),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuArrayGetMemoryRequirements(&requirements, array, fixture.device),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMipmappedArrayGetMemoryRequirements(
			 &requirements, mipmap, fixture.device),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuArrayDestroy(array));
	check_ok(cuMipmappedArrayDestroy(mipmap));
	check_cu(cuArrayGetPlane(&plane, array, 0), CUDA_ERROR_INVALID_HANDLE);
}
