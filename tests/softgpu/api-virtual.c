/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: virtual memory, as far as guests do not have it
 *
 * tests/e2e/test-virtual.c runs on softgpu natively, too.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"
#include "control/packet.h"

/* The file of memory stays open. */
const bool test_keeps_descriptors = true;

static size_t unit;

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
};

static const CUmemAccessDesc full_access = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static void begin(void)
{
	context_new();
	check_ok(cuMemGetAllocationGranularity(
		&unit, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	check(unit > 0 && !(unit & (unit - 1)));
}

static CUdeviceptr reserve(size_t n_units)
{
	CUdeviceptr address;

	check_ok(cuMemAddressReserve(&address, n_units * unit, 0, 0, 0));
	return address;
}

static CUmemGenericAllocationHandle create(size_t n_units)
{
	CUmemGenericAllocationHandle handle;

	check_ok(cuMemCreate(&handle, n_units * unit, &on_device, 0));
	return handle;
}

/* Reserved addresses with memory that only the mapping keeps. */
static CUdeviceptr mapped(size_t n_units)
{
	CUmemGenericAllocationHandle handle = create(n_units);
	CUdeviceptr address = reserve(n_units);

	check_ok(cuMemMap(address, n_units * unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, n_units * unit, &full_access, 1));
	check_ok(cuMemRelease(handle));
	return address;
}

static size_t free_memory(void)
{
	size_t free, total;

	check_ok(cuMemGetInfo(&free, &total));
	return free;
}

TEST(addresses_without_memory_or_access_are_refused_to_copies)
{
	CUmemAccessDesc desc = full_access;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	int word = 7;

	begin();
	address = reserve(1);
	check_cu(cuMemcpyHtoD(address, &word, 4), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpy(address, (uintptr_t)&word, 4), CUDA_ERROR_INVALID_VALUE);
	handle = create(1);
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	check_cu(cuMemcpyHtoD(address, &word, 4), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemsetD32(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	check_ok(cuMemSetAccess(address, unit, &desc, 1));
	check_cu(cuMemcpyHtoD(address, &word, 4), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemcpyDtoH(&word, address, 4));
	check_eq(word, 0);
	check_ok(cuMemUnmap(address, unit));
	check_cu(cuMemcpyDtoH(&word, address, 4), CUDA_ERROR_INVALID_VALUE);
}

/* llama.cpp reserves 32 GiB for each of its pools. */
TEST(far_more_addresses_than_memory_can_be_reserved)
{
	const size_t size = 32ull << 30;
	CUdeviceptr addresses[2];
	int word = 0;

	begin();
	for (int i = 0; i < 2; i++) {
		const CUdeviceptr last = size - unit;
		CUmemGenericAllocationHandle handle = create(1);

		check_ok(cuMemAddressReserve(&addresses[i], size, 0, 0, 0));
		check_ok(cuMemMap(addresses[i] + last, unit, 0, handle, 0));
		check_ok(cuMemRelease(handle));
		check_ok(cuMemSetAccess(addresses[i] + last, unit, &full_access, 1));
		check_ok(cuMemsetD32(addresses[i] + last, 7, unit / 4));
		check_ok(cuMemcpyDtoH(&word, addresses[i] + size - 4, 4));
		check_eq(word, 7);
	}
	for (int i = 0; i < 2; i++) {
		check_ok(cuMemUnmap(addresses[i] + size - unit, unit));
		check_ok(cuMemAddressFree(addresses[i], size));
	}
}

TEST(a_kernel_without_access_faults)
{
	CUmemAccessDesc desc = full_access;
	CUdeviceptr address;

	begin();
	address = mapped(1);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	check_ok(cuMemSetAccess(address, unit, &desc, 1));
	check_ok(launch_store(address, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(properties_are_those_of_the_creation)
{
	CUmemAllocationProp prop = on_device, got;
	CUmemGenericAllocationHandle handle;

	begin();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.allocFlags.compressionType = 1;
	check_ok(cuMemCreate(&handle, unit, &prop, 0));
	check_ok(cuMemGetAllocationPropertiesFromHandle(&got, handle));
	check_eq(got.type, CU_MEM_ALLOCATION_TYPE_PINNED);
	check_eq(got.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	check_eq(got.location.id, 0);
	check_eq(got.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	/* There is no compression: programs find that out here. */
	check_eq(got.allocFlags.compressionType, 0);
	check_ok(cuMemRelease(handle));
}

TEST(memory_on_the_host_is_the_programs_and_the_devices)
{
	CUmemAllocationProp prop = on_device;
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc descs[2] = { full_access, full_access };
	unsigned long long flags;
	CUdeviceptr address;
	unsigned int *host;
	size_t before;

	begin();
	before = free_memory();
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	check_ok(cuMemCreate(&handle, unit, &prop, 0));
	check_eq(free_memory(), before);
	address = reserve(1);
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	descs[1].location.type = CU_MEM_LOCATION_TYPE_HOST;
	check_ok(cuMemSetAccess(address, unit, descs, 2));
	check_ok(cuMemGetAccess(&flags, &prop.location, address));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	host = (unsigned int *)(uintptr_t)address;
	host[1] = 1;
	check_ok(launch_store(address, 99, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(host[0], 99);
	check_eq(device_word(address + 4), 1);
	check_ok(cuMemRelease(handle));
}

static const CUmemAllocationProp shareable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
};

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static CUresult import(int fd, CUmemGenericAllocationHandle *handle)
{
	return cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd, POSIX);
}

static int receive_descriptor(int from)
{
	size_t size, n_fds;
	bool is_cut;
	char byte;
	int fd;

	check_eq(packet_receive(from, &byte, 1, &size, &fd, 1, &n_fds, &is_cut), 0);
	check_eq(n_fds, 1);
	return fd;
}

/* What another process does with a descriptor that was sent to it. */
static void import_and_add(int from)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	int fd = receive_descriptor(from);

	begin();
	check_ok(import(fd, &handle));
	close(fd);
	address = reserve(1);
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, unit, &full_access, 1));
	check_ok(launch_store(address + 4, device_word(address) + 1, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemRelease(handle));
}

TEST(memory_is_shared_with_another_process)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	int pair[2], fd, status;
	pid_t child;

	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	/* Before the library is in use: it does not survive a fork. */
	child = fork();
	if (!child) {
		import_and_add(pair[1]);
		_exit(0);
	}
	begin();
	check_ok(cuMemCreate(&handle, unit, &shareable, 0));
	address = reserve(1);
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, unit, &full_access, 1));
	check_ok(cuMemsetD32(address, 41, 1));
	check_ok(cuMemExportToShareableHandle(&fd, handle, POSIX, 0));
	check_eq(packet_send(pair[0], "x", 1, &fd, 1), 0);
	close(fd);
	check_eq(waitpid(child, &status, 0), child);
	check_eq(status, 0);
	check_eq(device_word(address + 4), 42);
	close(pair[0]);
	close(pair[1]);
}

TEST(imported_memory_counts_once_and_outlives_its_exporter)
{
	CUmemGenericAllocationHandle handle, imported;
	CUmemAllocationProp prop;
	CUdeviceptr address;
	size_t before;
	int fd;

	begin();
	before = free_memory();
	address = reserve(2);
	check_ok(cuMemCreate(&handle, unit, &shareable, 0));
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	check_ok(cuMemSetAccess(address, unit, &full_access, 1));
	check_ok(cuMemsetD32(address, 5, 1));
	check_ok(cuMemExportToShareableHandle(&fd, handle, POSIX, 0));
	check_ok(import(fd, &imported));
	check(imported != handle);
	check_eq(free_memory(), before - unit);
	check_ok(cuMemGetAllocationPropertiesFromHandle(&prop, imported));
	check_eq(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	check_eq(prop.requestedHandleTypes, POSIX);
	check_ok(cuMemUnmap(address, unit));
	check_ok(cuMemRelease(handle));
	check_ok(cuMemMap(address + unit, unit, 0, imported, 0));
	check_ok(cuMemSetAccess(address + unit, unit, &full_access, 1));
	check_eq(device_word(address + unit), 5);
	check_ok(cuMemRelease(imported));
	check_ok(cuMemUnmap(address + unit, unit));
	check_eq(free_memory(), before);
	close(fd);
}

TEST(descriptors_that_are_no_memory_are_refused)
{
	CUmemGenericAllocationHandle handle, plain;
	int fd, pipe_fds[2];
	char *label;

	begin();
	check_cu(import(-1, &handle), CUDA_ERROR_INVALID_VALUE);
	check_cu(import(9999, &handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(pipe(pipe_fds), 0);
	check_cu(import(pipe_fds[0], &handle), CUDA_ERROR_INVALID_VALUE);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	/* It could shrink. */
	fd = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check_eq(ftruncate(fd, (off_t)unit + 4096), 0);
	check_cu(import(fd, &handle), CUDA_ERROR_INVALID_VALUE);
	/* It has no label. */
	check_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	check_cu(import(fd, &handle), CUDA_ERROR_INVALID_VALUE);
	close(fd);

	check_ok(cuMemCreate(&handle, unit, &shareable, 0));
	check_ok(cuMemExportToShareableHandle(&fd, handle, POSIX, 0));
	/* A device that does not exist. */
	label = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)unit);
	check(label != MAP_FAILED);
	label[16] = 99;
	check_cu(import(fd, &handle), CUDA_ERROR_INVALID_VALUE);
	label[16] = 0;
	check_ok(import(fd, &handle));
	munmap(label, 4096);
	close(fd);

	plain = create(1);
	check_cu(cuMemExportToShareableHandle(&fd, plain, POSIX, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemExportToShareableHandle(&fd, handle, POSIX, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemExportToShareableHandle(NULL, handle, POSIX, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemImportFromShareableHandle(&handle, NULL, CU_MEM_HANDLE_TYPE_FABRIC),
		CUDA_ERROR_NOT_SUPPORTED);
}

TEST(what_softgpu_has_not_is_refused)
{
	CUmemAllocationProp prop = on_device;
	CUmemAccessDesc desc = full_access;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;

	begin();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	prop = on_device;
	prop.allocFlags.usage = 1;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	prop = on_device;
	prop.location.type = CU_MEM_LOCATION_TYPE_INVALID;
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST_NUMA, 1 };
	check_cu(cuMemCreate(&handle, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);

	address = reserve(2);
	handle = create(2);
	check_cu(cuMemMap(address, unit, unit, handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemMap(address, unit, 0, handle, 0));
	/* Memory of a device is not the program's. */
	desc.location.type = CU_MEM_LOCATION_TYPE_HOST;
	check_cu(cuMemSetAccess(address, unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
}

/* Threads create, map, look up and release the same few addresses. */
static CUdeviceptr contended;

static void *contend(void *context)
{
	CUmemGenericAllocationHandle handle, retained;

	check_ok(cuCtxSetCurrent(context));
	for (int i = 0; i < 300; i++) {
		CUdeviceptr at = contended + (i % 3) * unit;

		check_ok(cuMemCreate(&handle, unit, &on_device, 0));
		if (!cuMemMap(at, unit, 0, handle, 0)) {
			check_ok(cuMemSetAccess(at, unit, &full_access, 1));
			check_ok(cuMemsetD32(at, 1, 16));
		}
		if (!cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)at))
			check_ok(cuMemRelease(retained));
		check_ok(cuMemRelease(handle));
		cuMemUnmap(at, unit);
	}
	return NULL;
}

TEST(threads_may_unmap_what_others_look_up)
{
	pthread_t thread;
	CUcontext context;
	size_t before;

	begin();
	check_ok(cuCtxGetCurrent(&context));
	contended = reserve(3);
	before = free_memory();
	check_eq(pthread_create(&thread, NULL, contend, context), 0);
	for (int i = 0; i < 2000; i++) {
		CUmemGenericAllocationHandle handle;
		CUdeviceptr at = contended + (i % 3) * unit;

		if (!cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)at))
			check_ok(cuMemRelease(handle));
	}
	pthread_join(thread, NULL);
	check_eq(free_memory(), before);
}
