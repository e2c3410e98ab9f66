/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: queries whose results are cached until they change
 *
 * through.py --once reads in the trace that a call which succeeds twice in a row with the
 * same arguments sends no message the second time, and that one which fails sends one
 * again.
 */

#include <pthread.h>

#include "e2e.h"

/* The second may be answered from the cached result of the first. */
#define twice(_call)                                                                     \
	do {                                                                             \
		check_ok(_call);                                                         \
		check_ok(_call);                                                         \
	} while (0)

/* Neither may be. */
#define twice_refused(_call, _error)                                                     \
	do {                                                                             \
		check_cu(_call, _error);                                                 \
		check_cu(_call, _error);                                                 \
	} while (0)

static int attribute(CUfunction function, CUfunction_attribute attribute)
{
	int value = -1;

	twice(cuFuncGetAttribute(&value, attribute, function));
	return value;
}

static size_t limit(CUlimit limit)
{
	size_t value = 0;

	twice(cuCtxGetLimit(&value, limit));
	return value;
}

TEST(what_a_module_holds)
{
	struct fixture fixture = fixture_new();
	CUfunction function = NULL, other = NULL, all[64] = {};
	CUdeviceptr variable = 0, again = 0;
	unsigned int n = 0;
	size_t size = 0;
	CUmodule module;

	twice(cuModuleGetFunction(&function, fixture.module, "fill"));
	twice(cuModuleGetFunction(&other, fixture.module, "step"));
	check(function != other);
	twice(cuModuleGetFunctionCount(&n, fixture.module));
	check(n > 2 && n <= 64);
	twice(cuModuleEnumerateFunctions(all, n, fixture.module));
	for (unsigned int i = 0; i < n; i++)
		check(all[i]);
	twice(cuModuleGetGlobal(&variable, &size, fixture.module, "answer"));
	check_eq(size, sizeof(int));
	check_eq(device_word(variable), 42);
	twice(cuModuleGetGlobal(&again, &size, fixture.module, "table"));
	check_eq(size, 64 * sizeof(int));
	check(again != variable);
	twice(cuFuncGetModule(&module, function));
	check(module == fixture.module);
	check_ok(cuModuleUnload(fixture.module));
}

TEST(what_a_function_is)
{
	/* char, double, short, int, float, long long, double * */
	static const size_t offsets[] = { 0, 8, 16, 20, 24, 32, 40 };
	struct fixture fixture = fixture_new();
	CUfunction pack = fixture_function(&fixture, "pack");
	CUfunction fill = fixture_function(&fixture, "fill");
	const char *name = NULL, *again = NULL;
	size_t offset, size;

	for (size_t i = 0; i < 7; i++) {
		twice(cuFuncGetParamInfo(pack, i, &offset, &size));
		check_eq(offset, offsets[i]);
	}
	check_eq(size, sizeof(CUdeviceptr));
	check_ok(cuFuncGetParamInfo(fill, 1, &offset, NULL));
	check_eq(offset, 8);
	twice_refused(
		cuFuncGetParamInfo(pack, 7, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	twice(cuFuncGetName(&name, pack));
	check(!strcmp(name, "pack"));
	check_ok(cuFuncGetName(&again, pack));
	check(name == again);
	check(attribute(pack, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) >= 64);
	check_eq(attribute(pack, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
	check(attribute(fixture_function(&fixture, "matrix_mul"),
		      CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) > 0);
	twice_refused(cuFuncGetAttribute(&(int){ 0 }, CU_FUNC_ATTRIBUTE_MAX, pack),
		CUDA_ERROR_INVALID_VALUE);
	twice(cuFuncLoad(pack));
}

TEST(what_a_library_holds)
{
	struct fixture fixture = fixture_new();
	CUkernel kernel = NULL, all[64] = {};
	CUfunction function = NULL;
	CUmodule module = NULL;
	CUlibrary library, same = NULL;
	CUdeviceptr variable = 0;
	const char *name = NULL;
	unsigned int n = 0;
	size_t offset, size;
	int value = -1;

	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	twice(cuLibraryGetKernel(&kernel, library, "fill"));
	twice(cuLibraryGetKernelCount(&n, library));
	check(n > 2 && n <= 64);
	twice(cuLibraryEnumerateKernels(all, n, library));
	twice(cuLibraryGetModule(&module, library));
	twice(cuLibraryGetGlobal(&variable, &size, library, "answer"));
	check_eq(device_word(variable), 42);
	twice(cuKernelGetFunction(&function, kernel));
	twice(cuKernelGetLibrary(&same, kernel));
	check(same == library);
	twice(cuKernelGetName(&name, kernel));
	check(!strcmp(name, "fill"));
	twice(cuKernelGetParamInfo(kernel, 2, &offset, &size));
	check_eq(offset, 12);
	twice(cuKernelGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, fixture.device));
	check(value >= 64);
	twice_refused(cuLibraryGetKernel(&kernel, library, "nothing of that name"),
		CUDA_ERROR_NOT_FOUND);

	check_ok(cuLibraryUnload(library));
	twice_refused(
		cuLibraryGetKernel(&kernel, library, "fill"), CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuLibraryGetKernelCount(&n, library), CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuLibraryGetGlobal(&variable, &size, library, "answer"),
		CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
	twice_refused(
		cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
			kernel, fixture.device),
		CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuKernelGetParamInfo(kernel, 2, &offset, &size),
		CUDA_ERROR_INVALID_HANDLE);
}

TEST(nothing_of_an_unloaded_module_is_remembered)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "fill");
	const char *name;
	int value;
	size_t n;

	check(attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) >= 64);
	twice(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 64, 0));
	twice(cuFuncGetParamInfo(function, 0, &n, NULL));
	twice(cuFuncGetName(&name, function));
	check_ok(cuModuleUnload(fixture.module));
	twice_refused(cuModuleGetFunction(&function, fixture.module, "fill"),
		CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuFuncGetAttribute(
			      &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
		CUDA_ERROR_INVALID_HANDLE);
	twice_refused(
		cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 64, 0),
		CUDA_ERROR_INVALID_HANDLE);
	twice_refused(
		cuFuncGetParamInfo(function, 0, &n, NULL), CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuFuncGetName(&name, function), CUDA_ERROR_INVALID_HANDLE);
}

TEST(an_attribute_that_is_set_is_returned)
{
	const CUfunction_attribute dynamic =
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "dynamic_shared");
	CUfunction other = fixture_function(&fixture, "fill");
	int of_other = attribute(other, dynamic), n = 0;

	check(attribute(function, dynamic) > 8192);
	check_ok(cuFuncSetAttribute(function, dynamic, 8192));
	check_eq(attribute(function, dynamic), 8192);
	twice(cuFuncSetAttribute(function, dynamic, 8192));
	check_eq(attribute(other, dynamic), of_other);
	check_cu(
		cuFuncSetAttribute(function, dynamic, 1 << 30), CUDA_ERROR_INVALID_VALUE);
	check_eq(attribute(function, dynamic), 8192);
	check_ok(cuFuncSetAttribute(function, dynamic, 4096));
	check_eq(attribute(function, dynamic), 4096);
	check_ok(cuFuncSetAttribute(function, dynamic, 8192));
	check_eq(attribute(function, dynamic), 8192);
	check_ok(cuFuncSetAttribute(function, dynamic, 4096));
	check_eq(attribute(function, dynamic), 4096);
	twice(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&n, function, 64, 4096, 0));
	check(n > 0);
}

TEST(a_kernel_that_is_set_as_it_was_is_launched_as_before)
{
	const CUfunction_attribute dynamic =
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	struct fixture fixture = fixture_new();
	int now = 0, n = 64;
	void *parameters[2];
	CUlibrary library;
	CUdeviceptr out;
	CUkernel kernel;

	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernel(&kernel, library, "dynamic_shared"));
	check_ok(cuMemAlloc(&out, n * sizeof(int)));
	parameters[0] = &out;
	parameters[1] = &n;
	for (int size = 4096; size <= 65536; size *= 4) {
		check_ok(cuKernelSetAttribute(dynamic, size, kernel, fixture.device));
		check_ok(cuKernelGetAttribute(&now, dynamic, kernel, fixture.device));
		check_eq(now, size);
		twice(cuKernelSetAttribute(dynamic, size, kernel, fixture.device));
		check_ok(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, n, 1, 1, size, NULL,
			parameters, NULL));
		check_eq(device_word(out), (n - 1) * (n - 1));
		check_cu(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, n, 1, 1, size + 16,
				 NULL, parameters, NULL),
			CUDA_ERROR_INVALID_VALUE);
	}
	check_ok(cuLibraryUnload(library));
	twice_refused(cuKernelSetAttribute(dynamic, 4096, kernel, fixture.device),
		CUDA_ERROR_INVALID_HANDLE);
}

TEST(occupancy)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "dynamic_shared");
	int small = 0, large = 0, grid, block;
	size_t shared = 0;

	twice(cuOccupancyMaxActiveBlocksPerMultiprocessor(&small, function, 32, 0));
	twice(cuOccupancyMaxActiveBlocksPerMultiprocessor(&large, function, 1024, 32768));
	check(small > large);
	twice(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&large, function, 32, 0, CU_OCCUPANCY_DEFAULT));
	check_eq(large, small);
	twice(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function, 1, 32));
	check(shared > 0);
	twice(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
	check(grid > 0 && block > 0);
}

TEST(limits_and_splits_of_a_context)
{
	CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
	int least = -9, greatest = 9;
	CUsharedconfig banks;
	size_t stack;

	fixture_new();
	stack = limit(CU_LIMIT_STACK_SIZE);
	check_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 1024));
	check(limit(CU_LIMIT_STACK_SIZE) >= stack + 1024);
	check(limit(CU_LIMIT_PRINTF_FIFO_SIZE) > 0);
	twice(cuCtxGetCacheConfig(&cache));
	check_ok(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	twice(cuCtxGetCacheConfig(&cache));
	check(cache == CU_FUNC_CACHE_PREFER_L1 || cache == CU_FUNC_CACHE_PREFER_NONE);
	twice(cuCtxGetSharedMemConfig(&banks));
	twice(cuCtxGetStreamPriorityRange(&least, &greatest));
	check(least >= greatest && least != -9);
}

TEST(two_contexts_are_not_taken_for_each_other)
{
	struct fixture fixture = fixture_new();
	size_t stack = limit(CU_LIMIT_STACK_SIZE);
	CUcontext other;

	check_ok(cuCtxCreate(&other, NULL, 0, fixture.device));
	check_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 4096));
	check(limit(CU_LIMIT_STACK_SIZE) >= stack + 4096);
	check_ok(cuCtxSetCurrent(fixture.context));
	check_eq(limit(CU_LIMIT_STACK_SIZE), stack);
	check_ok(cuCtxDestroy(other));
}

TEST(nothing_outlives_the_reset_of_a_context)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "fill"), again;
	size_t stack = limit(CU_LIMIT_STACK_SIZE);

	twice(cuModuleGetFunction(&again, fixture.module, "fill"));
	check(again == function);
	check_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 4096));
	check(limit(CU_LIMIT_STACK_SIZE) >= stack + 4096);
	check_ok(cuDevicePrimaryCtxReset(fixture.device));
	check_cu(cuModuleGetFunction(&again, fixture.module, "fill"),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_ok(cuDevicePrimaryCtxRetain(&fixture.context, fixture.device));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_eq(limit(CU_LIMIT_STACK_SIZE), stack);
	twice_refused(cuModuleGetFunction(&again, fixture.module, "fill"),
		CUDA_ERROR_INVALID_HANDLE);
}

TEST(nothing_outlives_the_last_release_of_a_context)
{
	struct fixture fixture = fixture_new();
	size_t stack = limit(CU_LIMIT_STACK_SIZE);

	check_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 4096));
	check(limit(CU_LIMIT_STACK_SIZE) >= stack + 4096);
	check_ok(cuDevicePrimaryCtxRelease(fixture.device));
	check_ok(cuDevicePrimaryCtxRetain(&fixture.context, fixture.device));
	check_eq(limit(CU_LIMIT_STACK_SIZE), stack);
}

TEST(what_a_stream_is)
{
	unsigned long long number = 0, of_other = 0;
	CUstreamAttrValue value = {};
	CUstream stream, other;
	unsigned int flags = 9;
	struct fixture fixture;
	CUcontext context;
	int priority = 9;

	fixture = fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&other, CU_STREAM_DEFAULT));
	twice(cuStreamGetFlags(stream, &flags));
	check_eq(flags, CU_STREAM_NON_BLOCKING);
	twice(cuStreamGetFlags(other, &flags));
	check_eq(flags, CU_STREAM_DEFAULT);
	twice(cuStreamGetPriority(stream, &priority));
	check_eq(priority, 0);
	twice(cuStreamGetId(stream, &number));
	twice(cuStreamGetId(other, &of_other));
	check(number != of_other);
	twice(cuStreamGetCtx(stream, &context));
	check(context == fixture.context);
	twice(cuStreamGetAttribute(
		stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	check_ok(cuStreamSetAttribute(
		stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	value.syncPolicy = 0;
	twice(cuStreamGetAttribute(
		stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	check_eq(value.syncPolicy, CU_SYNC_POLICY_YIELD);
	check_ok(cuStreamDestroy(stream));
	twice_refused(cuStreamGetFlags(stream, &flags), CUDA_ERROR_INVALID_HANDLE);
	twice_refused(cuStreamGetId(stream, &number), CUDA_ERROR_INVALID_HANDLE);
	twice(cuStreamGetId(other, &of_other));
}

static void *own_stream(void *number)
{
	struct fixture fixture = fixture_new();

	twice(cuStreamGetId(CU_STREAM_PER_THREAD, number));
	check_ok(cuModuleUnload(fixture.module));
	return NULL;
}

TEST(each_thread_has_a_default_stream_of_its_own)
{
	unsigned long long numbers[3] = {};
	pthread_t thread;

	own_stream(&numbers[0]);
	for (int i = 1; i < 3; i++) {
		check_eq(pthread_create(&thread, NULL, own_stream, &numbers[i]), 0);
		check_eq(pthread_join(thread, NULL), 0);
	}
	check(numbers[0] != numbers[1]);
	check(numbers[0] != numbers[2]);
	check(numbers[1] != numbers[2]);
}

static void *set_limit(void *value)
{
	fixture_new();
	check_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, *(size_t *)value));
	return NULL;
}

TEST(values_set_by_another_thread_are_returned)
{
	pthread_t thread;
	size_t stack;

	fixture_new();
	stack = limit(CU_LIMIT_STACK_SIZE) + 2048;
	check_eq(pthread_create(&thread, NULL, set_limit, &stack), 0);
	check_eq(pthread_join(thread, NULL), 0);
	/* So that the queries before and after are not consecutive. */
	check_ok(cuCtxSynchronize());
	check(limit(CU_LIMIT_STACK_SIZE) >= stack);
}

static void *look_up(void *module)
{
	CUfunction function, first = NULL;
	CUcontext context;
	int value;

	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	for (int i = 0; i < 500; i++) {
		check_ok(cuModuleGetFunction(&function, module, "fill"));
		check(!first || function == first);
		first = function;
		check_ok(cuFuncGetAttribute(&value,
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
		check(value >= 1024 && value % 1024 == 0);
	}
	return NULL;
}

TEST(threads_that_look_up_while_one_unloads_and_sets)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "fill");
	pthread_t threads[4];
	CUmodule module;
	int value = 0;

	check_ok(cuFuncSetAttribute(
		function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
	for (int i = 0; i < 4; i++)
		check_eq(pthread_create(&threads[i], NULL, look_up, fixture.module), 0);
	for (int i = 1; i <= 20; i++) {
		check_ok(cuModuleLoadData(&module, kernels_ptx));
		check_ok(cuFuncSetAttribute(function,
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, i * 1024));
		check_ok(cuFuncGetAttribute(&value,
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
		check_eq(value, i * 1024);
		check_ok(cuModuleUnload(module));
	}
	for (int i = 0; i < 4; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
}

TEST(devices)
{
	int value = 0, major = 0, minor = 0;
	unsigned int flags;
	size_t bytes = 0;
	char name[256];
	CUuuid uuid;

	fixture_new();
	twice(cuDeviceGetCount(&value));
	check(value > 0);
	twice(cuDeviceGetName(name, sizeof(name), 0));
	twice(cuDeviceTotalMem(&bytes, 0));
	check(bytes > 0);
	twice(cuDeviceGetUuid(&uuid, 0));
	twice(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	check_eq(value, 32);
	twice(cuDeviceComputeCapability(&major, &minor, 0));
	check(major >= 5);
	twice(cuDeviceGetPCIBusId(name, sizeof(name), 0));
	twice(cuDriverGetVersion(&value));
	twice(cuDevicePrimaryCtxGetState(0, &flags, &value));
	check_eq(value, 1);
	twice(cuDeviceGetTexture1DLinearMaxWidth(&bytes, CU_AD_FORMAT_FLOAT, 1, 0));
	check(bytes > 0);
}
