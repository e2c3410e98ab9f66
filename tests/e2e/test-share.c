/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory that two processes share
 */

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

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

/*
 * The other process
 */

static int line = -1;

static void send_fd(int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	check_eq(sendmsg(line, &message, 0), 1);
	close(fd);
}

static int receive_fd(void)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	check_eq(recvmsg(line, &message, MSG_CMSG_CLOEXEC), 1);
	check(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void tell(void)
{
	check_eq(write(line, "", 1), 1);
}

static void hear(void)
{
	char byte;

	check_eq(read(line, &byte, 1), 1);
}

/* Starts the other process, before this one uses the library. */
static pid_t start(void (*run)(void))
{
	int ends[2];
	pid_t pid;

	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	check(pid >= 0);
	line = ends[!pid];
	close(ends[pid > 0]);
	if (!pid) {
		run();
		_exit(0);
	}
	return pid;
}

static void finish(pid_t pid)
{
	int status;

	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
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
