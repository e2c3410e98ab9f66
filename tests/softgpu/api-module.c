/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: modules, libraries and functions
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "fatbin/standin.h"

TEST(variables_have_their_values_and_keep_what_is_written)
{
	CUdeviceptr address, out, factors;
	CUmodule module;
	CUfunction function;
	size_t size;
	void *params[] = { &out };

	context_new();
	out = device_memory(4);
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetGlobal(&address, &size, module, "answer"));
	check_eq(size, 4);
	check_eq(device_word(address), 42);
	check_ok(cuModuleGetGlobal(&factors, &size, module, "factors"));
	check_eq(size, 16);
	check_eq(device_word(factors + 8), 3);
	check_ok(cuModuleGetFunction(&function, module, "variables"));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(out), 42 + 4 + 1);
	check_ok(cuMemsetD32(address, 100, 1));
	check_ok(cuMemsetD32(factors + 12, 1000, 1));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(out), 100 + 1000 + 2);
	check_ok(cuModuleUnload(module));
	check_cu(cuModuleGetGlobal(&address, &size, module, "answer"),
		CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
}

TEST(missing_names_are_not_found)
{
	CUmodule module;
	CUfunction function;
	CUdeviceptr address;
	size_t size;

	context_new();
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_cu(cuModuleGetFunction(&function, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetFunction(&function, module, "answer"), CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetGlobal(&address, &size, module, "store"),
		CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetFunction(&function, (CUmodule)0x4242, "store"),
		CUDA_ERROR_INVALID_HANDLE);
}

TEST(images_that_cannot_be_run_have_their_codes)
{
	static const char elf[64] = "\177ELF";
	static const char newer[] = ".version 99.0\n.target sm_70\n.address_size 64\n";
	static const char target[] = ".version 8.7\n.target sm_999\n.address_size 64\n";
	static const char broken[] =
		".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry (\n";
	CUmodule module;

	context_new();
	check_cu(cuModuleLoadData(&module, elf), CUDA_ERROR_NO_BINARY_FOR_GPU);
	check_cu(cuModuleLoadData(&module, "no image at all"), CUDA_ERROR_INVALID_IMAGE);
	check_cu(cuModuleLoadData(&module, newer), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	check_cu(cuModuleLoadData(&module, broken), CUDA_ERROR_INVALID_PTX);
	check_cu(cuModuleLoadData(&module, target), CUDA_ERROR_NO_BINARY_FOR_GPU);
	check_cu(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuModuleLoad(&module, "/nonexistent/file"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST(ptx_in_place_of_a_cubin_is_loaded_and_run)
{
	static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
				  ".visible .entry k(.param .u64 p) { .reg .b64 %d;\n"
				  "ld.param.u64 %d, [p]; st.global.u32 [%d], 7; ret; }\n";
	char path[] = "/tmp/vgpu-standin-XXXXXX";
	uint32_t word = 0;
	CUfunction kernel;
	CUdeviceptr memory;
	CUmodule module;
	uint8_t *bytes;
	size_t size;
	int fd;

	context_new();
	check(!standin_new(90, ptx, strlen(ptx), "k\n", &bytes, &size));
	check_cu(cuModuleLoadData(&module, bytes), CUDA_SUCCESS);
	check_cu(cuModuleGetFunction(&kernel, module, "k"), CUDA_SUCCESS);
	check_cu(cuMemAlloc(&memory, sizeof(word)), CUDA_SUCCESS);
	check_cu(cuLaunchKernel(
			 kernel, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &memory }, NULL),
		CUDA_SUCCESS);
	check_cu(cuMemcpyDtoH(&word, memory, sizeof(word)), CUDA_SUCCESS);
	check_eq(word, 7);
	/* A file may end before its tables say. */
	fd = mkstemp(path);
	check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	check_cu(cuModuleLoad(&module, path), CUDA_SUCCESS);
	check(!ftruncate(fd, size - 1));
	check_cu(cuModuleLoad(&module, path), CUDA_ERROR_INVALID_IMAGE);
	check(!ftruncate(fd, 70));
	check_cu(cuModuleLoad(&module, path), CUDA_ERROR_INVALID_IMAGE);
	check(!ftruncate(fd, 8));
	check_cu(cuModuleLoad(&module, path), CUDA_ERROR_INVALID_IMAGE);
	unlink(path);
	close(fd);
	free(bytes);
}

TEST(the_error_log_has_the_reason)
{
	static const char broken[] =
		".version 7.0\n.target sm_70\n.address_size 64\n\n.visible .entry (\n";
	char log[200] = "untouched";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	CUmodule module;

	context_new();
	check_cu(cuModuleLoadDataEx(&module, broken, 2, options, values),
		CUDA_ERROR_INVALID_PTX);
	check(strstr(log, "line 5"));
	check_eq((uintptr_t)values[1], strlen(log));
}

/* Text of a module with a kernel "runs", and one that needs too many registers. */
static char *module_in_part(void)
{
	enum { N = 70000 };
	char *text = malloc(N * 100), *at = text;

	at += sprintf(at,
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry runs(.param .u64 p) { .reg .b64 %%d;\n"
		"ld.param.u64 %%d, [p]; st.global.u32 [%%d], 7; ret; }\n"
		".visible .entry large(.param .u32 n, .param .u64 p) {\n"
		".reg .b64 %%d; .reg .b32 %%r<%d>; ld.param.u64 %%d, [p];\n",
		N);
	for (int i = 0; i < N; i++)
		at += sprintf(at, "ld.global.u32 %%r%d, [%%d];\n", i);
	for (int i = 0; i < N; i++)
		at += sprintf(at, "st.global.u32 [%%d], %%r%d;\n", i);
	sprintf(at, "ret; }\n");
	return text;
}

TEST(a_kernel_that_cannot_be_run_is_found_and_refused_when_it_is_launched)
{
	char *text = module_in_part();
	CUfunction runs, large;
	CUdeviceptr out;
	unsigned int n = 1;
	void *one[] = { &out }, *two[] = { &n, &out };
	size_t offset, size;
	CUmodule module;
	const char *name;

	context_new();
	out = device_memory(4);
	check_ok(cuModuleLoadData(&module, text));
	free(text);
	check_ok(cuModuleGetFunction(&large, module, "large"));
	check_ok(cuFuncGetName(&name, large));
	check_str(name, "large");
	check_ok(cuFuncGetParamInfo(large, 1, &offset, &size));
	check_eq(offset, 8);
	check_eq(size, 8);
	check_cu(cuFuncGetParamInfo(large, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuModuleGetFunction(&runs, module, "runs"));
	for (int i = 0; i < 2; i++)
		check_cu(cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, NULL, two, NULL),
			CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuLaunchKernel(runs, 1, 1, 1, 1, 1, 1, 0, NULL, one, NULL));
	check_eq(device_word(out), 7);
}

TEST(functions_tell_their_attributes)
{
	CUfunction function;
	size_t offset, size;
	const char *name;
	int value;

	context_new();
	function = kernel("sum");
	check_ok(cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
	check_eq(value, 1024);
	check_ok(cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel("bounded")));
	check_eq(value, 64);
	check_ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function));
	check_eq(value, 70);
	check_ok(cuFuncGetName(&name, function));
	check_str(name, "sum");
	function = kernel("many");
	check_ok(cuFuncGetParamInfo(function, 0, &offset, &size));
	check_eq(offset, 0);
	check_eq(size, 1);
	check_ok(cuFuncGetParamInfo(function, 1, &offset, &size));
	check_eq(offset, 8);
	check_eq(size, 8);
	check_ok(cuFuncGetParamInfo(function, 2, &offset, &size));
	check_eq(offset, 16);
	check_eq(size, 400);
	check_cu(cuFuncGetParamInfo(function, 3, &offset, &size),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_library_serves_every_context)
{
	CUcontext primary = context_new(), other;
	CUdeviceptr one, two, out;
	CUlibrary library;
	CUfunction function;
	CUkernel kernel, again;
	unsigned int n;
	size_t size;
	void *params[] = { &out };

	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernelCount(&n, library));
	check(n >= 8);
	check_ok(cuLibraryGetKernel(&kernel, library, "variables"));
	check_ok(cuLibraryGetKernel(&again, library, "variables"));
	check(kernel == again);
	check_cu(cuLibraryGetKernel(&again, library, "none"), CUDA_ERROR_NOT_FOUND);
	check_ok(cuKernelGetParamInfo(kernel, 0, &size, &size));

	out = device_memory(4);
	check_ok(cuLaunchKernel(
		(CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(out), 47);
	check_ok(cuKernelGetFunction(&function, kernel));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(out), 48);
	check_ok(cuLibraryGetGlobal(&one, &size, library, "answer"));

	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	check_ok(cuLibraryGetGlobal(&two, &size, library, "answer"));
	check(one != two);
	out = device_memory(4);
	check_ok(cuLaunchKernel(
		(CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(out), 47);
	check_ok(cuCtxDestroy(other));
	check_ok(cuCtxSetCurrent(primary));

	check_ok(cuDevicePrimaryCtxReset(0));
	out = device_memory(4);
	check_ok(cuLaunchKernel(
		(CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(out), 47);
	check_ok(cuLibraryUnload(library));
	check_cu(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
}

TEST(occupancy_follows_the_limits_of_a_multiprocessor)
{
	CUfunction function;
	int blocks, size, grid;

	context_new();
	function = kernel("sum");
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 1024, 0));
	check_eq(blocks, 1);
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32, 0));
	check_eq(blocks, 24);
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(
		&blocks, function, 32, 40 << 10));
	check_eq(blocks, 2);
	check_ok(cuOccupancyMaxPotentialBlockSize(&grid, &size, function, NULL, 0, 0));
	check(size % 32 == 0 && size > 0 && grid > 0);
	check_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
}
