/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: kernels that are watched. Findings are fatal here, so that calls tell.
 */

#include <errno.h>

#include "api.h"
#include "softgpu.h"

static void begin(const char *check)
{
	setenv("VGPU_SOFTGPU_CHECK", check, 1);
	context_new();
}

/* Loads n words; the sum goes elsewhere. */
static CUresult load(CUdeviceptr from, unsigned int n)
{
	static CUdeviceptr to;
	void *params[] = { &to, &from, &n };

	if (!to)
		to = device_memory(4);
	check_ok(cuLaunchKernel(
		kernel("sum"), (n + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	return cuCtxSynchronize();
}

#define UNINITIALISED "uninitialised,fatal"

TEST(a_load_of_new_memory_is_found)
{
	CUdeviceptr address;

	begin(UNINITIALISED);
	check_ok(cuMemAlloc(&address, 4096));
	check_cu(load(address, 1), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(one_word_that_was_left_out_is_found)
{
	CUdeviceptr address;
	unsigned int words[63] = {};

	begin(UNINITIALISED);
	check_ok(cuMemAlloc(&address, 256));
	check_ok(cuMemcpyHtoD(address, words, sizeof(words)));
	check_ok(load(address, 63));
	check_cu(load(address, 64), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(every_operation_that_writes_memory_counts)
{
	CUdeviceptr address, other;
	unsigned int words[64] = {};
	size_t pitch;

	begin(UNINITIALISED);
	check_ok(cuMemAlloc(&address, 4096));
	check_ok(cuMemcpyHtoD(address, words, 256));
	check_ok(load(address, 64));
	check_ok(cuMemsetD8(address + 256, 1, 3));
	check_ok(cuMemsetD8(address + 259, 1, 1));
	check_ok(load(address, 65));
	check_ok(cuMemAlloc(&other, 1 << 20));
	check_ok(cuMemcpyDtoD(other + 4096, address, 260));
	check_ok(load(other + 4096, 65));
	check_ok(cuMemsetD32(other, 7, 1024));
	check_ok(load(other, 1024 + 65));
	check_ok(cuStreamWriteValue32(NULL, other + 8192, 7, 0));
	check_ok(load(other + 8192, 1));
	check_ok(launch_store(other + 8196, 1, NULL));
	check_ok(load(other + 8192, 2));
	check_ok(cuMemAllocPitch(&address, &pitch, 100, 4, 4));
	check_ok(cuMemsetD2D8(address, pitch, 0, 100, 4));
	check_ok(load(address + 3 * pitch, 25));
	check_cu(load(address, 26), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(memory_that_is_allocated_again_is_new)
{
	CUdeviceptr address, again;

	begin(UNINITIALISED);
	address = device_memory(1 << 20);
	check_ok(load(address, 64));
	check_ok(cuMemFree(address));
	check_ok(cuMemAlloc(&again, 1 << 20));
	check_eq(again, address);
	check_cu(load(again, 64), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(memory_that_the_host_writes_too_is_never_new)
{
	CUdeviceptr managed;

	begin(UNINITIALISED);
	check_ok(load((uintptr_t)pinned_memory(4096), 64));
	check_ok(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	check_ok(load(managed, 64));
}

TEST(a_graph_writes_memory)
{
	CUDA_MEMSET_NODE_PARAMS params = { .elementSize = 4, .width = 64, .height = 1 };
	CUgraphNode node;
	CUgraphExec exec;
	CUcontext context;
	CUgraph graph;

	begin(UNINITIALISED);
	check_ok(cuCtxGetCurrent(&context));
	check_ok(cuMemAlloc(&params.dst, 256));
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
	check_ok(cuGraphInstantiate(&exec, graph, 0));
	check_ok(cuGraphLaunch(exec, NULL));
	check_ok(load(params.dst, 64));
}

TEST(what_is_kept_counts_against_the_memory)
{
	struct softgpu_config config = {
		.size = sizeof(config), .memory = 64 << 20, .check = "uninitialised"
	};
	CUdeviceptr address;
	size_t before, after, total;

	check_eq(softgpu_configure(&config), 0);
	context_new();
	check_ok(cuMemGetInfo(&before, &total));
	check_ok(cuMemAlloc(&address, 32 << 20));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before - after, 36 << 20);
	check_ok(cuMemFree(address));
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before, after);
	check_cu(cuMemAlloc(&address, 60 << 20), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(freed_memory_is_not_used_again_at_once)
{
	CUdeviceptr address, other;

	begin("memory");
	for (unsigned int i = 0; i < 2; i++) {
		size_t size = i ? 1 << 20 : 512;

		check_ok(cuMemAlloc(&address, size));
		check_ok(cuMemFree(address));
		check_ok(cuMemAlloc(&other, size));
		check(other != address);
	}
	check_ok(launch_store(address, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(all_memory_can_be_allocated_again)
{
	struct softgpu_config config = {
		.size = sizeof(config), .memory = 64 << 20, .check = "memory"
	};
	CUdeviceptr address;

	check_eq(softgpu_configure(&config), 0);
	context_new();
	for (unsigned int i = 0; i < 100; i++) {
		check_ok(cuMemAlloc(&address, 60 << 20));
		check_ok(cuMemFree(address));
	}
	for (unsigned int i = 0; i < 100000; i++) {
		check_ok(cuMemAlloc(&address, 30000));
		check_ok(cuMemFree(address));
	}
}

TEST(arrays_have_nothing_beside_them)
{
	CUdeviceptr first, second;

	begin("memory");
	check_ok(cuMemAlloc(&first, 512));
	check_ok(cuMemAlloc(&second, 512));
	check(first + 512 < second || second + 512 < first);
	check_ok(launch_store(first + 508, 1, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(launch_store(first + 512, 1, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(kernels_without_a_finding_run_with_all_checks)
{
	unsigned int words[256] = { 1, 2, 3 }, n = 256;
	CUdeviceptr to, from;
	void *params[] = { &to, &from, &n };

	begin("memory, race, uninitialised, fatal");
	to = device_memory(4);
	from = device_memory(1024);
	check_ok(cuMemcpyHtoD(from, words, sizeof(words)));
	check_ok(
		cuLaunchKernel(kernel("sum"), 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(to), 6);
}

/* Kernels write memory that is checked to the byte, too. */
TEST(checks_are_independent_of_each_other)
{
	CUdeviceptr address;

	begin("memory,uninitialised,fatal");
	check_ok(cuMemAlloc(&address, 8));
	check_ok(launch_store(address + 4, 1, NULL));
	check_ok(load(address + 4, 1));
	check_cu(load(address, 1), CUDA_ERROR_LAUNCH_FAILED);
}

TEST(a_word_that_is_no_check_is_refused)
{
	static const char *const lists[] = { "", "memory,", "races", "memory race" };
	struct softgpu_config config = { .size = sizeof(config) };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		config.check = lists[i];
		check_eq(softgpu_configure(&config), -EINVAL);
	}
}
