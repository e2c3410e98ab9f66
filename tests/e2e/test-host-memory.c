/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory on the host that is created, mapped and pooled like a device's
 */

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "e2e.h"

#define MIB (1ull << 20)

static const CUmemAllocationProp on_host = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_HOST },
};

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
};

static const CUmemAccessDesc full_access[] = {
	{ { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
	{ { CU_MEM_LOCATION_TYPE_HOST, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
};

static size_t unit;

/* Skips where the device cannot. */
static struct fixture begin(CUdevice_attribute attribute)
{
	struct fixture fixture = fixture_new();
	int is_supported = 0;

	check_ok(cuDeviceGetAttribute(&is_supported, attribute, 0));
	if (!is_supported)
		test_skip("the device has no such memory");
	unit = 0;
	check_ok(cuMemGetAllocationGranularity(
		&unit, &on_host, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	check(unit >= 4096 && !(unit & (unit - 1)));
	return fixture;
}

static struct fixture begin_mapping(void)
{
	return begin(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
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

	check_ok(cuMemCreate(&handle, n_units * unit, &on_host, 0));
	check(handle);
	return handle;
}

static void map(CUdeviceptr address, size_t n_units, CUmemGenericAllocationHandle handle)
{
	check_ok(cuMemMap(address, n_units * unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, n_units * unit, full_access, 2));
}

static unsigned int *words(CUdeviceptr address)
{
	return (unsigned int *)(uintptr_t)address;
}

static void set_access(CUdeviceptr address, size_t n_units, CUmemLocationType type,
	CUmemAccess_flags flags)
{
	const CUmemAccessDesc desc = { { type, 0 }, flags };

	check_ok(cuMemSetAccess(address, n_units * unit, &desc, 1));
}

static unsigned long long access_of(CUdeviceptr address, CUmemLocationType type)
{
	const CUmemLocation location = { type, 0 };
	unsigned long long flags = 99;

	check_ok(cuMemGetAccess(&flags, &location, address));
	return flags;
}

/* What the processors may do, as the kernel sees it: bit 0 read, bit 1 write. */
static int program_access(CUdeviceptr address)
{
	int ends[2], rights = 0;
	char byte = 0;

	check_eq(pipe(ends), 0);
	check_eq(write(ends[1], &byte, 1), 1);
	if (read(ends[0], words(address), 1) == 1)
		rights |= 2;
	else
		check_eq(errno, EFAULT);
	if (write(ends[1], words(address), 1) == 1)
		rights |= 1;
	else
		check_eq(errno, EFAULT);
	close(ends[0]);
	close(ends[1]);
	return rights;
}

TEST(program_and_kernel_share_memory_at_one_address)
{
	struct fixture fixture = begin_mapping();
	CUfunction step = fixture_function(&fixture, "step");
	CUfunction fill = fixture_function(&fixture, "fill");
	CUmemGenericAllocationHandle handle = create(2);
	CUdeviceptr array = reserve(2);
	const size_t n_words = 2 * unit / 4;

	map(array, 2, handle);
	check_eq(*words(array), 0);
	*words(array) = 4;
	check_ok(launch_step(step, array, 3, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(*words(array), stepped(4, 3));
	check_ok(launch_fill(fill, array, 77, (int)n_words, NULL));
	check_ok(cuCtxSynchronize());
	for (size_t i = 0; i < n_words; i++)
		check_eq(words(array)[i], 77);
	check_ok(cuMemUnmap(array, 2 * unit));
	check_ok(cuMemRelease(handle));
	check_ok(cuMemAddressFree(array, 2 * unit));
}

TEST(copies_and_fills_are_complete_when_they_return)
{
	unsigned int some[1024], back[1024] = {};
	CUdeviceptr array, memory;
	CUstream stream;

	begin_mapping();
	array = reserve(1);
	map(array, 1, create(1));
	check_ok(cuMemAlloc(&memory, sizeof(some)));
	for (int round = 0; round < 100; round++) {
		for (unsigned int i = 0; i < 1024; i++)
			some[i] = i ^ (unsigned int)round;
		check_ok(cuMemcpyHtoD(array, some, sizeof(some)));
		check(!memcmp(words(array), some, sizeof(some)));
		check_ok(cuMemcpyDtoD(memory, array, sizeof(some)));
		check_ok(cuMemsetD32(array, (unsigned int)round, 1024));
		check_eq(words(array)[1023], (unsigned int)round);
		check_ok(cuMemcpy(array, memory, sizeof(some)));
		check(!memcmp(words(array), some, sizeof(some)));
	}
	/* From and to the program's own memory, by device pointer and as host memory. */
	check_ok(cuMemcpyDtoH(back, array, sizeof(back)));
	check(!memcmp(back, some, sizeof(back)));
	words(array)[7] = 4711;
	check_ok(cuMemcpyHtoD(memory, words(array), sizeof(some)));
	check_eq(device_word(memory + 28), 4711);
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	words(array)[7] = 4712;
	check_ok(cuMemcpyHtoDAsync(memory, words(array), sizeof(some), stream));
	check_ok(cuMemcpyDtoHAsync(words(array) + 2048, memory, sizeof(some), stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(words(array)[2048 + 7], 4712);
	check_ok(cuMemFree(memory));
}

TEST(a_piece_shows_at_two_addresses)
{
	struct fixture fixture = begin_mapping();
	CUmemGenericAllocationHandle handle = create(2);
	CUdeviceptr one = reserve(2), other = reserve(3);

	map(one, 2, handle);
	map(other + unit, 1, handle);
	words(one)[5] = 10;
	check_eq(words(other + unit)[5], 10);
	check_ok(launch_step(
		fixture_function(&fixture, "step"), other + unit + 20, 1, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(words(one)[5], 31);
	check_ok(cuMemUnmap(one, 2 * unit));
	check_eq(words(other + unit)[5], 31);
	check_eq(program_access(one), 0);
	map(one, 2, handle);
	check_eq(words(one)[5], 31);
	check_ok(cuMemRelease(handle));
}

TEST(program_and_device_have_the_rights_that_were_set)
{
	CUdeviceptr array;
	unsigned int word = 5;

	begin_mapping();
	array = reserve(1);
	check_ok(cuMemMap(array, unit, 0, create(1), 0));
	check_eq(access_of(array, CU_MEM_LOCATION_TYPE_DEVICE), 0);
	check_eq(access_of(array, CU_MEM_LOCATION_TYPE_HOST), 0);
	check_eq(program_access(array), 0);
	check(cuMemcpyHtoD(array, &word, sizeof(word)) != CUDA_SUCCESS);
	set_access(array, 1, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ACCESS_FLAGS_PROT_READ);
	check_eq(program_access(array), 1);
	check_eq(access_of(array, CU_MEM_LOCATION_TYPE_HOST_NUMA),
		CU_MEM_ACCESS_FLAGS_PROT_READ);
	check(cuMemcpyHtoD(array, &word, sizeof(word)) != CUDA_SUCCESS);
	set_access(array, 1, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_eq(program_access(array), 3);
	set_access(array, 1, CU_MEM_LOCATION_TYPE_DEVICE,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_ok(cuMemcpyHtoD(array, &word, sizeof(word)));
	check_eq(*words(array), 5);
	set_access(array, 1, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	check_eq(program_access(array), 0);
	check_eq(device_word(array), 5);
	set_access(array, 1, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	check_eq(access_of(array, CU_MEM_LOCATION_TYPE_DEVICE), 0);
	check(cuMemcpyHtoD(array, &word, sizeof(word)) != CUDA_SUCCESS);
}

TEST(a_kernel_without_access_faults)
{
	struct fixture fixture = begin_mapping();
	CUdeviceptr array = reserve(1);

	check_ok(cuMemMap(array, unit, 0, create(1), 0));
	set_access(
		array, 1, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_ok(launch_step(fixture_function(&fixture, "step"), array, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_piece_lives_as_long_as_a_handle_or_a_mapping)
{
	CUmemGenericAllocationHandle handle, again = 0, third = 0;
	CUdeviceptr array;

	begin_mapping();
	array = reserve(2);
	handle = create(1);
	map(array, 1, handle);
	words(array)[1] = 8;
	check_ok(cuMemRetainAllocationHandle(&again, words(array)));
	check(again == handle);
	check_ok(cuMemRelease(handle));
	check_ok(cuMemRelease(again));
	check_cu(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(words(array)[1], 8);
	check_ok(cuMemRetainAllocationHandle(&third, words(array + unit - 4)));
	check_ok(cuMemUnmap(array, unit));
	map(array + unit, 1, third);
	check_eq(words(array + unit)[1], 8);
	check_ok(cuMemUnmap(array + unit, unit));
	check_ok(cuMemRelease(third));
	check_cu(cuMemMap(array, unit, 0, third, 0), CUDA_ERROR_INVALID_VALUE);
	/* Far more than there is, one after the other. */
	for (int i = 0; i < 200; i++) {
		handle = create(8);
		check_ok(cuMemMap(array, unit, 0, handle, 0));
		check_ok(cuMemRelease(handle));
		check_ok(cuMemUnmap(array, unit));
	}
	check_ok(cuMemAddressFree(array, 2 * unit));
}

TEST(properties_and_attributes_describe_it)
{
	static const CUmemAllocationProp on_node = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
	};
	CUmemGenericAllocationHandle handle, other = 0;
	CUmemAllocationProp prop;
	CUdeviceptr array, base = 0;
	unsigned int type = 0;
	void *pointer = NULL;
	size_t size = 0;

	begin_mapping();
	handle = create(1);
	memset(&prop, 0x5a, sizeof(prop));
	check_ok(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	check(!memcmp(&prop, &on_host, sizeof(prop)));
	check_ok(cuMemCreate(&other, unit, &on_node, 0));
	memset(&prop, 0x5a, sizeof(prop));
	check_ok(cuMemGetAllocationPropertiesFromHandle(&prop, other));
	check(!memcmp(&prop, &on_node, sizeof(prop)));
	array = reserve(2);
	map(array, 1, handle);
	map(array + unit, 1, other);
	check_ok(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array + unit + 1));
	check_eq(type, CU_MEMORYTYPE_HOST);
	check_ok(cuPointerGetAttribute(
		&pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, array + 12));
	check(pointer == words(array + 12));
	check_ok(cuMemGetAddressRange(&base, &size, array + unit + 1));
	check_eq(base, array + unit);
	check_eq(size, unit);
	check_cu(cuMemFree(array), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemFreeHost(words(array)), CUDA_ERROR_INVALID_VALUE);
}

TEST(memory_of_both_kinds_is_one_array)
{
	struct fixture fixture = begin_mapping();
	CUmemGenericAllocationHandle there = 0;
	CUdeviceptr array = reserve(4);
	CUresult result;

	check_ok(cuMemCreate(&there, unit, &on_device, 0));
	map(array, 1, create(1));
	result = cuMemMap(array + unit, unit, 0, there, 0);
	/* On a driver that reserves addresses for its own memory only. */
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		test_skip("the driver keeps the two apart");
	check_ok(result);
	map(array + 2 * unit, 1, create(1));
	check_cu(cuMemSetAccess(array, 3 * unit, full_access, 2),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemSetAccess(array, 3 * unit, full_access, 1));
	check_ok(launch_fill(
		fixture_function(&fixture, "fill"), array, 9, (int)(3 * unit / 4), NULL));
	check_ok(cuMemsetD32(array + unit - 8, 7, 4));
	check_eq(words(array)[unit / 4 - 1], 7);
	check_eq(device_word(array + unit + 4), 7);
	check_ok(cuMemcpyDtoD(array + 2 * unit - 8, array + unit - 8, 16));
	check_eq(device_word(array + 2 * unit - 8), 7);
	check_eq(*words(array + 2 * unit + 4), 7);
	check_eq(*words(array + 2 * unit + 8), 9);
	check_ok(cuMemUnmap(array, 3 * unit));
	check_cu(cuMemUnmap(array, unit), CUDA_ERROR_INVALID_VALUE);
	/* Memory of the device, where memory of the host was. */
	check_ok(cuMemMap(array, unit, 0, there, 0));
	check_ok(cuMemSetAccess(array, unit, full_access, 1));
	check_eq(device_word(array + 16), 9);
	check_eq(program_access(array), 0);
	check_ok(cuMemUnmap(array, unit));
	check_ok(cuMemAddressFree(array, 4 * unit));
	check_ok(cuMemAlloc(&array, 4 * unit));
	check_ok(cuMemsetD32(array, 3, unit));
	check_eq(device_word(array), 3);
}

TEST(memory_outlives_the_contexts_that_use_it)
{
	struct fixture fixture = begin_mapping();
	CUdeviceptr array = reserve(2);

	map(array, 1, create(1));
	*words(array) = 0;
	check_ok(launch_step(fixture_function(&fixture, "step"), array, 1, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(*words(array), 1);
	check_ok(cuDevicePrimaryCtxReset(0));
	/* Without any context. */
	check_eq(*words(array), 1);
	map(array + unit, 1, create(1));
	*words(array + unit) = 6;
	fixture = fixture_new();
	check_ok(launch_step(fixture_function(&fixture, "step"), array, 1, NULL));
	check_ok(launch_step(fixture_function(&fixture, "step"), array + unit, 1, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(*words(array), 4);
	check_eq(*words(array + unit), 19);
	check_ok(cuMemUnmap(array, 2 * unit));
}

TEST(unmapping_waits_for_kernels)
{
	struct fixture fixture = begin_mapping();
	CUfunction step = fixture_function(&fixture, "step");
	CUmemGenericAllocationHandle handle = create(1);
	CUdeviceptr array = reserve(1), other = reserve(1);

	map(other, 1, handle);
	for (int i = 0; i < 10; i++) {
		map(array, 1, handle);
		*words(other) = 1;
		check_ok(launch_step(step, array, 100000, NULL));
		check_ok(cuMemUnmap(array, unit));
		check_eq(*words(other), stepped(1, 100000));
	}
	check_ok(cuCtxSynchronize());
}

static void *unmap_array(void *array)
{
	check_ok(cuMemUnmap((CUdeviceptr)(uintptr_t)array, unit));
	return NULL;
}

/* The work that one thread waits for may wait for another one. */
TEST(other_threads_go_on_while_one_unmaps)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr array, other, memory = 0;
	pthread_t thread;
	CUstream stream;
	uint32_t *gate;

	begin_mapping();
	array = reserve(1);
	other = reserve(1);
	map(array, 1, create(1));
	check_ok(cuMemHostAlloc((void **)&gate, sizeof(*gate), 0));
	*gate = 0;
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamWaitValue32(
		stream, (CUdeviceptr)(uintptr_t)gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
	check_eq(pthread_create(&thread, NULL, unmap_array, words(array)), 0);
	for (int i = 0; i < 200; i++) {
		handle = create(1);
		check_ok(cuMemMap(other, unit, 0, handle, 0));
		check_ok(cuMemRelease(handle));
		check_ok(cuMemAllocAsync(&memory, MIB << i % 6, stream));
		check_ok(cuMemFreeAsync(memory, stream));
		check_ok(cuMemUnmap(other, unit));
	}
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	check_eq(program_access(array), 0);
	check_ok(cuStreamSynchronize(stream));
}

TEST(misuse_is_refused)
{
	CUmemGenericAllocationHandle handle = 0, one;
	CUmemAllocationProp prop = on_host;
	CUmemAccessDesc desc = full_access[0];
	CUdeviceptr array, memory;
	int fd = -1;

	begin_mapping();
	check_cu(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit + 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit, &prop, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemCreate(&handle, unit << 32, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	check_cu(cuMemCreate(&handle, SIZE_MAX, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	prop.requestedHandleTypes = 0;
	prop.location.id = 1;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.id = -1;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);

	array = reserve(4);
	one = create(1);
	check_cu(cuMemExportToShareableHandle(
			 &fd, one, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, 2 * unit, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, 4096, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array + 4096, unit, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, unit, 4096, one, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array, 0, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemMap(array + 4 * unit, unit, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	map(array + unit, 1, one);
	*words(array + unit) = 55;
	check_cu(cuMemMap(array + unit, unit, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemCreate(&handle, 2 * unit, &on_device, 0));
	check_cu(cuMemMap(array, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuMemMap(array + unit, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAddressFree(array, 4 * unit), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemUnmap(array, 2 * unit), CUDA_ERROR_INVALID_VALUE);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	check_cu(cuMemSetAccess(array + unit, unit, &desc, 1), CUDA_ERROR_NOT_SUPPORTED);
	desc.flags = 2;
	check_cu(cuMemSetAccess(array + unit, unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	desc.location.type = CU_MEM_LOCATION_TYPE_HOST;
	check_cu(cuMemSetAccess(array + unit, unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemSetAccess(array, unit, &full_access[1], 1),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(*words(array + unit), 55);
	check_eq(device_word(array + unit), 55);
	/* Memory of a device is not the processors'. */
	memory = reserve(2);
	check_ok(cuMemMap(memory, 2 * unit, 0, handle, 0));
	check_cu(cuMemSetAccess(memory, 2 * unit, full_access, 2),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(program_access(memory), 0);
}

TEST(all_of_the_arena_is_used_and_no_more)
{
	CUmemGenericAllocationHandle handles[4096], more = 0;
	CUresult result = CUDA_SUCCESS;
	int n = 0;

	begin_mapping();
	while (n < 4096) {
		result = cuMemCreate(&handles[n], 4 * unit, &on_host, 0);
		if (result != CUDA_SUCCESS)
			break;
		n++;
	}
	check(n > 0);
	check_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
	check_cu(cuMemCreate(&more, 4 * unit, &on_host, 0), CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemRelease(handles[--n]));
	check_ok(cuMemCreate(&more, 4 * unit, &on_host, 0));
	while (n)
		check_ok(cuMemRelease(handles[--n]));
}

TEST(all_addresses_can_be_reserved_and_given_back)
{
	CUdeviceptr all[64], array;
	size_t sizes[64];
	int n = 0;

	begin_mapping();
	array = reserve(1);
	for (size_t size = 1ull << 46; size >= unit && n < 64; size /= 2)
		while (n < 64 &&
			cuMemAddressReserve(&all[n], size, 0, 0, 0) == CUDA_SUCCESS)
			sizes[n++] = size;
	check(n > 0);
	/* Only what is left fits. */
	map(array, 1, create(1));
	*words(array) = 1;
	check_eq(device_word(array), 1);
	while (n--)
		check_ok(cuMemAddressFree(all[n], sizes[n]));
	check_ok(cuMemAlloc(&array, unit));
	check_ok(cuMemFree(array));
}

static void *use_memory(void *context)
{
	check_ok(cuCtxSetCurrent(context));
	for (unsigned int i = 0; i < 40; i++) {
		CUmemGenericAllocationHandle handle = create(1);
		CUdeviceptr array = reserve(2);

		map(array + unit, 1, handle);
		check_ok(cuMemRelease(handle));
		check_ok(cuMemsetD32(array + unit, i, 64));
		check_eq(words(array + unit)[63], i);
		check_ok(cuMemUnmap(array + unit, unit));
		check_ok(cuMemAddressFree(array, 2 * unit));
	}
	return NULL;
}

TEST(threads_map_and_unmap_at_once)
{
	struct fixture fixture = begin_mapping();
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		check_eq(pthread_create(&threads[i], NULL, use_memory, fixture.context),
			0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/*
 * Pools
 */

static struct fixture begin_pool(void)
{
	return begin(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED);
}

static CUmemoryPool pool_new(CUmemLocationType type, size_t max_size)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { type, 0 },
		.maxSize = max_size,
	};
	CUmemoryPool pool = NULL;

	check_ok(cuMemPoolCreate(&pool, &props));
	check(pool);
	return pool;
}

static uint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value = 12345;

	check_ok(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

TEST(a_pool_on_the_host_is_for_program_and_kernels)
{
	struct fixture fixture = begin_pool();
	CUmemoryPool pool = pool_new(CU_MEM_LOCATION_TYPE_HOST, 0), found = NULL;
	CUdeviceptr a = 0, b = 0, base = 0;
	unsigned int type = 0;
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemPoolSetAccess(pool, full_access, 2));
	check_ok(cuMemAllocFromPoolAsync(&a, MIB, pool, stream));
	check_ok(cuMemAllocFromPoolAsync(&b, MIB, pool, stream));
	check(a && b && (a + MIB <= b || b + MIB <= a));
	check_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 * MIB);
	check(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 2 * MIB);
	*words(a) = 4;
	check_ok(launch_step(fixture_function(&fixture, "step"), a, 2, stream));
	check_ok(cuMemcpyDtoDAsync(b + 64, a, 4, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(words(b)[16], stepped(4, 2));
	check_ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b + 5));
	check_eq(type, CU_MEMORYTYPE_HOST);
	check_ok(cuPointerGetAttribute(
		&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, b + 5));
	check_eq(base, b);
	check_ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, b));
	check(found == pool);
	check_ok(cuMemFreeAsync(a, stream));
	check_ok(cuMemFreeAsync(b, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	check_eq(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	check_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b),
		CUDA_ERROR_INVALID_VALUE);
	/* Far more than there is, one after the other. */
	for (int i = 0; i < 200; i++) {
		check_ok(cuMemAllocFromPoolAsync(&a, 16 * MIB, pool, stream));
		check_ok(cuMemFreeAsync(a, stream));
		check_ok(cuStreamSynchronize(stream));
	}
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_location_on_the_host_has_a_default_pool_and_a_current_one)
{
	CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	CUmemLocation node = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 };
	CUmemLocation other = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 1 };
	const CUmemAllocationType pinned = CU_MEM_ALLOCATION_TYPE_PINNED;
	CUmemoryPool first = NULL, second = NULL, found = NULL, mine;
	CUmemAccess_flags flags = 99;

	begin_pool();
	check_ok(cuMemGetDefaultMemPool(&first, &host, pinned));
	check_ok(cuMemGetDefaultMemPool(&second, &node, pinned));
	check(first && second && first != second);
	check_ok(cuMemGetMemPool(&found, &node, pinned));
	check(found == second);
	mine = pool_new(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
	check_cu(cuMemSetMemPool(&host, pinned, mine), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemSetMemPool(&node, pinned, mine));
	check_ok(cuMemGetMemPool(&found, &node, pinned));
	check(found == mine);
	check_ok(cuMemPoolDestroy(mine));
	check_ok(cuMemGetMemPool(&found, &node, pinned));
	check(found == second);
	check_cu(cuMemPoolDestroy(first), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemGetMemPool(&found, &other, pinned), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemGetMemPool(&found, &host, CU_MEM_ALLOCATION_TYPE_MANAGED),
		CUDA_ERROR_NOT_SUPPORTED);

	/* The host always has access, and a device if it was given. */
	check_ok(cuMemPoolGetAccess(&flags, first, &host));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	other.type = CU_MEM_LOCATION_TYPE_DEVICE;
	other.id = 0;
	check_ok(cuMemPoolGetAccess(&flags, first, &other));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	check_ok(cuMemPoolSetAccess(first, full_access, 1));
	check_ok(cuMemPoolGetAccess(&flags, first, &other));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST(a_pool_on_the_host_ends_where_its_memory_ends)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST },
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	};
	CUmemoryPool pool, limited;
	CUdeviceptr address = 0;

	begin_pool();
	check_cu(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	check_cu(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	props.handleTypes = 0;
	props.location.id = 3;
	check_cu(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	check_cu(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
	check_cu(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	pool = pool_new(CU_MEM_LOCATION_TYPE_HOST, 0);
	limited = pool_new(CU_MEM_LOCATION_TYPE_HOST, 2 * MIB);
	check_cu(cuMemAllocFromPoolAsync(&address, 3 * MIB, limited, NULL),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_cu(cuMemAllocFromPoolAsync(&address, 1ull << 40, pool, NULL),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemAllocFromPoolAsync(&address, 2 * MIB, limited, NULL));
	check_ok(cuCtxSynchronize());
	words(address)[5] = 6;
	check_eq(device_word(address + 20), 6);
	check_ok(cuMemFree(address));
	check_ok(cuMemPoolDestroy(limited));
	check_ok(cuMemPoolDestroy(pool));
}
