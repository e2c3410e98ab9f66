/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: contexts
 */

#include "api.h"

TEST(the_primary_context_is_one_object_for_life)
{
	CUcontext first = context_new(), second, current;
	unsigned int flags;
	int active;

	check_ok(cuDevicePrimaryCtxRetain(&second, 0));
	check(first == second);
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuCtxGetCurrent(&current));
	check(current == first);
	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 0);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_cu(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuDevicePrimaryCtxRetain(&second, 0));
	check(first == second);
	check_ok(cuCtxSynchronize());
}

TEST(a_primary_context_may_be_current_before_it_is_retained)
{
	CUcontext context = context_new();
	CUdeviceptr address;

	check_ok(cuDevicePrimaryCtxRelease(0));
	check_ok(cuCtxSetCurrent(NULL));
	check_ok(cuCtxSetCurrent(context));
	check_cu(cuMemAlloc(&address, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuMemAlloc(&address, 4));
}

TEST(explicit_contexts_stack_up)
{
	CUcontext one, two, popped, current;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&one, NULL, 0, 0));
	check_ok(cuCtxCreate(&two, NULL, 0, 0));
	check(one != two);
	check_ok(cuCtxGetCurrent(&current));
	check(current == two);
	check_ok(cuCtxPopCurrent(&popped));
	check(popped == two);
	check_ok(cuCtxGetCurrent(&current));
	check(current == one);
	check_ok(cuCtxPushCurrent(two));
	check_ok(cuCtxDestroy(two));
	check_ok(cuCtxGetCurrent(&current));
	check(current == one);
	check_cu(cuCtxPushCurrent(two), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(cuCtxDestroy(one));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxDestroy((CUcontext)0x12345678), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(destroying_a_context_frees_its_memory_and_ends_its_kernels)
{
	volatile unsigned int *word;
	size_t before, after, total;
	CUcontext context;
	CUstream stream;
	CUevent event;

	context_new();
	check_ok(cuMemGetInfo(&before, &total));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	word = pinned_memory(4096);
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuEventCreate(&event, 0));
	check_ok(launch_gate(word, device_memory(4), stream));
	check_ok(cuEventRecord(event, stream));
	check_ok(cuCtxDestroy(context));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before, after);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_reset_takes_everything_and_leaves_the_context_usable)
{
	size_t before, after, total;
	CUdeviceptr address;
	CUmodule module;
	CUstream stream;

	context_new();
	check_ok(cuMemGetInfo(&before, &total));
	check_ok(cuMemAlloc(&address, 1 << 20));
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuDevicePrimaryCtxReset(0));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before, after);
	check_cu(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuMemAlloc(&address, 1 << 20));
}

TEST(limits_are_kept)
{
	size_t value;

	context_new();
	check_ok(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 12345));
	check_ok(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
	check_eq(value, 12345);
	check_cu(
		cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1ull << 40), CUDA_ERROR_INVALID_VALUE);
}

TEST(limits_of_what_there_is_not_are_zero_and_stay_so)
{
	static const CUlimit absent[] = { CU_LIMIT_SHMEM_SIZE, CU_LIMIT_CIG_ENABLED,
		CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED };
	size_t value;

	context_new();
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		value = 1;
		check_cu(cuCtxSetLimit(absent[i], 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
		check_ok(cuCtxGetLimit(&value, absent[i]));
		check_eq(value, 0);
	}
	check_ok(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 20));
	check_ok(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
	check_eq(value, 0);
}

TEST(limits_that_no_device_has_are_unsupported)
{
	static const int unsupported[] = { CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, CU_LIMIT_MAX,
		-1, INT32_MAX };
	size_t value;

	context_new();
	for (size_t i = 0; i < sizeof(unsupported) / sizeof(*unsupported); i++) {
		check_cu(cuCtxGetLimit(&value, (CUlimit)unsupported[i]),
			CUDA_ERROR_UNSUPPORTED_LIMIT);
		check_cu(cuCtxSetLimit((CUlimit)unsupported[i], 1),
			CUDA_ERROR_UNSUPPORTED_LIMIT);
	}
}
