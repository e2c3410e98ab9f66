/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: streams and events
 */

#include <pthread.h>

#include "api.h"

TEST(kernels_and_copies_of_a_stream_run_in_order)
{
	unsigned int *out;
	CUdeviceptr address;
	CUstream stream;

	context_new();
	out = pinned_memory(1000 * sizeof(*out));
	address = device_memory(4);
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned int i = 0; i < 1000; i++) {
		check_ok(launch_store(address, i, stream));
		check_ok(cuMemcpyDtoHAsync(&out[i], address, 4, stream));
	}
	check_ok(cuStreamSynchronize(stream));
	for (unsigned int i = 0; i < 1000; i++)
		check_eq(out[i], i);
	check_ok(cuStreamDestroy(stream));
}

TEST(the_legacy_stream_waits_for_blocking_streams_alone)
{
	volatile unsigned int *word, *done;
	CUstream blocking, apart;
	CUdeviceptr counter;

	context_new();
	word = pinned_memory(4096);
	done = word + 1;
	counter = device_memory(4);
	check_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	check_ok(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
	check_ok(launch_gate(word, counter, blocking));
	check_ok(launch_store((uintptr_t)done, 1, NULL));
	check_ok(launch_store((uintptr_t)(done + 1), 1, apart));
	check_ok(cuStreamSynchronize(apart));
	check_eq(done[1], 1);
	check_eq(done[0], 0);
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	check_cu(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	check_ok(cuStreamQuery(apart));
	open_gate(word);
	check_ok(cuStreamSynchronize(CU_STREAM_LEGACY));
	check_eq(done[0], 1);
	check_ok(cuStreamQuery(NULL));
	check_eq(device_word(counter), 1);
}

static void *use_own_stream(void *done)
{
	CUcontext context;
	CUstream stream = CU_STREAM_PER_THREAD;

	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		launch_store((uintptr_t)done, 1, stream) || cuStreamSynchronize(stream))
		return "a call failed";
	return NULL;
}

TEST(each_thread_has_a_default_stream_of_its_own)
{
	unsigned long long mine, legacy;
	volatile unsigned int *word;
	pthread_t thread;
	void *failure;

	context_new();
	word = pinned_memory(4096);
	check_ok(launch_gate(word, device_memory(4), CU_STREAM_PER_THREAD));
	check_ok(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
	check_ok(cuStreamGetId(NULL, &legacy));
	check(mine != legacy);
	check_eq(pthread_create(&thread, NULL, use_own_stream, (void *)(word + 1)), 0);
	check_eq(pthread_join(thread, &failure), 0);
	check(!failure);
	check_eq(word[1], 1);
	check_cu(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST(an_event_orders_streams_and_tells_time)
{
	volatile unsigned int *word;
	CUevent start, event, other;
	CUstream one, two;
	float time = -1;

	context_new();
	word = pinned_memory(4096);
	check_ok(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&start, CU_EVENT_DEFAULT));
	check_ok(cuEventCreate(&event, CU_EVENT_DEFAULT));
	check_ok(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventQuery(event));
	check_ok(cuStreamWaitEvent(two, event, 0));
	check_cu(cuEventElapsedTime(&time, start, event), CUDA_ERROR_INVALID_HANDLE);

	check_ok(cuEventRecord(start, one));
	check_ok(launch_gate(word, device_memory(4), one));
	check_ok(cuEventRecord(event, one));
	check_ok(cuStreamWaitEvent(two, event, 0));
	check_ok(launch_store((uintptr_t)(word + 1), 1, two));
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	check_cu(cuEventElapsedTime(&time, start, event), CUDA_ERROR_NOT_READY);
	check_eq(word[1], 0);
	open_gate(word);
	check_ok(cuEventSynchronize(event));
	check_ok(cuStreamSynchronize(two));
	check_eq(word[1], 1);
	check_ok(cuEventElapsedTime(&time, start, event));
	check(time >= 0);
	check_ok(cuEventRecord(other, one));
	check_cu(cuEventElapsedTime(&time, start, other), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuEventDestroy(event));
	check_cu(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_destroyed_stream_still_does_its_work)
{
	volatile unsigned int *word;
	CUdeviceptr counter;
	CUstream stream;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(4);
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(launch_gate(word, counter, stream));
	check_ok(cuStreamDestroy(stream));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuStreamQuery((CUstream)0x123456789abc), CUDA_ERROR_INVALID_HANDLE);
	open_gate(word);
	check_ok(cuCtxSynchronize());
	check_eq(device_word(counter), 1);
}

TEST(a_stream_waits_for_a_word)
{
	volatile unsigned int *words;
	CUstream one, two;

	context_new();
	words = pinned_memory(4096);
	check_ok(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamWaitValue32(one, (uintptr_t)words, 3, CU_STREAM_WAIT_VALUE_GEQ));
	check_ok(cuStreamWriteValue32(one, (uintptr_t)(words + 1), 1, 0));
	check_ok(cuStreamWriteValue32(two, (uintptr_t)words, 2, 0));
	check_ok(cuStreamSynchronize(two));
	check_eq(words[0], 2);
	check_cu(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
	check_ok(cuStreamWriteValue32(two, (uintptr_t)words, 4, 0));
	check_ok(cuStreamSynchronize(one));
	check_eq(words[1], 1);
	check_cu(cuStreamWriteValue32(one, (uintptr_t)words + 2, 1, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamWriteValue64(one, 0x1000, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamWaitValue32(one, (uintptr_t)words, 1, 8),
		CUDA_ERROR_INVALID_VALUE);
}

static void CUDA_CB add_ten(void *number)
{
	*(unsigned int *)number += 10;
}

static void CUDA_CB add_status(CUstream stream, CUresult status, void *number)
{
	*(unsigned int *)number += status;
}

TEST(functions_of_the_program_are_called_in_order)
{
	unsigned int *words;

	context_new();
	words = pinned_memory(4096);
	check_ok(launch_store((uintptr_t)words, 5, NULL));
	check_ok(cuLaunchHostFunc(NULL, add_ten, words));
	check_ok(cuMemcpyDtoDAsync((uintptr_t)(words + 1), (uintptr_t)words, 4, NULL));
	check_ok(cuStreamAddCallback(NULL, add_status, words, 0));
	check_ok(cuCtxSynchronize());
	check_eq(words[1], 15);
	check_eq(words[0], 15);
}

TEST(thousands_of_operations_fit_by_waiting)
{
	CUdeviceptr counter;
	volatile unsigned int *word;

	context_new();
	word = pinned_memory(4096);
	counter = device_memory(4);
	open_gate(word);
	for (int i = 0; i < 5000; i++)
		check_ok(launch_gate(word, counter, NULL));
	check_eq(device_word(counter), 5000);
}
