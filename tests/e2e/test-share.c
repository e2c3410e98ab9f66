/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory that two processes share
 */

#include <sys/mman.h>

#include "pair.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static const CUmemAllocationProp exportable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = FD,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
};

static size_t unit;

/* Skips where memory cannot be exported. */
static void begin(void)
{
	int is_supported = 0;

	fixture_new();
	check_ok(cuDeviceGetAttribute(&is_supported,
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	if (!is_supported)
		test_skip("the device has no memory that can be exported");
	check_ok(cuMemGetAllocationGranularity(
		&unit, &exportable, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static CUmemGenericAllocationHandle create(void)
{
	CUmemGenericAllocationHandle handle = 0;

	check_ok(cuMemCreate(&handle, unit, &exportable, 0));
	return handle;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
	static const CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdeviceptr address = 0;

	check_ok(cuMemAddressReserve(&address, unit, 0, 0, 0));
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, unit, &access, 1));
	return address;
}

static void unmap(CUdeviceptr address)
{
	check_ok(cuMemUnmap(address, unit));
	check_ok(cuMemAddressFree(address, unit));
}

static int export(CUmemGenericAllocationHandle handle)
{
	int fd = -1;

	check_ok(cuMemExportToShareableHandle(&fd, handle, FD, 0));
	check(fd >= 0);
	return fd;
}

static CUresult import(int fd, CUmemGenericAllocationHandle *handle)
{
	return cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd, FD);
}

static unsigned int word_at(CUdeviceptr address)
{
	unsigned int word = 0;

	check_ok(cuMemcpyDtoH(&word, address, sizeof(word)));
	return word;
}

/* Shares memory full of `value`, and finds `value + 1` there when it is told. */
static void share_and_check(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;

	begin();
	handle = create();
	address = map(handle);
	check_ok(cuMemsetD32(address, 41, unit / 4));
	check_ok(cuCtxSynchronize());
	send_fd(export(handle));
	hear();
	check_eq(word_at(address), 42);
	check_eq(word_at(address + unit - 4), 42);
	unmap(address);
	check_ok(cuMemRelease(handle));
}

TEST(what_one_process_writes_the_other_reads)
{
	pid_t pid = start(share_and_check);
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	unsigned long long types;
	CUdeviceptr address;
	int fd;

	begin();
	fd = receive_fd();
	check_ok(import(fd, &handle));
	close(fd);
	check_ok(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	check_eq(prop.requestedHandleTypes, FD);
	check_eq(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	address = map(handle);
	/* The mapping keeps it. */
	check_ok(cuMemRelease(handle));
	check_ok(cuPointerGetAttribute(
		&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address));
	check_eq(types, FD);
	check_eq(word_at(address), 41);
	check_eq(word_at(address + unit - 4), 41);
	check_ok(cuMemsetD32(address, 42, unit / 4));
	check_ok(cuCtxSynchronize());
	tell();
	finish(pid);
	unmap(address);
}

/* Shares memory, twice, and ends without giving anything back. */
static void share_and_end(void)
{
	CUmemGenericAllocationHandle handle;

	begin();
	handle = create();
	check_ok(cuMemsetD32(map(handle), 7, unit / 4));
	check_ok(cuCtxSynchronize());
	send_fd(export(handle));
	send_fd(export(handle));
	hear();
}

TEST(an_import_outlives_the_process_that_shared_it)
{
	pid_t pid = start(share_and_end);
	CUmemGenericAllocationHandle handle, other;
	CUdeviceptr address;
	int first, second;

	begin();
	first = receive_fd();
	second = receive_fd();
	check_ok(import(first, &handle));
	address = map(handle);
	tell();
	finish(pid);
	/* Its worker may take a moment to end. */
	for (int i = 0; i < 1000 && !import(second, &other); i++) {
		check_ok(cuMemRelease(other));
		usleep(10000);
	}
	check_cu(import(second, &other), CUDA_ERROR_INVALID_VALUE);
	check_eq(word_at(address + unit - 4), 7);
	check_ok(cuMemsetD32(address, 8, 1));
	check_eq(word_at(address), 8);
	unmap(address);
	check_ok(cuMemRelease(handle));
}

TEST(a_process_may_import_its_own_memory)
{
	CUmemGenericAllocationHandle handle, same;
	CUdeviceptr first, second;
	int fd;

	begin();
	handle = create();
	fd = export(handle);
	check_ok(import(fd, &same));
	first = map(handle);
	second = map(same);
	check(first != second);
	check_ok(cuMemsetD32(first, 5, unit / 4));
	check_eq(word_at(second + unit - 4), 5);
	unmap(first);
	check_ok(cuMemRelease(handle));
	/* The memory is there as long as it is in use; but whoever shared it is not. */
	check_eq(word_at(second), 5);
	check_cu(import(fd, &handle), CUDA_ERROR_INVALID_VALUE);
	unmap(second);
	check_ok(cuMemRelease(same));
	close(fd);
}

TEST(only_what_was_made_for_it_is_exported)
{
	CUmemAllocationProp prop = exportable;
	CUmemGenericAllocationHandle handle;
	int fd = -1;

	begin();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	check_ok(cuMemCreate(&handle, unit, &prop, 0));
	check_cu(cuMemExportToShareableHandle(&fd, handle, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemRelease(handle));
	check_cu(cuMemExportToShareableHandle(&fd, handle, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	handle = create();
	check_cu(cuMemExportToShareableHandle(NULL, handle, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemExportToShareableHandle(&fd, handle, FD, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_WIN32, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(fd, -1);
	check_ok(cuMemRelease(handle));
}

TEST(only_exported_memory_is_imported)
{
	CUmemGenericAllocationHandle handle = 1;
	char junk[4096] = "vGPUtokn";
	int fd, copy;

	begin();
	check_cu(import(-1, &handle), CUDA_ERROR_INVALID_VALUE);
	check_cu(import(0, &handle), CUDA_ERROR_INVALID_VALUE);
	copy = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check(copy >= 0);
	check_cu(import(copy, &handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(write(copy, junk, sizeof(junk)), (ssize_t)sizeof(junk));
	check_cu(import(copy, &handle), CUDA_ERROR_INVALID_VALUE);
	/* One bit of a real one is wrong: at the end of the file is what is secret. */
	fd = export(create());
	check(pread(fd, junk, sizeof(junk), 0) > 0);
	junk[lseek(fd, 0, SEEK_END) - 1] ^= 1;
	check_eq(pwrite(copy, junk, sizeof(junk), 0), (ssize_t)sizeof(junk));
	check_cu(import(copy, &handle), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemImportFromShareableHandle(NULL, (void *)(intptr_t)fd, FD),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemImportFromShareableHandle(
			 &handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_WIN32),
		CUDA_ERROR_NOT_SUPPORTED);
	check_eq(handle, 1);
	check_ok(import(fd, &handle));
	check_ok(cuMemRelease(handle));
	close(copy);
	close(fd);
}

TEST(each_of_many_pieces_of_memory_is_shared_by_itself)
{
	CUmemGenericAllocationHandle handles[40], import_of;
	CUdeviceptr address;
	int fds[40];

	begin();
	for (int i = 0; i < 40; i++) {
		handles[i] = create();
		fds[i] = export(handles[i]);
		address = map(handles[i]);
		check_ok(cuMemsetD32(address, 100 + i, 1));
		unmap(address);
	}
	for (int i = 39; i >= 0; i--) {
		check_ok(import(fds[i], &import_of));
		address = map(import_of);
		check_eq(word_at(address), 100u + i);
		unmap(address);
		check_ok(cuMemRelease(import_of));
		check_ok(cuMemRelease(handles[i]));
		close(fds[i]);
	}
}

/*
 * Pools
 */

#define BYTES (1u << 20)

static CUmemoryPool create_pool(void)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = FD,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	CUmemoryPool pool = NULL;
	int types = 0;

	begin();
	check_ok(cuDeviceGetAttribute(
		&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
	if (!(types & FD))
		test_skip("the device has no pools that can be exported");
	check_ok(cuMemPoolCreate(&pool, &props));
	return pool;
}

static int export_pool(CUmemoryPool pool)
{
	int fd = -1;

	check_ok(cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	check(fd >= 0);
	return fd;
}

static CUmemoryPool import_pool(int fd)
{
	CUmemoryPool pool = NULL;

	check_ok(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
	close(fd);
	return pool;
}

static CUdeviceptr alloc_from(CUmemoryPool pool, unsigned int value)
{
	CUdeviceptr address = 0;

	check_ok(cuMemAllocFromPoolAsync(&address, BYTES, pool, NULL));
	check_ok(cuMemsetD32Async(address, value, BYTES / 4, NULL));
	check_ok(cuStreamSynchronize(NULL));
	return address;
}

static void send_address(CUdeviceptr address)
{
	CUmemPoolPtrExportData data;

	check_ok(cuMemPoolExportPointer(&data, address));
	check_eq(write(line, &data, sizeof(data)), (ssize_t)sizeof(data));
}

static CUmemPoolPtrExportData receive_address(void)
{
	CUmemPoolPtrExportData data;

	check_eq(recv(line, &data, sizeof(data), MSG_WAITALL), (ssize_t)sizeof(data));
	return data;
}

/* Shares two allocations, and finds the second changed when it is told. */
static void share_pool_and_check(void)
{
	CUmemoryPool pool = create_pool();
	CUdeviceptr first, second;

	send_fd(export_pool(pool));
	first = alloc_from(pool, 10);
	second = alloc_from(pool, 20);
	send_address(first);
	send_address(second);
	hear();
	check_eq(word_at(first), 10);
	check_eq(word_at(second + BYTES - 4), 21);
	check_ok(cuMemFreeAsync(first, NULL));
	check_ok(cuMemFree(second));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(allocations_of_a_pool_are_shared)
{
	pid_t pid = start(share_pool_and_check);
	CUdeviceptr first = 0, second = 0, again, base;
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pool, other;
	size_t size;

	begin();
	pool = import_pool(receive_fd());
	data[0] = receive_address();
	data[1] = receive_address();
	check_ok(cuMemPoolImportPointer(&first, pool, &data[0]));
	check_ok(cuMemPoolImportPointer(&second, pool, &data[1]));
	check(first != second);
	check_eq(word_at(first + BYTES - 4), 10);
	check_eq(word_at(second), 20);
	check_ok(cuMemGetAddressRange(&base, &size, second + 100));
	check_eq(base, second);
	check_eq(size, BYTES);
	check_ok(cuPointerGetAttribute(
		&other, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, second));
	check_eq(other, pool);
	check_cu(
		cuMemPoolImportPointer(&again, pool, &data[0]), CUDA_ERROR_INVALID_VALUE);
	/* Memory of an imported pool comes from its owner only. */
	check_cu(cuMemAllocFromPoolAsync(&again, BYTES, pool, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemPoolExportPointer(&data[0], first), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemsetD32(second, 21, BYTES / 4));
	check_ok(cuMemFreeAsync(first, NULL));
	check_ok(cuCtxSynchronize());
	/* The other is there still, and the first may come again. */
	data[0].reserved[0] ^= 1;
	check_cu(
		cuMemPoolImportPointer(&first, pool, &data[0]), CUDA_ERROR_INVALID_VALUE);
	check_eq(word_at(second), 21);
	tell();
	finish(pid);
	check_ok(cuMemFree(second));
	check_cu(cuMemFree(second), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_pool_is_imported_again_after_all_was_freed)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, import_of;
	CUdeviceptr address, seen;

	pool = create_pool();
	import_of = import_pool(export_pool(pool));
	address = alloc_from(pool, 1);
	check_ok(cuMemPoolExportPointer(&data, address));
	for (int i = 0; i < 3; i++) {
		check_ok(cuMemPoolImportPointer(&seen, import_of, &data));
		check_eq(word_at(seen), 1 + i);
		check_ok(cuMemsetD32(seen, 2 + i, 1));
		check_ok(cuMemFreeAsync(seen, NULL));
		check_ok(cuCtxSynchronize());
	}
	check_eq(word_at(address), 4);
	/* An allocation that is freed cannot be exported. */
	check_ok(cuMemFree(address));
	check_cu(cuMemPoolExportPointer(&data, address), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemPoolDestroy(import_of));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(data_of_an_allocation_that_is_wrong_is_refused)
{
	CUmemPoolPtrExportData data, wrong;
	CUmemoryPool pool, import_of;
	CUdeviceptr seen;
	int n_right = 0;

	pool = create_pool();
	import_of = import_pool(export_pool(pool));
	check_ok(cuMemPoolExportPointer(&data, alloc_from(pool, 1)));
	for (size_t i = 0; i < 8 * sizeof(data); i++) {
		CUresult result;

		wrong = data;
		wrong.reserved[i / 8] ^= 1u << i % 8;
		result = cuMemPoolImportPointer(&seen, import_of, &wrong);
		if (result == CUDA_SUCCESS) {
			n_right++;
			check_ok(cuMemFree(seen));
		} else if (result != CUDA_ERROR_OUT_OF_MEMORY) {
			/* A size may be more than there are addresses. */
			check_cu(result, CUDA_ERROR_INVALID_VALUE);
		}
	}
	/* Bits of a size, and some that have no meaning; none of the names. */
	check(n_right < 8 * (64 - 40));
	check_cu(cuMemPoolImportPointer(&seen, pool, &data), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemPoolImportPointer(&seen, import_of, &data));
}

TEST(only_a_pool_that_was_made_for_it_is_exported)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, other;
	CUdeviceptr address;
	int fd = -1;

	pool = create_pool();
	check_ok(cuDeviceGetDefaultMemPool(&other, 0));
	check_cu(cuMemPoolExportToShareableHandle(&fd, other, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemAllocAsync(&address, BYTES, NULL));
	check_cu(cuMemPoolExportPointer(&data, address), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFree(address));
	check_cu(cuMemPoolExportToShareableHandle(NULL, pool, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemPoolExportToShareableHandle(&fd, pool, FD, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemPoolExportPointer(NULL, alloc_from(pool, 1)),
		CUDA_ERROR_INVALID_VALUE);
	fd = export(create());
	check_cu(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
	close(fd);
	check_cu(cuMemPoolImportFromShareableHandle(NULL, NULL, FD, 0),
		CUDA_ERROR_INVALID_VALUE);
}
