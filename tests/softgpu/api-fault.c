/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: faults of kernels
 */

#include "api.h"
#include "softgpu.h"

TEST(an_illegal_address_is_reported_and_sticks)
{
	CUdeviceptr address, other;
	unsigned int word;
	CUevent event;

	context_new();
	address = device_memory(4);
	check_ok(cuEventCreate(&event, 0));
	check_ok(launch_store(0x1000, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemAlloc(&other, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemcpyDtoH(&word, address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuEventRecord(event, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(work_after_a_fault_is_not_run)
{
	volatile unsigned int *words;
	CUstream stream;

	context_new();
	words = pinned_memory(4096);
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(launch_gate(words, (uintptr_t)(words + 1), stream));
	check_ok(launch_store(0, 1, stream));
	check_ok(launch_store((uintptr_t)(words + 2), 1, stream));
	check_ok(cuStreamWriteValue32(stream, (uintptr_t)(words + 3), 1, 0));
	open_gate(words);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(words[1], 1);
	check_eq(words[2], 0);
	check_eq(words[3], 0);
}

TEST(a_reset_clears_a_fault)
{
	CUmodule module;
	CUfunction store;
	CUdeviceptr address;
	unsigned int value = 3;
	void *params[] = { &address, &value };

	context_new();
	check_ok(launch_store(4, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuDevicePrimaryCtxReset(0));
	check_ok(cuCtxSynchronize());
	address = device_memory(4);
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&store, module, "store"));
	check_ok(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(address), 3);
}

TEST(a_fault_stays_in_its_context)
{
	CUcontext primary = context_new(), other;
	CUdeviceptr address = device_memory(4);

	check_ok(launch_store(address, 1, NULL));
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	check_ok(cuCtxPopCurrent(NULL));
	check_ok(launch_store(8, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuCtxPushCurrent(other));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemAlloc(&address, 4));
	check_ok(cuMemsetD32(address, 6, 1));
	check_eq(device_word(address), 6);
	check(other != primary);
}

TEST(memory_that_was_freed_is_illegal)
{
	CUdeviceptr address;

	context_new();
	check_ok(cuMemAlloc(&address, 1 << 20));
	check_ok(launch_store(address, 1, NULL));
	check_ok(cuMemFree(address));
	check_ok(launch_store(address, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(running_over_the_end_of_an_array_is_illegal)
{
	CUdeviceptr address;

	context_new();
	check_ok(cuMemAlloc(&address, 1 << 20));
	check_ok(launch_store(address + (1 << 20) + (64 << 10), 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Accesses that devices tolerate: the first word after an array, and the last one
 * before. */
TEST(an_access_one_word_out_of_bounds_is_tolerated)
{
	CUdeviceptr first, large;

	context_new();
	check_ok(cuMemAlloc(&first, 4));
	check_ok(cuMemAlloc(&large, 1 << 20));
	check_ok(launch_store(first + 4, 1, NULL));
	check_ok(launch_store(first - 4, 1, NULL));
	check_ok(launch_store(large + (1 << 20), 1, NULL));
	check_ok(cuCtxSynchronize());
}

static void check_miss(uint64_t size, int64_t off)
{
	CUdeviceptr address;

	setenv("VGPU_SOFTGPU_CHECK", "1", 1);
	context_new();
	check_ok(cuMemAlloc(&address, size));
	check_ok(launch_store(address, 1, NULL));
	check_ok(launch_store(address + (size - 4) / 4 * 4, 1, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(launch_store(address + off, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(check_finds_a_miss_before_a_small_array)
{
	check_miss(4, -4);
}

TEST(check_finds_an_access_beyond_a_small_array)
{
	check_miss(4, 4);
}

TEST(check_finds_a_miss_of_a_part_of_a_word)
{
	check_miss(10, 8);
}

TEST(check_finds_an_access_beyond_a_large_array)
{
	check_miss(1 << 20, 1 << 20);
}

/* Stores a word after n words of dynamic shared memory. */
static CUresult run_shared(unsigned int size)
{
	static const char text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				   ".extern .shared .align 4 .b8 words[];\n"
				   ".visible .entry over(.param .u32 size) {\n"
				   ".reg .b32 %r<4>;\nld.param.u32 %r0, [size];\n"
				   "mov.u32 %r1, words; add.u32 %r1, %r1, %r0;\n"
				   "st.shared.u32 [%r1], %r0; ret; }\n";
	void *params[] = { &size };
	CUfunction over;
	CUmodule module;

	context_new();
	check_ok(cuModuleLoadData(&module, text));
	check_ok(cuModuleGetFunction(&over, module, "over"));
	check_ok(cuLaunchKernel(over, 1, 1, 1, 1, 1, 1, size, NULL, params, NULL));
	return cuCtxSynchronize();
}

TEST(an_access_beyond_shared_memory_is_tolerated_within_its_unit)
{
	check_ok(run_shared(100));
	check_ok(run_shared(124));
	check_cu(run_shared(128), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(check_finds_a_miss_of_shared_memory)
{
	setenv("VGPU_SOFTGPU_CHECK", "1", 1);
	check_cu(run_shared(100), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_misaligned_address_has_a_separate_error_code)
{
	context_new();
	check_ok(launch_store(device_memory(64) + 2, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST(a_trap_is_a_failed_launch)
{
	context_new();
	check_ok(cuLaunchKernel(kernel("traps"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(a_kernel_that_runs_too_long_is_ended)
{
	struct softgpu_config config = { .size = sizeof(config), .timeout_ms = 50 };
	volatile unsigned int *word;

	check_eq(softgpu_configure(&config), 0);
	context_new();
	word = pinned_memory(4096);
	check_ok(launch_gate(word, device_memory(4), NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}
