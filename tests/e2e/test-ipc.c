/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory that one process allocates and another opens, and events
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
	check_ok(CALL("cuIpcOpenMemHandle", 4010,
		(CUdeviceptr *, CUipcMemHandle, unsigned int), &twice, again, LAZY));
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

/*
 * Events
 */

#define SHARED (CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)

static CUevent event_new(void)
{
	CUevent event = NULL;

	check_ok(cuEventCreate(&event, SHARED));
	check(event);
	return event;
}

static void send_event(CUevent event)
{
	CUipcEventHandle handle;

	memset(&handle, 0xaa, sizeof(handle));
	check_ok(cuIpcGetEventHandle(&handle, event));
	send_bytes(&handle, sizeof(handle));
}

static CUevent receive_event(void)
{
	CUipcEventHandle handle;
	CUevent event = NULL;

	receive_bytes(&handle, sizeof(handle));
	check_ok(cuIpcOpenEventHandle(&event, handle));
	check(event);
	return event;
}

static CUstream stream_new(void)
{
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* Skips where there are no such events. */
static struct fixture begin_events(void)
{
	struct fixture fixture = begin();
	int is_supported = 0;

	check_ok(cuDeviceGetAttribute(
		&is_supported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
	if (!is_supported)
		test_skip("the device has no interprocess events");
	return fixture;
}

/* Writes memory behind a gate, and records an event for it, again and again. */
static void record_and_check(void)
{
	CUdeviceptr memory, gate;
	CUstream stream, other;
	CUevent event, back;
	void *word;

	begin_events();
	memory = memory_new(BYTES, 0);
	event = event_new();
	stream = stream_new();
	other = stream_new();
	check_ok(cuMemHostAlloc(&word, 4, 0));
	gate = (CUdeviceptr)(uintptr_t)word;
	*(volatile unsigned int *)word = 0;
	/* It is not recorded yet: that is complete. */
	check_ok(cuEventQuery(event));
	send_memory(memory);
	send_event(event);
	back = receive_event();
	for (unsigned int i = 1; i <= 150; i++) {
		check_ok(cuStreamWaitValue32(stream, gate, i, CU_STREAM_WAIT_VALUE_GEQ));
		check_ok(cuMemsetD32Async(memory, i, BYTES / 4, stream));
		check_ok(cuEventRecord(event, stream));
		check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
		tell();
		hear();
		__atomic_store_n((unsigned int *)word, i, __ATOMIC_RELEASE);
		/* The other process has read it when its own event is complete. */
		check_ok(cuEventSynchronize(back));
		check_ok(cuEventQuery(event));
	}
	/* Its record is waited for by streams here, too. */
	hear();
	check_ok(cuStreamWaitEvent(other, back, 0));
	check_ok(cuStreamSynchronize(other));
	check_eq(device_word(memory + 4), 1000);
	check_ok(cuEventDestroy(back));
	check_ok(cuEventDestroy(event));
	tell();
}

TEST(streams_of_one_process_wait_for_events_of_another)
{
	pid_t pid = start(record_and_check);
	struct fixture fixture = begin_events();
	CUdeviceptr memory, copy = memory_new(4, 0);
	CUevent event, back = event_new();
	CUstream stream = stream_new();

	check_ok(cuCtxSetCurrent(fixture.context));
	memory = open_handle(receive_handle());
	event = receive_event();
	check_ok(cuEventQuery(event));
	send_event(back);
	for (unsigned int i = 1; i <= 150; i++) {
		hear();
		check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
		check_ok(cuStreamWaitEvent(stream, event, 0));
		check_ok(cuMemcpyDtoDAsync(copy, memory + BYTES - 4, 4, stream));
		check_ok(cuEventRecord(back, stream));
		check_cu(cuEventQuery(back), CUDA_ERROR_NOT_READY);
		tell();
		check_ok(cuEventSynchronize(back));
		check_eq(device_word(copy), i);
	}
	check_ok(cuEventSynchronize(event));
	check_ok(cuMemsetD32Async(memory + 4, 1000, 1, stream));
	check_ok(cuEventRecordWithFlags(back, stream, 0));
	tell();
	hear();
	finish(pid);
	check_ok(cuEventDestroy(event));
	check_ok(cuEventDestroy(back));
	check_ok(cuIpcCloseMemHandle(memory));
}

/* More than there is room for at a time: places are used again. */
TEST(interprocess_events_come_and_go)
{
	CUstream stream;
	CUevent event;

	begin_events();
	stream = stream_new();
	for (int i = 0; i < 5000; i++) {
		event = event_new();
		if (i % 64 == 0) {
			check_ok(cuEventQuery(event));
			check_ok(cuEventRecord(event, stream));
			check_ok(cuEventSynchronize(event));
		}
		check_ok(cuEventDestroy(event));
	}
}

TEST(wrong_uses_of_interprocess_events_are_refused)
{
	struct fixture fixture = begin_events();
	CUevent event = event_new(), plain, other = NULL;
	CUipcEventHandle handle, forged = {};
	CUstream stream = stream_new();
	CUgraph graph;
	CUgraphNode node;
	float ms;

	check_ok(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	check_cu(cuEventCreate(&other, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcGetEventHandle(&handle, plain), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcGetEventHandle(NULL, event), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuIpcGetEventHandle(&handle, NULL), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuIpcOpenEventHandle(&other, forged), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuIpcGetEventHandle(&handle, event));
	check_cu(cuIpcOpenEventHandle(&other, handle), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuIpcOpenEventHandle(NULL, handle), CUDA_ERROR_INVALID_VALUE);
	check(!other);
	check_ok(cuEventRecord(event, stream));
	check(cuEventElapsedTime(&ms, event, event) != CUDA_SUCCESS);
	check_cu(cuCtxRecordEvent(fixture.context, event), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuCtxWaitEvent(fixture.context, event), CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuGraphCreate(&graph, 0));
	check_cu(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event),
		CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_cu(cuEventRecord(event, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_cu(cuStreamWaitEvent(stream, event, 0),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_ok(cuStreamEndCapture(stream, &graph));
	check_ok(cuEventDestroy(event));
	check_cu(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
}
