/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: streams and events
 */

#include <pthread.h>

#include "e2e.h"

TEST(work_of_a_stream_is_done_in_order)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int x = 1;
	CUstream stream;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32Async(p, 1, 1, stream));
	for (int i = 0; i < 3000; i++) {
		check_ok(launch_step(step, p, i % 3, stream));
		x = stepped(x, i % 3);
	}
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), x);
	check_ok(cuStreamDestroy(stream));
}

TEST(stream_tells_flags_priority_and_context)
{
	struct fixture fixture = fixture_new();
	unsigned long long id = 0, other_id = 0;
	unsigned int flags = 99;
	CUcontext context = NULL;
	CUstream stream, other;
	int priority = 99, least, greatest;

	check_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	check_ok(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
	check_ok(cuStreamCreate(&other, 0));
	check((uintptr_t)stream > 0xffff && stream != other);
	check_ok(cuStreamGetFlags(stream, &flags));
	check_eq(flags, CU_STREAM_NON_BLOCKING);
	check_ok(cuStreamGetFlags(other, &flags));
	check_eq(flags, 0);
	check_ok(cuStreamGetPriority(stream, &priority));
	check_eq(priority, greatest);
	check_ok(cuStreamGetCtx(stream, &context));
	check(context == fixture.context);
	check_ok(cuStreamGetId(stream, &id));
	check_ok(cuStreamGetId(other, &other_id));
	check(id != other_id);
	check_cu(cuStreamCreate(&stream, 0xff00), CUDA_ERROR_INVALID_VALUE);
}

TEST(destroyed_and_foreign_streams_are_refused)
{
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuStreamDestroy(stream));
	check(cuStreamSynchronize(stream) != CUDA_SUCCESS);
	check(cuStreamQuery(stream) != CUDA_SUCCESS);
	check(cuStreamSynchronize((CUstream)0x123456789abull) != CUDA_SUCCESS);
}

TEST(query_follows_the_work)
{
	struct fixture fixture = fixture_new();
	CUstream stream;
	CUdeviceptr p;
	CUresult r;

	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32(p, 1, 1));
	check_ok(cuStreamQuery(stream));
	check_ok(launch_step(fixture_function(&fixture, "step"), p, 1 << 20, stream));
	while ((r = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
		;
	check_ok(r);
	check_eq(device_word(p), stepped(1, 1 << 20));
}

TEST(event_orders_two_streams)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUstream first, second;
	unsigned int x = 1;
	CUevent event;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32Async(p, 1, 1, first));
	for (int i = 0; i < 50; i++) {
		CUstream a = i % 2 ? second : first, b = i % 2 ? first : second;

		check_ok(launch_step(step, p, 1000 + i, a));
		check_ok(cuEventRecord(event, a));
		check_ok(cuStreamWaitEvent(b, event, 0));
		x = stepped(x, 1000 + i);
	}
	check_ok(cuStreamSynchronize(first));
	check_ok(cuStreamSynchronize(second));
	check_eq(device_word(p), x);
	check_ok(cuEventDestroy(event));
}

TEST(legacy_stream_waits_for_blocking_streams)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUstream stream;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32(p, 1, 1));
	check_ok(launch_step(step, p, 200000, stream));
	check_ok(launch_step(step, p, 7, NULL));
	check_ok(launch_step(step, p, 100000, stream));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(p), stepped(1, 300007));
}

TEST(events_time_the_work_between_them)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	float first = -1, both = -1;
	CUevent a, b, c;
	CUdeviceptr p;

	check_ok(cuEventCreate(&a, 0));
	check_ok(cuEventCreate(&b, 0));
	check_ok(cuEventCreate(&c, CU_EVENT_BLOCKING_SYNC));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32(p, 1, 1));
	check_ok(cuEventRecord(a, NULL));
	check_ok(launch_step(step, p, 100000, NULL));
	check_ok(cuEventRecord(b, NULL));
	check_ok(launch_step(step, p, 100000, NULL));
	check_ok(cuEventRecord(c, NULL));
	check_ok(cuEventSynchronize(c));
	check_ok(cuEventQuery(a));
	check_ok(cuEventElapsedTime(&first, a, b));
	check_ok(cuEventElapsedTime(&both, a, c));
	check(first > 0 && both > first);
	check_eq(device_word(p), stepped(1, 200000));
}

TEST(events_not_recorded_are_complete_and_have_no_time)
{
	CUevent a, b;
	float time;

	fixture_new();
	check_ok(cuEventCreate(&a, 0));
	check_ok(cuEventCreate(&b, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventQuery(a));
	check_ok(cuEventSynchronize(a));
	check_cu(cuEventElapsedTime(&time, a, a), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuEventRecord(b, NULL));
	check_ok(cuEventRecord(a, NULL));
	check_ok(cuCtxSynchronize());
	check_cu(cuEventElapsedTime(&time, a, b), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuEventDestroy(a));
	check(cuEventQuery(a) != CUDA_SUCCESS);
}

TEST(device_writes_and_awaits_words_in_memory)
{
	unsigned int *flag;
	CUdeviceptr mapped, p;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemHostAlloc((void **)&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&mapped, flag, 0));
	check_ok(cuMemAlloc(&p, 8));
	*flag = 0;
	check_ok(cuMemsetD32(p, 0, 2));
	check_ok(cuStreamWaitValue32(stream, mapped, 3, CU_STREAM_WAIT_VALUE_GEQ));
	check_ok(cuStreamWriteValue32(stream, p, 17, 0));
	check_ok(cuStreamWriteValue64(stream, mapped + 8, 0x1122334455667788ull, 0));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	__atomic_store_n(flag, 3, __ATOMIC_SEQ_CST);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), 17);
	check_eq(flag[2], 0x55667788);
	check_eq(flag[3], 0x11223344);
}

struct worker {
	CUcontext context;
	CUfunction step;
	int rounds;
	bool own_stream;
};

static void *run_worker(void *argument)
{
	const struct worker *worker = argument;
	CUstream stream = CU_STREAM_PER_THREAD;
	unsigned int x = 1;
	CUdeviceptr p;

	check_ok(cuCtxSetCurrent(worker->context));
	if (worker->own_stream)
		check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32Async(p, 1, 1, stream));
	for (int i = 0; i < 200; i++) {
		check_ok(launch_step(worker->step, p, worker->rounds + i, stream));
		x = stepped(x, worker->rounds + i);
	}
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), x);
	check_ok(cuMemFree(p));
	return NULL;
}

static void run_workers(bool own_stream)
{
	struct fixture fixture = fixture_new();
	struct worker workers[8];
	pthread_t threads[8];

	for (int i = 0; i < 8; i++) {
		workers[i] = (struct worker){ fixture.context,
			fixture_function(&fixture, "step"), i, own_stream };
		check_eq(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

TEST(eight_threads_work_on_a_stream_each)
{
	run_workers(true);
}

TEST(eight_threads_work_on_their_per_thread_streams)
{
	run_workers(false);
}

TEST(event_recorded_with_flags_orders_and_completes)
{
	struct fixture fixture = fixture_new();
	CUstream stream;
	CUevent event;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, 0));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32Async(p, 1, 1, stream));
	check_ok(launch_step(fixture_function(&fixture, "step"), p, 1000, stream));
	check_ok(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT));
	check_ok(cuEventSynchronize(event));
	check_eq(device_word(p), stepped(1, 1000));
}

TEST(stream_awaits_a_long_word)
{
	unsigned long long *word;
	CUdeviceptr mapped, p;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&mapped, word, 0));
	check_ok(cuMemAlloc(&p, 4));
	*word = 0;
	check_ok(cuMemsetD32(p, 0, 1));
	check_ok(
		cuStreamWaitValue64(stream, mapped, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(cuMemsetD32Async(p, 5, 1, stream));
	check_eq(device_word(p), 0);
	__atomic_store_n(word, 1ull << 40, __ATOMIC_SEQ_CST);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), 5);
}

TEST(streams_know_their_device_and_that_nothing_is_captured)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	CUdevice device = -1;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuStreamGetDevice(stream, &device));
	check_eq(device, 0);
	check_ok(cuStreamIsCapturing(stream, &status));
	check_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST(wait_for_the_legacy_stream_covers_blocking_streams)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int *word;
	CUstream stream;
	CUresult r;

	check_ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	check_ok(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	*word = 1;
	check_ok(launch_step(step, (CUdeviceptr)(uintptr_t)word, 1, NULL));
	check_ok(cuStreamSynchronize(NULL));
	check_ok(launch_step(step, (CUdeviceptr)(uintptr_t)word, 300000, stream));
	check_ok(cuStreamSynchronize(NULL));
	check_eq(*word, stepped(1, 300001));
	check_ok(launch_step(step, (CUdeviceptr)(uintptr_t)word, 300000, stream));
	while ((r = cuStreamQuery(NULL)) == CUDA_ERROR_NOT_READY)
		;
	check_ok(r);
	check_eq(*word, stepped(1, 600001));
}

static CUsynchronizationPolicy policy_of(CUstream stream)
{
	CUstreamAttrValue value;

	check_ok(cuStreamGetAttribute(
		stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	return value.syncPolicy;
}

TEST(attributes_of_a_stream_are_kept_and_copied)
{
	CUstreamAttrValue value = { .syncPolicy = CU_SYNC_POLICY_YIELD };
	CUstream a, b;

	fixture_new();
	check_ok(cuStreamCreate(&a, 0));
	check_ok(cuStreamCreate(&b, 0));
	check_eq(policy_of(a), CU_SYNC_POLICY_AUTO);
	check_ok(cuStreamSetAttribute(
		a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	check_eq(policy_of(a), CU_SYNC_POLICY_YIELD);
	check_eq(policy_of(b), CU_SYNC_POLICY_AUTO);
	check_ok(cuStreamCopyAttributes(b, a));
	check_eq(policy_of(b), CU_SYNC_POLICY_YIELD);
	value.syncPolicy = 77;
	check_cu(cuStreamSetAttribute(
			 a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(policy_of(a), CU_SYNC_POLICY_YIELD);
	/* No device here has a window of its cache: only an empty one is legal. */
	value = (CUstreamAttrValue){ .accessPolicyWindow = { .num_bytes = 4096 } };
	check_cu(
		cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
		CUDA_ERROR_INVALID_VALUE);
	value.accessPolicyWindow.num_bytes = 0;
	check_ok(cuStreamSetAttribute(
		a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
	value.accessPolicyWindow.num_bytes = 1;
	check_ok(cuStreamGetAttribute(
		a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
	check_eq(value.accessPolicyWindow.num_bytes, 0);
	check_ok(cuStreamDestroy(b));
	check_cu(cuStreamCopyAttributes(b, a), CUDA_ERROR_INVALID_HANDLE);
}

TEST(priority_is_an_attribute_too)
{
	CUstreamAttrValue value = {};
	CUstream stream;
	int least, greatest, priority = 77;

	fixture_new();
	check_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	check_ok(cuStreamCreateWithPriority(&stream, 0, greatest));
	value.priority = least;
	check_ok(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_ok(cuStreamGetPriority(stream, &priority));
	check_eq(priority, least);
	memset(&value, 0x55, sizeof(value));
	check_ok(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_eq(value.priority, least);
}

static int priority_of(CUstream stream)
{
	int priority = 77;

	check_ok(cuStreamGetPriority(stream, &priority));
	return priority;
}

TEST(priorities_are_clamped_and_copied)
{
	CUstream low, high;
	CUstreamAttrValue value = {};
	int least, greatest;

	fixture_new();
	check_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	check_ok(cuStreamCreateWithPriority(&low, CU_STREAM_DEFAULT, least + 3));
	check_ok(cuStreamCreateWithPriority(&high, CU_STREAM_DEFAULT, greatest - 3));
	check_eq(priority_of(low), least);
	check_eq(priority_of(high), greatest);
	value.priority = least + 9;
	check_ok(cuStreamSetAttribute(high, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_eq(priority_of(high), least);
	value.priority = greatest - 9;
	check_ok(cuStreamSetAttribute(high, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_eq(priority_of(high), greatest);
	check_ok(cuStreamCopyAttributes(low, high));
	check_eq(priority_of(low), greatest);
}

TEST(priorities_are_supported_if_there_are_several)
{
	int least, greatest, is_supported = 9;

	fixture_new();
	check_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	check_ok(cuDeviceGetAttribute(
		&is_supported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 0));
	check_eq(is_supported, least != greatest);
}

TEST(no_stream_is_of_a_green_context)
{
	struct fixture fixture = fixture_new();
	CUgreenCtx green = (CUgreenCtx)1;
	CUcontext context = NULL;

	check_ok(cuStreamGetCtx_v2(NULL, &context, &green));
	check(context == fixture.context && !green);
	check_cu(cuStreamGetCtx_v2(NULL, &context, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* An operation of a batch on the word at an address. */
static CUstreamBatchMemOpParams batch_op(
	CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value)
{
	CUstreamBatchMemOpParams op = { .operation = type };

	op.writeValue.address = address;
	op.writeValue.value64 = value;
	if (type == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		type == CU_STREAM_MEM_OP_WAIT_VALUE_64)
		op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	return op;
}

TEST(a_batch_writes_and_waits_in_its_order)
{
	CUstreamBatchMemOpParams ops[5], release;
	CUstream stream, other;
	uint64_t *words;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemHostAlloc((void **)&words, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&p, words, 0));
	memset(words, 0, 64);
	ops[0] = batch_op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 5);
	ops[1] = batch_op(CU_STREAM_MEM_OP_WAIT_VALUE_64, p + 8, 1ull << 33);
	ops[2] = batch_op(CU_STREAM_MEM_OP_WRITE_VALUE_64, p + 16, 3ull << 33);
	ops[3] = batch_op(CU_STREAM_MEM_OP_WAIT_VALUE_32, p + 16, 0);
	ops[4] = (CUstreamBatchMemOpParams){ .operation = CU_STREAM_MEM_OP_BARRIER };
	check_ok(cuStreamBatchMemOp(stream, 5, ops, 0));
	release = batch_op(CU_STREAM_MEM_OP_WAIT_VALUE_32, p, 5);
	check_ok(cuStreamBatchMemOp(other, 1, &release, 0));
	check_ok(cuStreamSynchronize(other));
	check_eq(words[2], 0);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	release = batch_op(CU_STREAM_MEM_OP_WRITE_VALUE_64, p + 8, 1ull << 33);
	check_ok(cuStreamBatchMemOp(other, 1, &release, 0));
	check_ok(cuStreamSynchronize(stream));
	check_eq(words[2], 3ull << 33);
}

TEST(a_batch_with_a_bad_operation_does_nothing)
{
	CUstreamBatchMemOpParams ops[2];
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuMemsetD32(p, 1, 4));
	ops[0] = batch_op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 5);
	ops[1] = batch_op(CU_STREAM_MEM_OP_WRITE_VALUE_64, p + 4, 5);
	check_cu(cuStreamBatchMemOp(NULL, 2, ops, 0), CUDA_ERROR_INVALID_VALUE);
	ops[1] = batch_op(CU_STREAM_MEM_OP_WRITE_VALUE_64, p + (1ull << 40), 5);
	check_cu(cuStreamBatchMemOp(NULL, 2, ops, 0), CUDA_ERROR_INVALID_VALUE);
	ops[1] = batch_op((CUstreamBatchMemOpType)99, p, 5);
	check_cu(cuStreamBatchMemOp(NULL, 2, ops, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamBatchMemOp(NULL, 0, ops, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamBatchMemOp(NULL, 256, ops, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamBatchMemOp(NULL, 1, ops, 7), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamBatchMemOp(NULL, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(device_word(p), 1);
}

/* Words of the host that streams can wait for and write. */
static unsigned int *new_words(CUdeviceptr *p)
{
	unsigned int *words;

	check_ok(cuMemHostAlloc((void **)&words, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(p, words, 0));
	memset(words, 0, 64);
	return words;
}

static void let_go(unsigned int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

TEST(an_event_of_a_context_waits_for_all_its_streams)
{
	struct fixture fixture = fixture_new();
	CUcontext other;
	unsigned int *words;
	CUstream a, b;
	CUevent event;
	CUdeviceptr p;

	words = new_words(&p);
	check_ok(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 2; i++) {
		check_ok(cuStreamWaitValue32(
			i ? b : a, p + 4 * i, 1, CU_STREAM_WAIT_VALUE_EQ));
		check_ok(cuStreamWriteValue32(i ? b : a, p + 16 + 4 * i, 7, 0));
	}
	check_ok(cuCtxRecordEvent(fixture.context, event));
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&words[0]);
	check_ok(cuStreamSynchronize(a));
	check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&words[1]);
	check_ok(cuEventSynchronize(event));
	check_eq(words[4], 7);
	check_eq(words[5], 7);
	check_ok(cuEventQuery(event));
	/* an event of one context is invalid in another */
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	check_cu(cuCtxRecordEvent(other, event), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuCtxRecordEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(a_context_waits_for_an_event_in_all_its_streams)
{
	struct fixture fixture = fixture_new();
	CUstream a, b, later;
	unsigned int *words;
	CUevent event;
	CUdeviceptr p;

	words = new_words(&p);
	check_ok(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuStreamWaitValue32(a, p, 1, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(cuEventRecord(event, a));
	check_ok(cuCtxWaitEvent(fixture.context, event));
	check_ok(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamWriteValue32(b, p + 16, 7, 0));
	check_ok(cuStreamWriteValue32(later, p + 20, 7, 0));
	check_cu(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	check_cu(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
	check_eq(words[4], 0);
	check_eq(words[5], 0);
	let_go(&words[0]);
	check_ok(cuStreamSynchronize(b));
	check_ok(cuStreamSynchronize(later));
	check_eq(words[4], 7);
	check_eq(words[5], 7);
}
