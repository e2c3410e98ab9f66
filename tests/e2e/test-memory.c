/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory, copies, fills
 */

#include "e2e.h"

/* Bytes that differ from place to place and from seed to seed. */
static void pattern(uint8_t *bytes, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((i + seed) * 2654435761u >> 24);
}

static void check_pattern(const uint8_t *bytes, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != (uint8_t)((i + seed) * 2654435761u >> 24))
			test_fail(
				__FILE__, __LINE__, "byte %zu of %zu is wrong", i, size);
}

TEST(allocations_do_not_overlap_and_are_aligned)
{
	CUdeviceptr p[64];

	fixture_new();
	for (int i = 0; i < 64; i++) {
		check_ok(cuMemAlloc(&p[i], 1000 + i));
		check_eq(p[i] % 256, 0);
		for (int j = 0; j < i; j++)
			check(p[i] + 1000 + i <= p[j] || p[j] + 1000 + j <= p[i]);
	}
	for (int i = 0; i < 64; i++)
		check_ok(cuMemFree(p[i]));
}

TEST(allocation_errors_are_the_drivers)
{
	CUdeviceptr p = 0;

	fixture_new();
	check_cu(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAlloc(&p, 1ull << 46), CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuMemFree(p));
	check_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemFree(p + 8), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFree(0));
}

TEST(free_memory_shrinks_and_grows_with_allocations)
{
	size_t before = 0, during = 0, after = 0, total = 0;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemGetInfo(&before, &total));
	check(before <= total && before > 64u << 20);
	check_ok(cuMemAlloc(&p, 32u << 20));
	check_ok(cuMemGetInfo(&during, &total));
	check(during + (32u << 20) <= before);
	check_ok(cuMemFree(p));
	check_ok(cuMemGetInfo(&after, &total));
	check(after > during);
}

static void round_trip(size_t size)
{
	uint8_t *out = malloc(size), *in = calloc(1, size);
	CUdeviceptr p;

	pattern(out, size, size);
	check_ok(cuMemAlloc(&p, size));
	check_ok(cuMemcpyHtoD(p, out, size));
	memset(out, 0, size); /* the source was taken before the call returned */
	check_ok(cuMemcpyDtoH(in, p, size));
	check_pattern(in, size, size);
	check_ok(cuMemFree(p));
	free(in);
	free(out);
}

TEST(copies_of_every_size_come_back_as_they_went)
{
	static const size_t sizes[] = { 1, 3, 16, 255, 4095, 4096, 4097, 65536, 524287,
		524288, 524289, 1 << 20, (1 << 20) + 1, 20000000, 40000003 };

	fixture_new();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		round_trip(sizes[i]);
}

TEST(part_of_an_allocation_is_copied_without_touching_the_rest)
{
	uint8_t host[4096], back[4096] = {};
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, sizeof(host)));
	check_ok(cuMemsetD8(p, 0xaa, sizeof(host)));
	pattern(host, 100, 1);
	check_ok(cuMemcpyHtoD(p + 1001, host, 100));
	check_ok(cuMemcpyDtoH(back, p, sizeof(back)));
	check_eq(back[1000], 0xaa);
	check_pattern(back + 1001, 100, 1);
	check_eq(back[1101], 0xaa);
}

TEST(device_to_device_copy_moves_bytes)
{
	uint8_t host[10000], back[10000] = {};
	CUdeviceptr a, b;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuMemAlloc(&a, sizeof(host)));
	check_ok(cuMemAlloc(&b, sizeof(host)));
	pattern(host, sizeof(host), 5);
	check_ok(cuMemcpyHtoD(a, host, sizeof(host)));
	check_ok(cuMemcpyDtoD(b, a, sizeof(host)));
	check_ok(cuMemcpyDtoH(back, b, sizeof(back)));
	check_pattern(back, sizeof(back), 5);
	check_ok(cuMemsetD8(a, 0, sizeof(host)));
	check_ok(cuMemcpyDtoDAsync(a, b, sizeof(host), stream));
	check_ok(cuStreamSynchronize(stream));
	memset(back, 0, sizeof(back));
	check_ok(cuMemcpyDtoH(back, a, sizeof(back)));
	check_pattern(back, sizeof(back), 5);
}

TEST(generic_copy_finds_the_direction_itself)
{
	uint8_t host[5000], back[5000] = {}, other[5000] = {};
	CUdeviceptr a, b;

	fixture_new();
	check_ok(cuMemAlloc(&a, sizeof(host)));
	check_ok(cuMemAlloc(&b, sizeof(host)));
	pattern(host, sizeof(host), 9);
	check_ok(cuMemcpy(a, (CUdeviceptr)(uintptr_t)host, sizeof(host)));
	check_ok(cuMemcpy(b, a, sizeof(host)));
	check_ok(cuMemcpy((CUdeviceptr)(uintptr_t)back, b, sizeof(host)));
	check_pattern(back, sizeof(back), 9);
	check_ok(cuMemcpy((CUdeviceptr)(uintptr_t)other, (CUdeviceptr)(uintptr_t)back,
		sizeof(back)));
	check_pattern(other, sizeof(other), 9);
}

TEST(copies_beyond_an_allocation_are_refused)
{
	uint8_t host[8192] = {};
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, 4096));
	check_cu(cuMemcpyHtoD(p, host, 8192), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(host, p + 1, 4096), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(host, 0x1000, 16), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoD(p, p + 4096, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemsetD8(p, 0, 4097), CUDA_ERROR_INVALID_VALUE);
	/* and has no lasting effect */
	check_ok(cuMemcpyHtoD(p, host, 4096));
}

TEST(fills_write_every_width)
{
	unsigned short halves[64];
	unsigned int words[64];
	uint8_t bytes[64];
	CUdeviceptr p;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuMemsetD8(p, 0x5a, 64));
	check_ok(cuMemcpyDtoH(bytes, p, 64));
	check_eq(bytes[0], 0x5a);
	check_eq(bytes[63], 0x5a);
	check_ok(cuMemsetD16Async(p, 0x1234, 64, stream));
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoH(halves, p, sizeof(halves)));
	check_eq(halves[0], 0x1234);
	check_eq(halves[63], 0x1234);
	check_ok(cuMemsetD32Async(p, 0xdeadbeef, 64, stream));
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoH(words, p, sizeof(words)));
	check(words[0] == 0xdeadbeef && words[63] == 0xdeadbeef);
	check_cu(cuMemsetD32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(pitched_fill_and_copy_leave_the_gaps_alone)
{
	uint8_t out[8 * 100], in[8 * 100] = {}, gap = 0;
	CUDA_MEMCPY2D copy = {};
	CUdeviceptr p;
	size_t pitch;

	fixture_new();
	check_ok(cuMemAllocPitch(&p, &pitch, 100, 8, 4));
	check(pitch >= 100 && pitch % 4 == 0);
	check_ok(cuMemsetD8(p, 0x77, pitch * 8));
	check_ok(cuMemsetD2D8(p, pitch, 0x11, 50, 8));
	check_eq(device_word(p + pitch * 7 + 44) & 0xff, 0x11);
	check_eq(device_word(p + pitch * 7 + 52) & 0xff, 0x77);
	pattern(out, sizeof(out), 3);
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = out,
		.srcPitch = 100,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = p,
		.dstPitch = pitch,
		.WidthInBytes = 100,
		.Height = 8 };
	check_ok(cuMemcpy2D(&copy));
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = pitch,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = in,
		.dstPitch = 100,
		.WidthInBytes = 100,
		.Height = 8 };
	check_ok(cuMemcpy2DUnaligned(&copy));
	check_pattern(in, sizeof(in), 3);
	if (pitch > 100) {
		check_ok(cuMemcpyDtoH(&gap, p + 100, 1));
		check_eq(gap, 0x77);
	}
}

TEST(pinned_memory_is_copied_asynchronously)
{
	size_t size = 3 << 20;
	uint8_t *out, *in;
	CUstream stream;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocHost((void **)&out, size));
	check_ok(cuMemHostAlloc((void **)&in, size, CU_MEMHOSTALLOC_PORTABLE));
	check_ok(cuMemAlloc(&p, size));
	pattern(out, size, 21);
	memset(in, 0, size);
	check_ok(cuMemcpyHtoDAsync(p, out, size, stream));
	check_ok(cuMemcpyDtoHAsync(in, p, size, stream));
	check_ok(cuStreamSynchronize(stream));
	check_pattern(in, size, 21);
	check_ok(cuMemFreeHost(out));
	check_ok(cuMemFreeHost(in));
	check_cu(cuMemFreeHost(in), CUDA_ERROR_INVALID_VALUE);
}

TEST(pageable_memory_in_asynchronous_copies_keeps_cuda_order)
{
	size_t size = 2 << 20;
	uint8_t *out = malloc(size), *in = calloc(1, size);
	CUstream stream;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuMemAlloc(&p, size));
	pattern(out, size, 4);
	check_ok(cuMemcpyHtoDAsync(p, out, size, stream));
	memset(out, 0, size); /* pageable: staged before the call returned */
	check_ok(cuMemcpyDtoHAsync(in, p, size, stream));
	check_ok(cuStreamSynchronize(stream));
	check_pattern(in, size, 4);
	free(out);
	free(in);
}

TEST(kernels_read_and_write_mapped_host_memory)
{
	struct fixture fixture = fixture_new();
	unsigned int *host, flags = 0;
	CUdeviceptr device;

	check_ok(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&device, host, 0));
	check_ok(cuMemHostGetFlags(&flags, host));
	check(flags & CU_MEMHOSTALLOC_DEVICEMAP);
	host[1023] = 1;
	check_ok(launch_fill(fixture_function(&fixture, "fill"), device, 99, 1024, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(host[0], 99);
	check_eq(host[1023], 99);
	host[0] = 5;
	check_ok(launch_step(fixture_function(&fixture, "step"), device, 3, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(host[0], stepped(5, 3));
	check_ok(cuMemFreeHost(host));
}

TEST(pointer_attributes_tell_device_from_host)
{
	struct fixture fixture = fixture_new();
	unsigned int type = 0;
	CUcontext context = NULL;
	CUdeviceptr p, base = 0;
	size_t size = 0;
	int ordinal = -1, local;
	void *host;

	check_ok(cuMemAlloc(&p, 10000));
	check_ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
	check_eq(type, CU_MEMORYTYPE_DEVICE);
	check_ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	check(context == fixture.context);
	check_ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	check_eq(ordinal, 0);
	check_ok(cuMemGetAddressRange(&base, &size, p + 9999));
	check(base == p);
	check_eq(size, 10000);
	check_ok(cuMemAllocHost(&host, 100));
	check_ok(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
	check_eq(type, CU_MEMORYTYPE_HOST);
	check_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			 (CUdeviceptr)(uintptr_t)&local),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(pitched_fills_and_copies_run_on_a_stream)
{
	uint16_t out[8 * 64], in[8 * 64] = {};
	CUDA_MEMCPY2D copy;
	CUstream stream;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, 256 * 8));
	check_ok(cuMemsetD2D8Async(p, 256, 1, 256, 8, stream));
	check_ok(cuMemsetD2D16Async(p, 256, 0x2222, 32, 8, stream));
	check_ok(cuMemsetD2D32Async(p, 256, 0x33333333, 4, 8, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p + 7 * 256), 0x33333333);
	check_eq(device_word(p + 7 * 256 + 16), 0x22222222);
	check_eq(device_word(p + 7 * 256 + 64), 0x01010101);
	check_ok(cuMemsetD16(p, 0x4444, 8));
	check_ok(cuMemsetD2D16(p, 256, 0x5555, 2, 2));
	check_ok(cuMemsetD2D32(p + 8, 256, 0x66666666, 1, 2));
	check_eq(device_word(p), 0x55555555);
	check_eq(device_word(p + 4), 0x44444444);
	check_eq(device_word(p + 256 + 8), 0x66666666);
	pattern((uint8_t *)out, sizeof(out), 8);
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = out,
		.srcPitch = 128,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = p,
		.dstPitch = 256,
		.WidthInBytes = 128,
		.Height = 8 };
	check_ok(cuMemcpy2DAsync(&copy, stream));
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = 256,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = in,
		.dstPitch = 128,
		.WidthInBytes = 128,
		.Height = 8 };
	check_ok(cuMemcpy2DAsync(&copy, stream));
	check_ok(cuStreamSynchronize(stream));
	check_pattern((uint8_t *)in, sizeof(in), 8);
}

TEST(generic_asynchronous_copy_runs_in_stream_order)
{
	uint8_t *out, *in;
	CUstream stream;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocHost((void **)&out, 9000));
	check_ok(cuMemAllocHost((void **)&in, 9000));
	check_ok(cuMemAlloc(&p, 9000));
	pattern(out, 9000, 2);
	check_ok(cuMemcpyAsync(p, (CUdeviceptr)(uintptr_t)out, 9000, stream));
	check_ok(cuMemcpyAsync((CUdeviceptr)(uintptr_t)in, p, 9000, stream));
	check_ok(cuStreamSynchronize(stream));
	check_pattern(in, 9000, 2);
}

TEST(several_pointer_attributes_are_returned_at_once)
{
	CUpointer_attribute ids[] = { CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	struct fixture fixture = fixture_new();
	unsigned int type = 0, is_managed = 1;
	CUdeviceptr p, device = 0;
	CUcontext context = NULL;
	int ordinal = -1, local;
	void *host = &host;
	void *values[] = { &context, &type, &device, &host, &is_managed, &ordinal };

	check_ok(cuMemAlloc(&p, 64));
	check_ok(cuPointerGetAttributes(6, ids, values, p + 4));
	check(context == fixture.context && type == CU_MEMORYTYPE_DEVICE);
	check(device == p + 4 && !host && !is_managed && ordinal == 0);
	/* of an unknown pointer everything is empty, and that is no error */
	check_ok(cuPointerGetAttributes(6, ids, values, (CUdeviceptr)(uintptr_t)&local));
	check(!context && !type && !device && !is_managed);
}
