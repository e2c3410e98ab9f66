/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: virtual memory
 */

#include <pthread.h>

#include "e2e.h"

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
};

static const CUmemAccessDesc full_access = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static size_t unit;

/* Skips where the device has no virtual memory management. */
static struct fixture begin(void)
{
	struct fixture fixture = fixture_new();
	int is_supported = 0;

	check_ok(cuDeviceGetAttribute(&is_supported,
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	if (!is_supported)
		test_skip("the device has no virtual memory management");
	unit = 0;
	check_ok(cuMemGetAllocationGranularity(
		&unit, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	check(unit >= 4096 && !(unit & (unit - 1)));
	return fixture;
}

static CUdeviceptr reserve(size_t n_units)
{
	CUdeviceptr address = 0;

	check_ok(cuMemAddressReserve(&address, n_units * unit, 0, 0, 0));
	check(address && address % unit == 0);
	return address;
}

static CUmemGenericAllocationHandle create(size_t n_units)
{
	CUmemGenericAllocationHandle handle = 0;

	check_ok(cuMemCreate(&handle, n_units * unit, &on_device, 0));
	return handle;
}

static void map(CUdeviceptr address, size_t n_units, CUmemGenericAllocationHandle handle)
{
	check_ok(cuMemMap(address, n_units * unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, n_units * unit, &full_access, 1));
}

static size_t free_memory(void)
{
	size_t free = 0, total = 0;

	check_ok(cuMemGetInfo(&free, &total));
	return free;
}

TEST(an_array_grows_in_place)
{
	struct fixture fixture = begin();
	CUfunction fill = fixture_function(&fixture, "fill");
	const size_t n_words = unit / 4;
	CUmemGenericAllocationHandle handles[4];
	CUdeviceptr array = reserve(8);
	unsigned int *words;

	words = malloc(4 * unit);
	for (int i = 0; i < 4; i++) {
		handles[i] = create(1);
		map(array + i * unit, 1, handles[i]);
		/* What is there already stays; a kernel uses old and new as one. */
		if (i)
			check_eq(device_word(array), 100 + i - 1);
		check_ok(launch_fill(fill, array, 100 + i, (i + 1) * n_words, NULL));
	}
	check_ok(cuMemcpyDtoH(words, array, 4 * unit));
	for (size_t i = 0; i < 4 * n_words; i++)
		check_eq(words[i], 103);
	/* A fill and a copy across the seams. */
	check_ok(cuMemsetD32(array + unit - 8, 7, 4));
	check_ok(cuMemcpyDtoD(array + 3 * unit - 8, array + unit - 8, 16));
	check_eq(device_word(array + unit + 4), 7);
	check_eq(device_word(array + 3 * unit + 4), 7);
	check_eq(device_word(array + 3 * unit + 8), 103);
	free(words);
	check_ok(cuMemUnmap(array, 4 * unit));
	for (int i = 0; i < 4; i++)
		check_ok(cuMemRelease(handles[i]));
	check_ok(cuMemAddressFree(array, 8 * unit));
}

TEST(one_piece_of_memory_shows_at_two_addresses)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr one, other;

	begin();
	one = reserve(2);
	other = reserve(2);
	check(one + 2 * unit <= other || other + 2 * unit <= one);
	handle = create(2);
	map(one, 2, handle);
	map(other, 2, handle);
	check_ok(cuMemsetD32(one + unit, 4711, 1));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(other + unit), 4711);
	check_ok(cuMemUnmap(one, 2 * unit));
	check_eq(device_word(other + unit), 4711);
	map(one, 2, handle);
	check_eq(device_word(one + unit), 4711);
	check_ok(cuMemRelease(handle));
}

TEST(memory_counts_once_until_handle_and_mappings_are_gone)
{
	CUmemGenericAllocationHandle handle, again = 0, third = 0;
	CUdeviceptr array;
	size_t before, used;

	begin();
	before = free_memory();
	array = reserve(4);
	check_eq(free_memory(), before);
	handle = create(2);
	used = before - free_memory();
	check(used >= 2 * unit);
	map(array, 2, handle);
	map(array + 2 * unit, 2, handle);
	check_eq(before - free_memory(), used);

	check_ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(array + unit)));
	check(again == handle);
	check_ok(cuMemRelease(handle));
	check_ok(cuMemRelease(again));
	check_cu(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(before - free_memory(), used);
	/* The mapping leads back to the memory when no handle is left. */
	check_ok(cuMemRetainAllocationHandle(
		&third, (void *)(uintptr_t)(array + 3 * unit)));
	check_ok(cuMemUnmap(array, 2 * unit));
	check_ok(cuMemUnmap(array + 2 * unit, 2 * unit));
	check_eq(before - free_memory(), used);
	check_ok(cuMemRelease(third));
	check_eq(free_memory(), before);
	check_ok(cuMemAddressFree(array, 4 * unit));
}

TEST(access_is_what_was_set)
{
	CUmemAccessDesc none = full_access;
	unsigned long long flags = 99;
	CUdeviceptr array;
	unsigned int word = 1;

	begin();
	array = reserve(1);
	check_ok(cuMemMap(array, unit, 0, create(1), 0));
	check_ok(cuMemGetAccess(&flags, &full_access.location, array));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	check(cuMemcpyHtoD(array, &word, sizeof(word)) != CUDA_SUCCESS);
	check_ok(cuMemSetAccess(array, unit, &full_access, 1));
	check_ok(cuMemGetAccess(&flags, &full_access.location, array));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_ok(cuMemcpyHtoD(array, &word, sizeof(word)));
	check_eq(device_word(array), 1);
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	check_ok(cuMemSetAccess(array, unit, &none, 1));
	check_ok(cuMemGetAccess(&flags, &full_access.location, array));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST(a_kernel_without_access_faults)
{
	struct fixture fixture = begin();
	CUdeviceptr array = reserve(1);

	check_ok(cuMemMap(array, unit, 0, create(1), 0));
	check_ok(launch_step(fixture_function(&fixture, "step"), array, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(properties_and_attributes_describe_the_memory)
{
	unsigned long long types = 99, id = 0;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUcontext context;
	CUdeviceptr array, base = 0;
	unsigned int type = 0;
	size_t size = 0;
	int device = -1;

	begin();
	handle = create(2);
	memset(&prop, 0x5a, sizeof(prop));
	check_ok(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	check_eq(prop.type, CU_MEM_ALLOCATION_TYPE_PINNED);
	check_eq(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	check_eq(prop.location.id, 0);
	check_eq(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);

	array = reserve(2);
	map(array, 2, handle);
	check_ok(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array + unit));
	check_eq(type, CU_MEMORYTYPE_DEVICE);
	check_ok(cuPointerGetAttribute(
		&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, array));
	check_eq(device, 0);
	check_ok(cuPointerGetAttribute(
		&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, array));
	check_eq(types, 0);
	check_ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, array));
	check(!context);
	check_ok(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, array));
	check(id);
	check_ok(cuMemGetAddressRange(&base, &size, array + unit + 1));
	check_eq(base, array);
	check_eq(size, 2 * unit);
	check_ok(cuMemUnmap(array, 2 * unit));
	check_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemFree(array), CUDA_ERROR_INVALID_VALUE);
}

TEST(hints_and_alignments_of_reservations_are_honoured)
{
	CUdeviceptr first, second = 0, third = 0;

	begin();
	first = reserve(4);
	check_ok(cuMemAddressFree(first, 4 * unit));
	check_ok(cuMemAddressReserve(&second, unit, 0, first + 2 * unit, 0));
	check_eq(second, first + 2 * unit);
	check_ok(cuMemAddressReserve(&third, unit, 0, second, 0));
	check(third && third != second);
	check_ok(cuMemAddressReserve(&third, unit, 32 * unit, 0, 0));
	check_eq(third % (32 * unit), 0);
}

TEST(reserved_addresses_are_not_allocated)
{
	CUdeviceptr array, allocated[16];

	begin();
	array = reserve(16);
	for (int i = 0; i < 16; i++) {
		check_ok(cuMemAlloc(&allocated[i], unit / 4));
		check(allocated[i] + unit / 4 <= array ||
			allocated[i] >= array + 16 * unit);
	}
	for (int i = 0; i < 16; i++)
		check_ok(cuMemFree(allocated[i]));
	check_ok(cuMemAddressFree(array, 16 * unit));
}

TEST(misuse_is_refused)
{
	CUmemGenericAllocationHandle handle = 0, released;
	CUmemAllocationProp prop = on_device;
	CUmemAccessDesc desc = full_access;
	unsigned long long flags;
	CUdeviceptr array, more = 0, memory;
	size_t size;

	begin();
	check_cu(cuMemCreate(NULL, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit, &prop, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit << 32, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	prop.location.id = 99;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuMemGetAllocationGranularity(
			 &size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
		CUDA_ERROR_INVALID_DEVICE);
	prop = on_device;
	prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressReserve(NULL, unit, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressReserve(&more, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressReserve(&more, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressReserve(&more, unit, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressReserve(&more, unit, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressReserve(&more, 1ull << 60, 0, 0, 0),
		CUDA_ERROR_OUT_OF_MEMORY);

	array = reserve(4);
	handle = create(1);
	released = create(1);
	check_ok(cuMemRelease(released));
	check_ok(cuMemAlloc(&memory, 2 * unit));
	check_cu(cuMemMap(array, unit, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, unit, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, unit, 0, released, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, unit, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, 0, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuMemMap(array + 4 * unit, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	/* An allocation is no reservation. */
	check_cu(cuMemMap((memory + unit - 1) & ~(unit - 1), unit, 0, handle, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemUnmap(memory, 2 * unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemSetAccess(memory, 2 * unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuMemGetAccess(&flags, &desc.location, memory), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressFree(memory, 2 * unit), CUDA_ERROR_INVALID_VALUE);

	check_ok(cuMemMap(array, unit, 0, handle, 0));
	check_cu(cuMemMap(array, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressFree(array, 4 * unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemSetAccess(array, 2 * unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemSetAccess(array, unit, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemSetAccess(array, unit, &desc, 0), CUDA_ERROR_INVALID_VALUE);
	desc.flags = 2;
	check_cu(cuMemSetAccess(array, unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	desc = full_access;
	desc.location.id = 99;
	check_cu(cuMemSetAccess(array, unit, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuMemUnmap(array, 2 * unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemUnmap(array + unit, unit), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemUnmap(array, unit));
	check_cu(cuMemUnmap(array, unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressFree(array, 3 * unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressFree(array + unit, 3 * unit), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemAddressFree(array, 4 * unit));
	check_cu(cuMemAddressFree(array, 4 * unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemRetainAllocationHandle(&handle, &size), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemRetainAllocationHandle(NULL, &size), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemGetAllocationGranularity(&size, &on_device, 7),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemGetAllocationPropertiesFromHandle(&prop, released),
		CUDA_ERROR_INVALID_VALUE);
}

static void *use_memory(void *context)
{
	check_ok(cuCtxSetCurrent(context));
	for (unsigned int i = 0; i < 50; i++) {
		CUmemGenericAllocationHandle handle = create(1);
		CUdeviceptr array = reserve(2);

		map(array + unit, 1, handle);
		check_ok(cuMemRelease(handle));
		check_ok(cuMemsetD32(array + unit, i, 64));
		check_eq(device_word(array + unit + 252), i);
		check_ok(cuMemUnmap(array + unit, unit));
		check_ok(cuMemAddressFree(array, 2 * unit));
	}
	return NULL;
}

TEST(threads_map_and_unmap_at_once)
{
	struct fixture fixture = begin();
	size_t before = free_memory();
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		check_eq(pthread_create(&threads[i], NULL, use_memory, fixture.context),
			0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_eq(free_memory(), before);
}

TEST(a_context_that_ends_takes_no_mapping_along)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr array;
	CUcontext other;

	begin();
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	handle = create(1);
	array = reserve(1);
	map(array, 1, handle);
	check_ok(cuMemsetD32(array, 42, 1));
	check_ok(cuCtxDestroy(other));
	check_eq(device_word(array), 42);
	check_ok(cuMemUnmap(array, unit));
	check_ok(cuMemRelease(handle));
}
