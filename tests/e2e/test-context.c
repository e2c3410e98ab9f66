/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: contexts
 */

#include <pthread.h>

#include "e2e.h"

TEST(primary_context_is_one_object_with_a_state)
{
	CUcontext first = NULL, second = NULL;
	unsigned int flags;
	int active = -1;

	check_ok(cuInit(0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 0);
	check_ok(cuDevicePrimaryCtxRetain(&first, 0));
	check_ok(cuDevicePrimaryCtxRetain(&second, 0));
	check(first && first == second);
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 1);
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 0);
}

TEST(retain_alone_makes_no_context_current)
{
	CUcontext context, current = (CUcontext)1;
	CUdeviceptr p;

	check_ok(cuInit(0));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxGetCurrent(&current));
	check(!current);
	check_cu(cuMemAlloc(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuMemFree(p));
}

TEST(what_has_its_own_context_ends_without_a_current_one)
{
	static const char empty[] = ".version 7.0\n.target sm_50\n.address_size 64\n";
	CUdeviceptr device, managed;
	CUcontext context;
	CUmodule module;
	CUstream stream;
	void *pinned;

	check_ok(cuInit(0));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuMemAlloc(&device, 4096));
	check_ok(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuMemHostAlloc(&pinned, 4096, 0));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuModuleLoadData(&module, empty));
	check_ok(cuCtxSetCurrent(NULL));
	check_ok(cuMemFree(device));
	check_ok(cuMemFree(managed));
	check_ok(cuMemFreeHost(pinned));
	check_ok(cuStreamDestroy(stream));
	check_ok(cuModuleUnload(module));
	check_cu(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuDevicePrimaryCtxRelease(0));
}

TEST(created_context_is_current_until_it_is_destroyed)
{
	CUcontext context, current = NULL;
	unsigned int version = 0;
	CUdevice device = -1;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuCtxGetCurrent(&current));
	check(current == context);
	check_ok(cuCtxGetDevice(&device));
	check_eq(device, 0);
	check_ok(cuCtxGetApiVersion(context, &version));
	check(version >= 3010);
	check_ok(cuCtxDestroy(context));
	check_ok(cuCtxGetCurrent(&current));
	check(!current);
	check_cu(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(context_stack_pushes_and_pops)
{
	CUcontext a, b, popped, current;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&a, NULL, 0, 0));
	check_ok(cuCtxCreate(&b, NULL, 0, 0));
	check(a != b);
	check_ok(cuCtxPopCurrent(&popped));
	check(popped == b);
	check_ok(cuCtxGetCurrent(&current));
	check(current == a);
	check_ok(cuCtxPushCurrent(b));
	check_ok(cuCtxGetCurrent(&current));
	check(current == b);
	check_ok(cuCtxPopCurrent(NULL));
	check_ok(cuCtxPopCurrent(NULL));
	check_cu(cuCtxPopCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxDestroy(b));
	check_ok(cuCtxDestroy(a));
}

TEST(memory_and_modules_go_with_their_context)
{
	struct fixture fixture = fixture_new();
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUdeviceptr p;

	check_ok(cuCtxCreate(&context, NULL, 0, fixture.device));
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuCtxDestroy(context));
	check_ok(cuCtxSetCurrent(fixture.context));
	check(cuModuleGetFunction(&function, module, "fill") != CUDA_SUCCESS);
	check(cuMemsetD8(p, 0, 4096) != CUDA_SUCCESS);
	/* the first context is as good as before */
	check_ok(cuMemAlloc(&p, 4));
	check_ok(launch_fill(fixture_function(&fixture, "fill"), p, 5, 1, NULL));
	check_eq(device_word(p), 5);
}

TEST(primary_context_can_be_reset_and_used_again)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuDevicePrimaryCtxReset(fixture.device));
	check_ok(cuDevicePrimaryCtxRetain(&fixture.context, fixture.device));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuModuleLoadData(&fixture.module, kernels_ptx));
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(launch_fill(fixture_function(&fixture, "fill"), p, 7, 1024, NULL));
	check_eq(device_word(p + 4092), 7);
}

TEST(a_reset_releases_no_retain)
{
	struct fixture fixture = fixture_new();
	unsigned int flags;
	int active = -1;
	CUcontext context;
	CUdeviceptr p;

	/* Two modules of the program have retained it, and one of them resets it. */
	check_ok(cuDevicePrimaryCtxRetain(&context, fixture.device));
	check_ok(cuDevicePrimaryCtxReset(fixture.device));
	check_ok(cuDevicePrimaryCtxRelease(fixture.device));
	check_ok(cuDevicePrimaryCtxRetain(&context, fixture.device));
	check(context == fixture.context);
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuDevicePrimaryCtxRelease(fixture.device));
	check_ok(cuMemFree(p));
	check_ok(cuDevicePrimaryCtxRelease(fixture.device));
	check_ok(cuDevicePrimaryCtxGetState(fixture.device, &flags, &active));
	check_eq(active, 0);
	check(cuMemAlloc(&p, 4096) != CUDA_SUCCESS);
	check_cu(cuDevicePrimaryCtxRelease(fixture.device), CUDA_ERROR_INVALID_CONTEXT);

	/* The last release may come after the reset, and then nothing is left. */
	check_ok(cuDevicePrimaryCtxRetain(&context, fixture.device));
	check_ok(cuDevicePrimaryCtxReset(fixture.device));
	check_ok(cuDevicePrimaryCtxRelease(fixture.device));
	check_cu(cuDevicePrimaryCtxRelease(fixture.device), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuDevicePrimaryCtxRetain(&context, fixture.device));
	check_ok(cuMemAlloc(&p, 4096));
}

static void *thread_without_context(void *argument)
{
	CUcontext current = (CUcontext)1;
	CUdeviceptr p;

	check_ok(cuCtxGetCurrent(&current));
	check(!current);
	check_cu(cuMemAlloc(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxSetCurrent(argument));
	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuMemFree(p));
	return NULL;
}

TEST(each_thread_has_its_own_current_context)
{
	struct fixture fixture = fixture_new();
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, thread_without_context, fixture.context),
		0);
	pthread_join(thread, NULL);
}

TEST(limits_are_set_and_read)
{
	struct fixture fixture = fixture_new();
	size_t before = 0, after = 0;

	(void)fixture;
	check_ok(cuCtxGetLimit(&before, CU_LIMIT_STACK_SIZE));
	check(before >= 256);
	check_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2 * before));
	check_ok(cuCtxGetLimit(&after, CU_LIMIT_STACK_SIZE));
	check(after >= 2 * before);
	check_cu(cuCtxSetLimit((CUlimit)9999, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST(stream_priorities_have_a_range)
{
	struct fixture fixture = fixture_new();
	int least = -100, greatest = 100;

	(void)fixture;
	check_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	check(least >= greatest && least > -100 && greatest < 100);
}

TEST(foreign_context_handle_is_refused)
{
	CUcontext foreign = (CUcontext)0x123456789abcull;
	unsigned int version;

	check_ok(cuInit(0));
	check_cu(cuCtxGetApiVersion(foreign, &version), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxDestroy(foreign), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(primary_context_flags_are_set_and_read)
{
	CUcontext context;
	unsigned int flags = 0;
	int active;

	check_ok(cuInit(0));
	check_ok(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	flags = 0;
	check_ok(cuCtxGetFlags(&flags));
	check_eq(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
	check_cu(cuDevicePrimaryCtxSetFlags(0, 0xff0000), CUDA_ERROR_INVALID_VALUE);
}

TEST(contexts_have_different_ids)
{
	unsigned long long first = 0, second = 0;
	CUcontext a, b;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&a, NULL, 0, 0));
	check_ok(cuCtxCreate(&b, NULL, 0, 0));
	check_ok(cuCtxGetId(a, &first));
	check_ok(cuCtxGetId(b, &second));
	check(first != second);
}

TEST(cache_and_bank_preferences_are_kept_or_refused)
{
	CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
	CUsharedconfig bank = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;

	fixture_new();
	check_ok(cuCtxGetCacheConfig(&cache));
	check_eq(cache, CU_FUNC_CACHE_PREFER_NONE);
	check_ok(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
	check_ok(cuCtxGetSharedMemConfig(&bank));
	check_ok(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
	check_cu(cuCtxSetCacheConfig((CUfunc_cache)77), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCtxSetSharedMemConfig((CUsharedconfig)77), CUDA_ERROR_INVALID_VALUE);
}

TEST(profiler_is_switched_without_a_profiler)
{
	fixture_new();
	check_ok(cuProfilerStart());
	check_ok(cuProfilerStop());
}

TEST(flags_of_a_context_are_replaced)
{
	unsigned int flags = 0;
	CUcontext context;

	check_ok(cuInit(0));
	check_cu(cuCtxSetFlags(CU_CTX_SYNC_MEMOPS), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxCreate(&context, NULL, CU_CTX_SCHED_SPIN, 0));
	check_ok(cuCtxGetFlags(&flags));
	check_eq(flags, CU_CTX_SCHED_SPIN);
	check_ok(cuCtxSetFlags(CU_CTX_SYNC_MEMOPS));
	check_ok(cuCtxGetFlags(&flags));
	check_eq(flags, CU_CTX_SYNC_MEMOPS);
	check_cu(cuCtxSetFlags(1u << 20), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxGetFlags(&flags));
	check_eq(flags, CU_CTX_SYNC_MEMOPS);
}

TEST(a_context_has_all_multiprocessors)
{
	CUexecAffinityParam affinity = {};
	int n = 0, can = -1;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetExecAffinitySupport(&can, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	check_eq(can, 0);
	check_cu(cuDeviceGetExecAffinitySupport(&can, CU_EXEC_AFFINITY_TYPE_MAX, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT),
		CUDA_ERROR_INVALID_CONTEXT);
	fixture_new();
	check_ok(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	check_ok(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	check_eq(affinity.type, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
	check(n > 0);
	check_eq(affinity.param.smCount.val, n);
	check_cu(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX),
		CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
}

TEST(a_device_and_its_contexts_have_the_same_multiprocessors)
{
	CUdevResource device, context;
	CUcontext current, destroyed;
	int n = 0;

	fixture_new();
	check_ok(cuCtxGetCurrent(&current));
	memset(&device, 0xff, sizeof(device));
	memset(&context, 0xff, sizeof(context));
	check_ok(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	check_ok(cuDeviceGetDevResource(0, &device, CU_DEV_RESOURCE_TYPE_SM));
	check_ok(cuCtxGetDevResource(current, &context, CU_DEV_RESOURCE_TYPE_SM));
	check_eq(device.type, CU_DEV_RESOURCE_TYPE_SM);
	check_eq(device.sm.smCount, n);
	check(device.sm.minSmPartitionSize > 0);
	check(device.sm.minSmPartitionSize <= device.sm.smCount);
	check(device.sm.smCoscheduledAlignment &&
		device.sm.smCount % device.sm.smCoscheduledAlignment == 0);
	check(!memcmp(&device, &context, sizeof(device)));

	check_cu(cuDeviceGetDevResource(-1, &device, CU_DEV_RESOURCE_TYPE_SM),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceGetDevResource(0, &device, CU_DEV_RESOURCE_TYPE_INVALID),
		CUDA_ERROR_INVALID_RESOURCE_TYPE);
	check_cu(cuCtxGetDevResource(NULL, &context, CU_DEV_RESOURCE_TYPE_SM),
		CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxGetDevResource(current, NULL, CU_DEV_RESOURCE_TYPE_SM),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCtxGetDevResource(current, &context, CU_DEV_RESOURCE_TYPE_INVALID),
		CUDA_ERROR_INVALID_RESOURCE_TYPE);
	check_ok(cuCtxCreate(&destroyed, NULL, 0, 0));
	check_ok(cuCtxDestroy(destroyed));
	check_cu(cuCtxGetDevResource(destroyed, &context, CU_DEV_RESOURCE_TYPE_SM),
		CUDA_ERROR_INVALID_CONTEXT);
}

TEST(lines_that_persist_in_the_cache_are_given_up)
{
	check_ok(cuInit(0));
	check_cu(cuCtxResetPersistingL2Cache(), CUDA_ERROR_INVALID_CONTEXT);
	fixture_new();
	check_ok(cuCtxResetPersistingL2Cache());
}
