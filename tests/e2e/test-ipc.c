/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory that one process allocates and another opens
 */

#include "pair.h"

#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
#define BYTES (3u << 20)

static CUdeviceptr memory_new(size_t size, unsigned int value)
{
	CUdeviceptr memory = 0;

	check_ok(cuMemAlloc(&memory, size));
	check_ok(cuMemsetD32(memory, value, size / 4));
	return memory;
}

static CUipcMemHandle handle_of(CUdeviceptr memory)
{
	CUipcMemHandle handle;

	memset(&handle, 0xaa, sizeof(handle));
	check_ok(cuIpcGetMemHandle(&handle, memory));
	return handle;
}

static void send_memory(CUdeviceptr memory)
{
	CUipcMemHandle handle;

	check_ok(cuCtxSynchronize());
	handle = handle_of(memory);
	send_bytes(&handle, sizeof(handle));
}

static CUipcMemHandle receive_handle(void)
{
	CUipcMemHandle handle;

	receive_bytes(&handle, sizeof(handle));
	return handle;
}

static CUdeviceptr open_handle(CUipcMemHandle handle)
{
	CUdeviceptr memory = 0;

	check_ok(cuIpcOpenMemHandle(&memory, handle, LAZY));
	check(memory);
	return memory;
}

/* Skips where device memory cannot be exported. */
static struct fixture begin(void)
{
	struct fixture fixture = fixture_new();
	int is_capable = 0;
	CUdeviceptr memory = memory_new(64, 0);

	check_ok(cuPointerGetAttribute(
		&is_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory));
	if (!is_capable)
		test_skip("the device has no memory for other processes");
	check_ok(cuMemFree(memory));
	return fixture;
}

/* Large and small memory with its number in it; all of it is one more in the end. */
static void allocate_and_check(void)
{
	CUdeviceptr large, small, other;

	begin();
	small = memory_new(4096, 10);
	large = memory_new(BYTES, 20);
	other = memory_new(256, 30);
	send_memory(small);
	send_memory(large);
	send_memory(other);
	/* What is written after the handles were made is there, too. */
	check_ok(cuMemsetD32(large + 4096, 21, 1));
	check_ok(cuCtxSynchronize());
	tell();
	hear();
	check_eq(device_word(small), 11);
	check_eq(device_word(small + 4092), 11);
	check_eq(device_word(large), 22);
	check_eq(device_word(large + BYTES - 4), 22);
	check_eq(device_word(other), 31);
	/* Handles of the same memory are alike. */
	send_memory(large);
	hear();
	check_ok(cuMemFree(large));
	check_ok(cuMemFree(small));
	check_ok(cuMemFree(other));
}

TEST(what_one_process_allocates_the_other_opens)
{
	pid_t pid = start(allocate_and_check);
	struct fixture fixture = begin();
	CUfunction step = fixture_function(&fixture, "step");
	CUipcMemHandle handle, again;
	CUdeviceptr small, large, other, twice;
	CUstream stream;

	small = open_handle(receive_handle());
	handle = receive_handle();
	large = open_handle(handle);
	other = open_handle(receive_handle());
	hear();
	check_eq(device_word(small), 10);
	check_eq(device_word(small + 4092), 10);
	check_eq(device_word(large + BYTES - 4), 20);
	check_eq(device_word(large + 4096), 21);
	check_eq(device_word(other), 30);
	check_ok(cuMemsetD32(small, 11, 1024));
	check_ok(cuMemsetD32(large, 22, BYTES / 4));
	/* Kernels write it as well: 3 * 10 + 1. */
	check_ok(cuMemsetD32(other, 10, 1));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuCtxSynchronize());
	check_ok(launch_step(step, other, 1, stream));
	check_ok(cuCtxSynchronize());
	tell();
	again = receive_handle();
	check(!memcmp(&handle, &again, sizeof(handle)));
	/* The same memory has one address, until it was closed as often. */
	twice = open_handle(again);
	check(twice == large);
	check_ok(cuIpcCloseMemHandle(twice));
	check_eq(device_word(large), 22);
	check_ok(cuIpcCloseMemHandle(large));
	check_cu(cuIpcCloseMemHandle(large), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoH(&handle, large, 4), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuIpcCloseMemHandle(small));
	tell();
	finish(pid);
	/* The other process has ended. */
	check_eq(device_word(other), 31);
	check_ok(cuIpcCloseMemHandle(other));
}

static void allocate_and_end(void)
{
	CUdeviceptr freed;

	begin();
	send_memory(memory_new(BYTES, 7));
	freed = memory_new(BYTES, 8);
	send_memory(freed);
	check_ok(cuMemFree(freed));
	tell();
	hear();
}

TEST(a_process_that_ended_exports_no_more)
{
	pid_t pid = start(allocate_and_end);
	CUipcMemHandle handle, freed;
	CUdeviceptr memory, other = 0;

	begin();
	handle = receive_handle();
	memory = open_handle(handle);
	freed = receive_handle();
	hear();
	check_cu(cuIpcOpenMemHandle(&other, freed, LAZY), CUDA_ERROR_INVALID_VALUE);
	tell();
	finish(pid);
	check_eq(device_word(memory + BYTES - 4), 7);
	check_ok(cuIpcCloseMemHandle(memory));
	/* Its worker may take a moment to end. */
	for (int i = 0; i < 1000 && !cuIpcOpenMemHandle(&other, handle, LAZY); i++) {
		check_ok(cuIpcCloseMemHandle(other));
		usleep(10000);
	}
	check_cu(cuIpcOpenMemHandle(&other, handle, LAZY), CUDA_ERROR_INVALID_VALUE);
}

/* Kernels that write the memory while it is exported lose no write. */
TEST(memory_in_use_is_exported)
{
	struct fixture fixture = begin();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr memory[16];
	unsigned int expected = 0;
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 20000; i++)
		expected = 3 * expected + 1;
	for (int i = 0; i < 16; i++) {
		memory[i] = memory_new(i % 2 ? 64 : BYTES, 0);
		check_ok(cuCtxSynchronize());
		check_ok(launch_step(step, memory[i], 20000, stream));
		handle_of(memory[i]);
	}
	check_ok(cuStreamSynchronize(stream));
	for (int i = 0; i < 16; i++)
		check_eq(device_word(memory[i]), expected);
	for (int i = 0; i < 16; i++)
		check_ok(cuMemFree(memory[i]));
	/* The place of what was exported is used again, and is nobody else's. */
	for (int i = 0; i < 16; i++) {
		memory[i] = memory_new(i % 2 ? 64 : BYTES, i);
		check_eq(device_word(memory[i]), i);
		handle_of(memory[i]);
	}
}

TEST(only_device_memory_of_others_is_opened)
{
	struct fixture fixture = begin();
	CUipcMemHandle handle, forged;
	CUdeviceptr memory = memory_new(64, 1), managed, other = 0;
	int n_refused = 0;
	void *pinned;

	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuMemHostAlloc(&pinned, 64, 0));
	check_ok(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
	check_cu(cuIpcGetMemHandle(NULL, memory), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcGetMemHandle(&handle, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)pinned),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
	handle = handle_of(memory);
	/* A process does not open its own memory. */
	check_cu(cuIpcOpenMemHandle(&other, handle, LAZY), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuIpcOpenMemHandle(NULL, handle, LAZY), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcOpenMemHandle(&other, handle, 0), CUDA_ERROR_INVALID_VALUE);
	/* A token is 16 bytes; what else is in a handle is not secret. */
	for (size_t i = 0; i < sizeof(handle); i++) {
		forged = handle;
		forged.reserved[i] ^= 0x40;
		if (cuIpcOpenMemHandle(&other, forged, LAZY) == CUDA_SUCCESS)
			check_ok(cuIpcCloseMemHandle(other));
		else
			n_refused++;
	}
	check(n_refused >= 16);
	other = 0;
	memset(&forged, 0, sizeof(forged));
	check_cu(cuIpcOpenMemHandle(&other, forged, LAZY), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcCloseMemHandle(0), CUDA_ERROR_INVALID_VALUE);
	check(!other);
	check_ok(cuMemFree(memory));
	check_cu(cuIpcGetMemHandle(&handle, memory), CUDA_ERROR_INVALID_VALUE);
}
