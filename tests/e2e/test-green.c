/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: green contexts and partitions of multiprocessors
 *
 * On softgpu these tests run with eight multiprocessors, which are partitioned in pairs.
 */

#include <pthread.h>

#include "e2e.h"

#define N_BLOCKS 512
#define SMS_MAX 1024

/* Each block writes the multiprocessor that it runs on, and keeps it busy for a while. */
static const char where_ptx[] = ".version 7.0\n"
				".target sm_52\n"
				".address_size 64\n"
				".visible .entry where(.param .u64 out)\n"
				"{\n"
				"	.reg .b64 %rd<4>;\n"
				"	.reg .b32 %r<4>;\n"
				"	.reg .pred %p;\n"
				"	ld.param.u64 %rd1, [out];\n"
				"	mov.u32 %r1, %smid;\n"
				"	mov.u32 %r2, %ctaid.x;\n"
				"	mul.wide.u32 %rd2, %r2, 4;\n"
				"	add.s64 %rd3, %rd1, %rd2;\n"
				"	mov.u32 %r3, 2000;\n"
				"again:	sub.u32 %r3, %r3, 1;\n"
				"	setp.ne.u32 %p, %r3, 0;\n"
				"	@%p bra again;\n"
				"	st.global.u32 [%rd3], %r1;\n"
				"	ret;\n"
				"}\n";

/* The device's multiprocessors in parts of the least size. */
struct parts {
	CUdevResource whole;
	CUdevResource groups[SMS_MAX];
	unsigned int n;
	CUdevResource rest;
};

static struct parts split(unsigned int n_max, unsigned int min_count)
{
	static __thread struct parts parts;

	memset(&parts, 0xff, sizeof(parts));
	parts.n = n_max;
	check_ok(cuDeviceGetDevResource(0, &parts.whole, CU_DEV_RESOURCE_TYPE_SM));
	check_ok(cuDevSmResourceSplitByCount(
		parts.groups, &parts.n, &parts.whole, &parts.rest, 0, min_count));
	return parts;
}

static CUgreenCtx green_of(CUdevResource *resources, unsigned int n)
{
	CUdevResourceDesc desc = NULL;
	CUgreenCtx green = NULL;

	check_ok(cuDevResourceGenerateDesc(&desc, resources, n));
	check(desc);
	check_ok(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	check(green);
	return green;
}

static CUcontext context_of(CUgreenCtx green)
{
	CUcontext context = NULL;

	check_ok(cuCtxFromGreenCtx(&context, green));
	check(context && (void *)context != (void *)green);
	return context;
}

static CUstream stream_of(CUgreenCtx green)
{
	CUstream stream = NULL;

	check_ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	check(stream);
	return stream;
}

/* Fills a word, and waits: a fill is asynchronous, and streams that do not block, as well
 * as those of other green contexts, do not wait for it. */
static void set(CUdeviceptr word, unsigned int value)
{
	check_ok(cuMemsetD32(word, value, 1));
	check_ok(cuStreamSynchronize(NULL));
}

/* Adds the multiprocessors that blocks of a kernel in the stream see. */
static void look(CUstream stream, bool seen[SMS_MAX])
{
	static unsigned int sms[N_BLOCKS];
	CUfunction where;
	CUdeviceptr out;
	CUmodule module;
	void *parameters[] = { &out };

	check_ok(cuModuleLoadData(&module, where_ptx));
	check_ok(cuModuleGetFunction(&where, module, "where"));
	check_ok(cuMemAlloc(&out, sizeof(sms)));
	check_ok(cuMemsetD8(out, 0xff, sizeof(sms)));
	check_ok(cuStreamSynchronize(NULL));
	check_ok(cuLaunchKernel(
		where, N_BLOCKS, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoH(sms, out, sizeof(sms)));
	for (int i = 0; i < N_BLOCKS; i++) {
		check(sms[i] < SMS_MAX);
		seen[sms[i]] = true;
	}
	check_ok(cuMemFree(out));
	check_ok(cuModuleUnload(module));
}

static unsigned int count(const bool seen[SMS_MAX])
{
	unsigned int n = 0;

	for (int i = 0; i < SMS_MAX; i++)
		n += seen[i];
	return n;
}

TEST(multiprocessors_are_split_into_equal_groups_and_a_rest)
{
	unsigned int n_sms, size, n_groups = 0;
	struct parts parts;

	fixture_new();
	parts = split(SMS_MAX, 0);
	n_sms = parts.whole.sm.smCount;
	size = parts.groups[0].sm.smCount;
	check(size >= parts.whole.sm.minSmPartitionSize);
	check_eq(size % parts.whole.sm.smCoscheduledAlignment, 0);
	check_eq(parts.n, n_sms / size);
	for (unsigned int i = 0; i < parts.n; i++) {
		check_eq(parts.groups[i].type, CU_DEV_RESOURCE_TYPE_SM);
		check_eq(parts.groups[i].sm.smCount, size);
	}
	check_eq(parts.rest.type,
		n_sms % size ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID);

	check_ok(cuDevSmResourceSplitByCount(NULL, &n_groups, &parts.whole, NULL, 0, 0));
	check_eq(n_groups, parts.n);

	/* One group, as large as possible but one more than aligned: rounded up. */
	parts = split(1, parts.whole.sm.smCoscheduledAlignment + 1);
	check_eq(parts.n, 1);
	check_eq(parts.groups[0].sm.smCount, 2 * parts.whole.sm.smCoscheduledAlignment);
	check_eq(parts.rest.type, CU_DEV_RESOURCE_TYPE_SM);
	check_eq(parts.rest.sm.smCount, n_sms - parts.groups[0].sm.smCount);
}

TEST(coscheduling_can_be_ignored)
{
	CUdevResource whole, groups[2], rest;
	unsigned int n = 2;

	fixture_new();
	check_ok(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	memset(groups, 0xff, sizeof(groups));
	check_ok(cuDevSmResourceSplitByCount(groups, &n, &whole, &rest,
		CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
			CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
		3));
	check_eq(n, 2);
	check(groups[0].sm.smCount >= 3 && groups[0].sm.smCount == groups[1].sm.smCount);
	check_eq(rest.sm.smCount, whole.sm.smCount - 2 * groups[0].sm.smCount);
}

TEST(kernels_of_green_contexts_stay_on_their_multiprocessors)
{
	bool all[SMS_MAX] = {}, first[SMS_MAX] = {}, second[SMS_MAX] = {};
	struct parts parts;
	unsigned int size;

	fixture_new();
	parts = split(2, 0);
	check_eq(parts.n, 2);
	size = parts.groups[0].sm.smCount;
	/* So that all multiprocessors are there. */
	look(NULL, all);
	check(count(all) <= parts.whole.sm.smCount);
	for (int i = 0; i < 4; i++) {
		look(stream_of(green_of(&parts.groups[0], 1)), first);
		look(stream_of(green_of(&parts.groups[1], 1)), second);
	}
	check(count(first) <= size);
	check(count(second) <= size);
	for (int i = 0; i < SMS_MAX; i++)
		check(!first[i] || !second[i]);
}

TEST(parts_of_one_split_are_joined)
{
	CUdevResource joined, both[2];
	bool seen[SMS_MAX] = {};
	CUdevResourceDesc desc;
	struct parts parts;
	CUgreenCtx green;

	fixture_new();
	parts = split(3, 0);
	both[0] = parts.groups[2];
	both[1] = parts.groups[0];
	green = green_of(both, 2);
	memset(&joined, 0xff, sizeof(joined));
	check_ok(cuGreenCtxGetDevResource(green, &joined, CU_DEV_RESOURCE_TYPE_SM));
	check_eq(joined.sm.smCount, 2 * parts.groups[0].sm.smCount);
	look(stream_of(green), seen);
	check(count(seen) <= joined.sm.smCount);

	/* But not one part twice, nor parts of different splits. */
	both[1] = both[0];
	check_cu(cuDevResourceGenerateDesc(&desc, both, 2),
		CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	both[1] = split(3, 0).groups[0];
	check_cu(cuDevResourceGenerateDesc(&desc, both, 2),
		CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

TEST(what_a_green_context_has_can_be_split_again)
{
	CUdevResource inner, halves[2], rest;
	bool outside[SMS_MAX] = {}, inside[SMS_MAX] = {};
	struct parts parts;
	CUgreenCtx green;
	unsigned int n = 2;

	fixture_new();
	parts = split(1, 4);
	check_eq(parts.n, 1);
	check(parts.groups[0].sm.smCount >= 4);
	/* A part itself cannot. */
	check_cu(cuDevSmResourceSplitByCount(halves, &n, &parts.groups[0], &rest, 0, 0),
		CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	green = green_of(&parts.groups[0], 1);
	look(stream_of(green_of(&parts.rest, 1)), outside);
	check_ok(cuCtxGetDevResource(context_of(green), &inner, CU_DEV_RESOURCE_TYPE_SM));
	check_eq(inner.sm.smCount, parts.groups[0].sm.smCount);
	check_ok(cuDevSmResourceSplitByCount(halves, &n, &inner, &rest,
		CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, inner.sm.smCount / 2));
	check_eq(n, 2);
	look(stream_of(green_of(&halves[1], 1)), inside);
	check(count(inside) <= inner.sm.smCount / 2);
	for (int i = 0; i < SMS_MAX; i++)
		check(!outside[i] || !inside[i]);

	/* Its source is gone. */
	n = 2;
	check_ok(cuGreenCtxDestroy(green));
	check_cu(cuDevSmResourceSplitByCount(halves, &n, &inner, &rest, 0, 0),
		CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

TEST(a_changed_resource_gives_no_more_than_there_is)
{
	CUdevResource resource;
	CUdevResourceDesc desc;
	struct parts parts;
	CUgreenCtx green;

	fixture_new();
	parts = split(1, 0);
	/* The number is for the program to read. */
	resource = parts.groups[0];
	resource.sm.smCount = 100000;
	green = green_of(&parts.groups[0], 1);
	check_ok(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
	check_eq(resource.sm.smCount, parts.groups[0].sm.smCount);
	memset(&resource, 0xa5, sizeof(resource));
	resource.type = CU_DEV_RESOURCE_TYPE_SM;
	check_cu(
		cuDevResourceGenerateDesc(&desc, &resource, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGreenCtxCreate(&green, (CUdevResourceDesc)&resource, 0,
			 CU_GREEN_CTX_DEFAULT_STREAM),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_stream_knows_its_green_context)
{
	CUgreenCtx green, other, found = (CUgreenCtx)1;
	CUcontext context, primary, named = NULL;
	unsigned long long id = 0, other_id = 0, same = 0;
	struct fixture fixture = fixture_new();
	struct parts parts = split(2, 0);
	CUstream stream, plain, made;

	green = green_of(&parts.groups[0], 1);
	other = green_of(&parts.groups[1], 1);
	context = context_of(green);
	check(context_of(green) == context && context_of(other) != context);
	stream = stream_of(green);
	check_ok(cuStreamCreate(&plain, CU_STREAM_DEFAULT));
	check_ok(cuStreamGetGreenCtx(plain, &found));
	check(!found);
	check_ok(cuStreamGetGreenCtx(NULL, &found));
	check(!found);
	check_ok(cuStreamGetGreenCtx(stream, &found));
	check(found == green);
	check_ok(cuStreamGetCtx(stream, &named));
	check(named == context);
	check_ok(cuStreamGetCtx_v2(stream, &primary, &found));
	check(primary == fixture.context && found == green);

	check_ok(cuCtxSetCurrent(context));
	check_ok(cuStreamGetGreenCtx(NULL, &found));
	check(found == green);
	check_ok(cuStreamGetCtx_v2(NULL, &primary, &found));
	check(primary == fixture.context && found == green);
	check_cu(cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &primary, &found),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamGetGreenCtx(made, &found));
	check(found == green);

	check_ok(cuGreenCtxGetId(green, &id));
	check_ok(cuGreenCtxGetId(other, &other_id));
	check_ok(cuGreenCtxGetId(NULL, &same));
	check(id != other_id && id == same);
	check_ok(cuCtxSetCurrent(fixture.context));
	check_cu(cuGreenCtxGetId(NULL, &same), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(a_green_context_has_a_default_stream_and_the_memory_of_the_primary_one)
{
	struct fixture fixture = fixture_new();
	struct parts parts = split(1, 0);
	CUfunction step = fixture_function(&fixture, "step"), loaded;
	CUdeviceptr outer, inner;
	CUstream blocking;
	CUcontext current, context;
	CUmodule module;
	CUgreenCtx green;

	green = green_of(&parts.groups[0], 1);
	context = context_of(green);
	check_ok(cuMemAlloc(&outer, 4));
	set(outer, 5);
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuCtxGetCurrent(&current));
	check(current == context);
	check_ok(cuMemAlloc(&inner, 4));
	check_ok(cuMemsetD32(inner, 7, 1));
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&loaded, module, "step"));

	/* The default stream and blocking ones follow each other. */
	check_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	check_ok(launch_step(step, outer, 100000, NULL));
	check_ok(launch_step(loaded, outer, 10, blocking));
	check_ok(cuMemcpyDtoDAsync(inner, outer, 4, NULL));
	check_ok(cuStreamSynchronize(NULL));
	check_eq(device_word(inner), stepped(5, 100010));
	check_ok(launch_step(step, outer, 100000, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(cuStreamQuery(NULL));
	check_eq(device_word(outer), stepped(5, 200010));

	check_ok(cuStreamDestroy(blocking));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuGreenCtxDestroy(green));
	check_eq(device_word(inner), stepped(5, 100010));
	check_ok(launch_step(loaded, inner, 1, NULL));
	check_eq(device_word(inner), stepped(5, 100011));
	check_ok(cuModuleUnload(module));
	check_ok(cuMemFree(inner));
}

TEST(limits_follow_the_multiprocessors_of_the_current_context)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUexecAffinityParam affinity = {};
	int whole = 0, part = 0, per_sm = 0, size;
	struct parts parts = split(1, 0);
	unsigned int n_sms = parts.whole.sm.smCount, n = parts.groups[0].sm.smCount;
	void *parameters[] = { NULL, NULL };
	CUdeviceptr x;
	int rounds = 1;
	CUgreenCtx green;
	CUstream stream;

	check_ok(cuMemAlloc(&x, 4));
	set(x, 1);
	parameters[0] = &x;
	parameters[1] = &rounds;
	green = green_of(&parts.groups[0], 1);
	stream = stream_of(green);
	check_ok(cuOccupancyMaxPotentialBlockSize(&whole, &size, step, NULL, 0, 0));
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, step, 32, 0));
	check_ok(cuCtxSetCurrent(context_of(green)));
	check_ok(cuOccupancyMaxPotentialBlockSize(&part, &size, step, NULL, 0, 0));
	check_eq((unsigned int)part * n_sms, (unsigned int)whole * n);
	check_ok(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	check_eq(affinity.param.smCount.val, n);
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	check_eq(affinity.param.smCount.val, n_sms);

	/* A cooperative grid that fits the device, but not the part. */
	check_ok(cuLaunchCooperativeKernel(
		step, (unsigned int)per_sm * n + 1, 1, 1, 32, 1, 1, 0, NULL, parameters));
	check_cu(cuLaunchCooperativeKernel(step, (unsigned int)per_sm * n + 1, 1, 1, 32,
			 1, 1, 0, stream, parameters),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	check_ok(cuLaunchCooperativeKernel(
		step, (unsigned int)per_sm * n, 1, 1, 32, 1, 1, 0, stream, parameters));
	check_ok(cuCtxSynchronize());
}

TEST(events_cover_the_streams_of_a_green_context)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	struct parts parts = split(1, 0);
	CUstream first, second, other, late;
	CUevent done, go;
	CUdeviceptr x, flag, copy;
	CUcontext context;
	CUgreenCtx green;

	green = green_of(&parts.groups[0], 1);
	context = context_of(green);
	first = stream_of(green);
	second = stream_of(green);
	check_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&x, 4));
	check_ok(cuMemAlloc(&copy, 4));
	check_ok(cuMemAlloc(&flag, 4));
	set(x, 3);
	set(copy, 1);
	set(flag, 0);
	check_ok(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&go, CU_EVENT_DISABLE_TIMING));

	/* Held by the flag: an event of the green context, not one of others. */
	check_ok(cuStreamWaitValue32(first, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(launch_step(step, x, 20, first));
	check_ok(cuGreenCtxRecordEvent(green, done));
	check_cu(cuEventQuery(done), CUDA_ERROR_NOT_READY);
	check_ok(launch_step(step, copy, 1, other));
	check_ok(cuStreamSynchronize(other));
	check_cu(cuEventQuery(done), CUDA_ERROR_NOT_READY);
	check_ok(cuStreamWriteValue32(other, flag, 1, 0));
	check_ok(cuEventSynchronize(done));
	check_eq(device_word(x), stepped(3, 20));

	/* All its streams wait, also one that is yet to come. */
	set(flag, 0);
	check_ok(cuStreamWaitValue32(other, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(cuMemsetD32Async(x, 9, 1, other));
	check_ok(cuEventRecord(go, other));
	check_ok(cuGreenCtxWaitEvent(green, go));
	late = stream_of(green);
	check_ok(launch_step(step, x, 5, late));
	check_ok(cuMemcpyDtoDAsync(copy, x, 4, late));
	check_cu(cuStreamQuery(late), CUDA_ERROR_NOT_READY);
	check_ok(cuCtxRecordEvent(context, done));
	check_cu(cuEventQuery(done), CUDA_ERROR_NOT_READY);
	check_ok(cuMemsetD32(flag, 1, 1));
	check_ok(cuCtxSynchronize_v2(context));
	check_eq(device_word(copy), stepped(9, 5));
	check_ok(cuCtxWaitEvent(context, go));

	/* Captures are in the way. */
	check_ok(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_cu(cuGreenCtxRecordEvent(green, done),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_ok(cuStreamDestroy(second));
}

TEST(the_streams_of_a_destroyed_green_context_are_gone)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	struct parts parts = split(1, 0);
	CUgreenCtx green = green_of(&parts.groups[0], 1);
	CUcontext context = context_of(green);
	CUstream stream = stream_of(green);
	unsigned long long id;
	CUdeviceptr x;

	check_ok(cuMemAlloc(&x, 4));
	set(x, 1);
	check_ok(launch_step(step, x, 50000, stream));
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuGreenCtxDestroy(green));
	check_cu(cuMemAlloc(&x, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_ok(cuCtxSetCurrent(fixture.context));
	check_cu(launch_step(step, x, 1, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuStreamDestroy(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuGreenCtxGetId(green, &id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxFromGreenCtx(&context, green), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxSynchronize());
	check_eq(device_word(x), stepped(1, 50000));
}

TEST(a_green_context_holds_the_primary_one_and_ends_with_it)
{
	struct parts parts;
	unsigned int flags;
	CUgreenCtx green;
	CUstream stream;
	int active = -1;

	check_ok(cuInit(0));
	parts = split(1, 0);
	green = green_of(&parts.groups[0], 1);
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 1);
	/* No context is current. */
	check(stream_of(green));
	check_ok(cuGreenCtxDestroy(green));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 0);

	fixture_new();
	green = green_of(&parts.groups[0], 1);
	stream = stream_of(green);
	check_ok(cuDevicePrimaryCtxReset(0));
	check_cu(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	green = green_of(&parts.groups[0], 1);
	stream = stream_of(green);
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuGreenCtxDestroy(green));
	/* A release too many ends the primary context, and so the green one. */
	green = green_of(&parts.groups[0], 1);
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_cu(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	fixture_new();
	green = green_of(&parts.groups[0], 1);
	check_ok(cuGreenCtxDestroy(green));
	/* What it held is not held any more. */
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 0);
}

TEST(a_fault_in_a_green_context_breaks_the_primary_one)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	struct parts parts = split(1, 0);
	CUgreenCtx green = green_of(&parts.groups[0], 1);
	CUstream stream = stream_of(green);
	CUdeviceptr x;

	check_ok(launch_step(step, 16, 1, stream));
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemAlloc(&x, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuDevicePrimaryCtxReset(0));
}

/* As a program does that splits the device among threads. */
static void *use_part(void *data)
{
	struct fixture *fixture = data;
	CUfunction step;
	CUgreenCtx green;
	CUdeviceptr x;
	struct parts parts;

	check_ok(cuCtxSetCurrent(fixture->context));
	step = fixture_function(fixture, "step");
	check_ok(cuMemAlloc(&x, 4));
	for (int i = 0; i < 20; i++) {
		parts = split(2, 0);
		green = green_of(&parts.groups[i % 2], 1);
		check_ok(cuCtxSetCurrent(context_of(green)));
		check_ok(cuMemsetD32(x, 1, 1));
		check_ok(launch_step(step, x, 100, NULL));
		check_ok(cuStreamSynchronize(NULL));
		check_eq(device_word(x), stepped(1, 100));
		check_ok(cuCtxSetCurrent(fixture->context));
		check_ok(cuGreenCtxDestroy(green));
	}
	return NULL;
}

TEST(threads_use_green_contexts_side_by_side)
{
	struct fixture fixture = fixture_new();
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		check(!pthread_create(&threads[i], NULL, use_part, &fixture));
	for (int i = 0; i < 2; i++)
		check(!pthread_join(threads[i], NULL));
}
