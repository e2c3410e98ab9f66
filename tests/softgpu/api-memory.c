/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: memory, copies and fills
 */

#include <sys/mman.h>

#include "api.h"
#include "softgpu.h"

TEST(copied_data_is_copied_back)
{
	enum { N = 3 << 20 };
	uint8_t *in = malloc(N), *out = calloc(1, N);
	CUdeviceptr one, two;

	context_new();
	for (int i = 0; i < N; i++)
		in[i] = i * 7 + (i >> 8);
	check_ok(cuMemAlloc(&one, N));
	check_ok(cuMemAlloc(&two, N));
	check_ok(cuMemcpyHtoD(one, in, N));
	check_ok(cuMemcpyDtoD(two, one, N));
	check_ok(cuMemcpyDtoH(out, two, N));
	check(!memcmp(in, out, N));
	check_ok(cuMemcpyDtoH(out, two + 1000, 5));
	check(!memcmp(in + 1000, out, 5));
	check_ok(cuMemFree(one));
	check_ok(cuMemFree(two));
	free(in);
	free(out);
}

TEST(copies_outside_of_an_allocation_are_refused)
{
	char bytes[4096] = { 0 };
	CUdeviceptr address;

	context_new();
	check_ok(cuMemAlloc(&address, 1000));
	check_cu(cuMemcpyHtoD(address, bytes, 1001), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyHtoD(address + 999, bytes, 2), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(bytes, address - 1, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(bytes, 0, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(bytes, (uintptr_t)bytes, 16), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(bytes, address, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemsetD8(address, 0, 1001), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemsetD32(address + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemcpyHtoD(address, NULL, 0));
	check_ok(cuMemFree(address));
	check_cu(cuMemcpyDtoH(bytes, address, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFree(0));
	check_cu(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(the_sum_of_free_and_used_memory_is_the_total)
{
	size_t before, during, after, total;
	CUdeviceptr address;

	context_new();
	check_ok(cuMemGetInfo(&before, &total));
	check_eq(total, 4ull << 30);
	check_ok(cuMemAlloc(&address, 100 << 20));
	check_ok(cuMemGetInfo(&during, &total));
	check_eq(before - during, 100 << 20);
	check_ok(cuMemFree(address));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before, after);
	check_cu(cuMemAlloc(&address, 5ull << 30), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Returns: what malloc(64) gives to device code whose heap is so large. */
static uint64_t malloc_from_heap_of(size_t heap_size)
{
	static const char ptx[] =
		".version 8.0\n.target sm_75\n.address_size 64\n"
		".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
		".visible .entry k(.param .u64 p) { .reg .b64 %d<3>;\n"
		"ld.param.u64 %d1, [p];\n"
		"{ .param .b64 a; .param .b64 q; st.param.b64 [a], 64;\n"
		"call.uni (q), malloc, (a); ld.param.b64 %d2, [q]; }\n"
		"st.global.u64 [%d1], %d2; ret; }\n";
	CUdeviceptr out = device_memory(8);
	void *params[] = { &out };
	CUfunction function;
	CUmodule module;
	uint64_t result;

	check_ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap_size));
	check_ok(cuModuleLoadData(&module, ptx));
	check_ok(cuModuleGetFunction(&function, module, "k"));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_ok(cuMemcpyDtoH(&result, out, sizeof(result)));
	check_ok(cuMemFree(out));
	check_ok(cuModuleUnload(module));
	return result;
}

TEST(the_heap_of_device_code_counts_as_device_memory)
{
	size_t before, after, total;

	context_new();
	check_ok(cuMemGetInfo(&before, &total));
	check(malloc_from_heap_of(100 << 20) != 0);
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before - after, 100 << 20);
}

TEST(a_heap_larger_than_the_device_is_none)
{
	context_new();
	check_eq(malloc_from_heap_of(5ull << 30), 0);
}

TEST(fills_write_elements_of_each_size)
{
	uint32_t words[64];
	CUdeviceptr address;

	context_new();
	address = device_memory(sizeof(words));
	check_ok(cuMemsetD32(address, 0x01020304, 64));
	check_ok(cuMemsetD16(address + 4, 0xabcd, 2));
	check_ok(cuMemsetD8(address + 9, 0xee, 1));
	check_ok(cuMemcpyDtoH(words, address, sizeof(words)));
	check_eq(words[0], 0x01020304);
	check_eq(words[1], 0xabcdabcd);
	check_eq(words[2], 0x0102ee04);
	check_eq(words[63], 0x01020304);
}

TEST(rectangles_are_copied_and_filled_row_by_row)
{
	uint8_t image[10][20], back[10][20];
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = image,
		.srcPitch = 20,
		.srcXInBytes = 3,
		.srcY = 2,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 7,
		.Height = 5,
	};
	size_t pitch;

	context_new();
	for (int i = 0; i < 200; i++)
		image[i / 20][i % 20] = i;
	memset(back, 0, sizeof(back));
	check_ok(cuMemAllocPitch(&copy.dstDevice, &pitch, 7, 5, 4));
	check_eq(pitch % 512, 0);
	copy.dstPitch = pitch;
	check_ok(cuMemcpy2D(&copy));
	check_ok(cuMemsetD2D8(copy.dstDevice + 1, pitch, 0xff, 2, 3));

	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = copy.dstDevice;
	copy.srcPitch = pitch;
	copy.srcXInBytes = copy.srcY = 0;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back;
	copy.dstPitch = 20;
	check_ok(cuMemcpy2DAsync(&copy, NULL));
	for (int y = 0; y < 5; y++)
		for (int x = 0; x < 7; x++)
			check_eq(back[y][x],
				y < 3 && (x == 1 || x == 2) ? 0xff : image[y + 2][x + 3]);
	check_eq(back[0][7], 0);

	copy.srcPitch = 6;
	check_cu(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	copy.srcPitch = pitch;
	copy.Height = 1 << 20;
	check_cu(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = NULL;
	check_cu(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
}

TEST(pinned_memory_is_seen_by_kernels_at_its_own_address)
{
	unsigned int *words, flags;
	CUdeviceptr address;

	context_new();
	words = pinned_memory(4096);
	check_ok(cuMemHostGetDevicePointer(&address, words, 0));
	check_eq(address, (uintptr_t)words);
	check_ok(launch_store(address + 8, 77, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(words[2], 77);
	check_ok(cuMemHostGetFlags(&flags, words));
	check_cu(cuMemFree((uintptr_t)words), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFreeHost(words));
	check_cu(cuMemFreeHost(words), CUDA_ERROR_INVALID_VALUE);
}

TEST(managed_memory_is_one_address_for_both)
{
	unsigned int *word;
	CUdeviceptr address;

	context_new();
	check_ok(cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL));
	word = (unsigned int *)(uintptr_t)address;
	*word = 1;
	check_ok(launch_store(address + 4, 5, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(word[1], 5);
	check_eq(device_word(address), 1);
	check_ok(cuMemFree(address));
}

TEST(pointers_tell_what_they_point_to)
{
	unsigned int type = 0, managed = 9;
	CUdeviceptr address, start;
	size_t size;
	int ordinal;
	CUpointer_attribute ids[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	void *values[] = { &type, &managed, &ordinal };

	context_new();
	address = device_memory(5000);
	check_ok(cuMemGetAddressRange(&start, &size, address + 4999));
	check_eq(start, address);
	check_eq(size, 5000);
	check_cu(cuMemGetAddressRange(&start, &size, address + 5000),
		CUDA_ERROR_NOT_FOUND);
	check_ok(cuPointerGetAttributes(3, ids, values, address + 1));
	check_eq(type, CU_MEMORYTYPE_DEVICE);
	check_eq(managed, 0);
	check_eq(ordinal, 0);
	check_ok(cuPointerGetAttributes(3, ids, values, (uintptr_t)&size));
	check_eq(ordinal, -2);
	check_cu(cuPointerGetAttribute(
			 &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&size),
		CUDA_ERROR_INVALID_VALUE);
}

/* As in a worker: an arena, followed by device memory. */
TEST(device_memory_is_in_the_window_and_the_arena_is_visible_once_registered)
{
	uint64_t base = 0x550000000000, arena_size = 64 << 20, size = 8ull << 30;
	unsigned int *arena;
	CUdeviceptr address;

	check(mmap((void *)base, size, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
		      -1, 0) == (void *)base);
	arena = mmap((void *)base, arena_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	check(arena != MAP_FAILED);
	check_ok(cuInit(0));
	check_eq(softgpu_set_window(
			 base + arena_size, size - arena_size, base, arena_size),
		0);
	context_new();
	check_cu(cuMemHostRegister(&address, 8, 0), CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuMemHostRegister(arena, 2 << 20, CU_MEMHOSTREGISTER_PORTABLE));
	check_cu(cuMemHostRegister(arena, 4096, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	check_ok(cuMemAlloc(&address, 1 << 20));
	check(address >= base + arena_size && address < base + size);

	arena[0] = 3;
	check_ok(cuMemcpyHtoDAsync(address, arena, 4, NULL));
	check_ok(cuMemcpyDtoDAsync((uintptr_t)arena + 400, address, 4, NULL));
	check_ok(launch_store((uintptr_t)arena + 404, 9, NULL));
	check_ok(cuStreamWriteValue64(NULL, (uintptr_t)arena + 408, 1ull << 40, 0));
	check_ok(cuCtxSynchronize());
	check_eq(arena[100], 3);
	check_eq(arena[101], 9);
	check_eq(*(uint64_t *)&arena[102], 1ull << 40);
	check_cu(cuStreamWriteValue64(NULL, (uintptr_t)arena + (2 << 20), 1, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemHostUnregister(arena));
	check_cu(cuMemHostUnregister(arena), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	check_ok(launch_store((uintptr_t)arena, 9, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
