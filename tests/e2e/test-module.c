/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: modules, libraries, kernels
 */

#include "e2e.h"

TEST(globals_of_a_module_are_read_and_written)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "read_globals");
	CUdeviceptr answer, table, out;
	unsigned int words[64];
	int host[3] = {};
	size_t size = 0;
	void *parameters[] = { &out };

	check_ok(cuModuleGetGlobal(&answer, &size, fixture.module, "answer"));
	check_eq(size, 4);
	check_eq(device_word(answer), 42);
	check_ok(cuModuleGetGlobal(&table, &size, fixture.module, "table"));
	check_eq(size, 256);
	for (int i = 0; i < 64; i++)
		words[i] = 1000 + i;
	check_ok(cuMemcpyHtoD(table, words, sizeof(words)));
	check_ok(cuMemsetD32(answer, 43, 1));
	check_ok(cuMemAlloc(&out, sizeof(host)));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	check_ok(cuMemcpyDtoH(host, out, sizeof(host)));
	check_eq(host[0], 43);
	check_eq(host[1], 1000);
	check_eq(host[2], 1000);
	check_cu(cuModuleGetGlobal(&table, &size, fixture.module, "no_such"),
		CUDA_ERROR_NOT_FOUND);
}

TEST(two_loads_of_an_image_have_globals_of_their_own)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr first, second;
	CUmodule module;
	size_t size;

	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetGlobal(&first, &size, fixture.module, "answer"));
	check_ok(cuModuleGetGlobal(&second, &size, module, "answer"));
	check(first != second);
	check_ok(cuMemsetD32(first, 1, 1));
	check_eq(device_word(second), 42);
	check_ok(cuModuleUnload(module));
	check_eq(device_word(first), 1);
	check(cuMemsetD32(second, 1, 1) != CUDA_SUCCESS);
}

TEST(names_that_are_not_in_a_module_are_not_found)
{
	struct fixture fixture = fixture_new();
	CUfunction function;

	check_cu(cuModuleGetFunction(&function, fixture.module, "nothing"),
		CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetFunction(&function, fixture.module, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuModuleUnload(fixture.module));
	check(cuModuleGetFunction(&function, fixture.module, "fill") != CUDA_SUCCESS);
}

TEST(bad_images_are_refused_with_the_drivers_codes)
{
	static const char garbage[64] = "this is no image at all";
	static const char bad_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				      ".visible .entry f() { add.s32 %r1, %r2, ; }\n";
	static const char future[] = ".version 99.0\n.target sm_70\n.address_size 64\n";
	char log[512] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	CUmodule module;

	fixture_new();
	check_cu(cuModuleLoadData(&module, garbage), CUDA_ERROR_INVALID_IMAGE);
	check_cu(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuModuleLoadDataEx(&module, bad_ptx, 2, options, values),
		CUDA_ERROR_INVALID_PTX);
	check(strlen(log) > 0);
	check_cu(cuModuleLoadData(&module, future), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST(module_is_compiled_with_options_and_runs)
{
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	char log[256] = "";
	void *values[] = { log, (void *)sizeof(log) };
	struct fixture fixture = fixture_new();
	CUfunction fill;
	CUdeviceptr p;

	check_ok(cuModuleLoadDataEx(&fixture.module, kernels_ptx, 2, options, values));
	fill = fixture_function(&fixture, "fill");
	check_ok(cuMemAlloc(&p, 4));
	check_ok(launch_fill(fill, p, 99, 1, NULL));
	check_eq(device_word(p), 99);
}

TEST(module_is_loaded_from_a_file)
{
	char path[256];
	CUfunction function;
	CUmodule module;
	FILE *file;

	fixture_new();
	snprintf(path, sizeof(path), "%s/kernels.ptx", test_tmpdir());
	file = fopen(path, "w");
	check(file && fputs(kernels_ptx, file) >= 0 && !fclose(file));
	check_ok(cuModuleLoad(&module, path));
	check_ok(cuModuleGetFunction(&function, module, "fill"));
	check_cu(cuModuleLoad(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST(library_kernels_are_launched_as_functions)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr p, answer;
	CUfunction function;
	unsigned int n = 0;
	CUlibrary library;
	CUmodule module;
	CUkernel kernel;
	size_t size;

	(void)fixture;
	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernelCount(&n, library));
	check(n >= 10);
	check_ok(cuLibraryGetKernel(&kernel, library, "fill"));
	check_cu(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	check_ok(cuLibraryGetKernel(&kernel, library, "fill"));
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(launch_fill((CUfunction)kernel, p, 11, 1024, NULL));
	check_eq(device_word(p + 4092), 11);
	check_ok(cuKernelGetFunction(&function, kernel));
	check_ok(launch_fill(function, p, 12, 1024, NULL));
	check_eq(device_word(p + 4092), 12);
	check_ok(cuLibraryGetModule(&module, library));
	check_ok(cuModuleGetFunction(&function, module, "fill"));
	check_ok(launch_fill(function, p, 13, 1024, NULL));
	check_eq(device_word(p), 13);
	check_ok(cuLibraryGetGlobal(&answer, &size, library, "answer"));
	check_eq(device_word(answer), 42);
	check_ok(cuLibraryUnload(library));
	check(cuLibraryGetKernel(&kernel, library, "fill") != CUDA_SUCCESS);
}

TEST(kernel_and_function_attributes_agree)
{
	struct fixture fixture = fixture_new();
	CUfunction matrix_mul = fixture_function(&fixture, "matrix_mul");
	int shared = 0, threads = 0, kernel_shared = -1, version = 0;
	const char *name = NULL;
	CUlibrary library;
	CUkernel kernel;

	check_ok(cuFuncGetAttribute(
		&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, matrix_mul));
	check_eq(shared, 2048);
	check_ok(cuFuncGetAttribute(
		&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, matrix_mul));
	check(threads >= 256);
	check_ok(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, matrix_mul));
	check(version >= 10);
	check_ok(cuFuncGetName(&name, matrix_mul));
	check_str(name, "matrix_mul");
	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernel(&kernel, library, "matrix_mul"));
	check_ok(cuKernelGetAttribute(&kernel_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
		kernel, fixture.device));
	check_eq(kernel_shared, shared);
	check_ok(cuKernelGetName(&name, kernel));
	check_str(name, "matrix_mul");
}

TEST(parameter_layout_is_returned)
{
	static const size_t offsets[] = { 0, 8, 16, 20, 24, 32, 40 };
	static const size_t sizes[] = { 1, 8, 2, 4, 4, 8, 8 };
	struct fixture fixture = fixture_new();
	CUfunction pack = fixture_function(&fixture, "pack");
	size_t offset, size;

	for (size_t i = 0; i < 7; i++) {
		check_ok(cuFuncGetParamInfo(pack, i, &offset, &size));
		check_eq(offset, offsets[i]);
		check_eq(size, sizes[i]);
	}
	check_cu(cuFuncGetParamInfo(pack, 7, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

TEST(occupancy_is_between_one_block_and_the_limit)
{
	struct fixture fixture = fixture_new();
	CUfunction matrix_mul = fixture_function(&fixture, "matrix_mul");
	int blocks = 0, big = 0;

	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, matrix_mul, 32, 0));
	check(blocks >= 1);
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&big, matrix_mul, 512, 0, 0));
	check(big >= 1 && big <= blocks);
}

TEST(more_shared_memory_is_had_by_asking_for_it)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "dynamic_shared");
	int n = 16, optin = 0, size = 0;
	unsigned int out[16];
	CUdeviceptr p;
	void *parameters[] = { &p, &n };

	check_ok(cuDeviceGetAttribute(
		&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
	check(optin > 48 << 10);
	check_ok(cuMemAlloc(&p, sizeof(out)));
	check_cu(cuLaunchKernel(
			 function, 1, 1, 1, n, 1, 1, 60 << 10, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuFuncSetAttribute(
		function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10));
	check_ok(cuFuncGetAttribute(
		&size, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
	check_eq(size, 60 << 10);
	check_ok(cuLaunchKernel(
		function, 1, 1, 1, n, 1, 1, 60 << 10, NULL, parameters, NULL));
	check_ok(cuMemcpyDtoH(out, p, sizeof(out)));
	check_eq(out[0], 15 * 15);
	check_cu(cuFuncSetAttribute(function,
			 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(functions_know_their_module_and_are_loaded_on_demand)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUfunctionLoadingState state;
	CUmodule module = NULL;

	check_ok(cuFuncGetModule(&module, fill));
	check(module == fixture.module);
	check_ok(cuFuncLoad(fill));
	check_ok(cuFuncIsLoaded(&state, fill));
	check_eq(state, CU_FUNCTION_LOADING_STATE_LOADED);
	check_ok(cuFuncSetCacheConfig(fill, CU_FUNC_CACHE_PREFER_SHARED));
	check_ok(cuFuncSetSharedMemConfig(fill, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
}

TEST(kernels_of_a_library_take_attributes_for_a_device)
{
	size_t offset = 99, size = 0;
	int dynamic_size = 0;
	CUlibrary library;
	CUkernel kernel;

	fixture_new();
	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernel(&kernel, library, "dynamic_shared"));
	check_ok(cuKernelGetParamInfo(kernel, 1, &offset, &size));
	check(offset == 8 && size == 4);
	check_ok(cuKernelSetAttribute(
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10, kernel, 0));
	check_ok(cuKernelGetAttribute(&dynamic_size,
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
	check_eq(dynamic_size, 60 << 10);
	check_ok(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
}

TEST(library_is_loaded_from_a_file)
{
	CUlibrary library;
	CUkernel kernel;
	char path[256];
	FILE *file;

	fixture_new();
	snprintf(path, sizeof(path), "%s/kernels.ptx", test_tmpdir());
	file = fopen(path, "w");
	check(file && fputs(kernels_ptx, file) >= 0 && !fclose(file));
	check_ok(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernel(&kernel, library, "fill"));
	check_cu(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0,
			 (CUlibraryOption[]){ CU_LIBRARY_BINARY_IS_PRESERVED },
			 (void *[]){ (void *)1 }, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLibraryLoadFromFile(
			 &library, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
}

/* A container of one plain image: header, entry header of 64 bytes, text. */
static void *make_container(
	const char *bytes, unsigned int kind, unsigned int major, unsigned int arch)
{
	size_t text = (strlen(bytes) + 8) & ~7ul;
	uint8_t *fatbin = calloc(1, 16 + 64 + text);
	uint64_t total = 64 + text;

	check(fatbin);
	memcpy(fatbin, &(uint32_t){ 0xba55ed50 }, 4);
	memcpy(fatbin + 4, &(uint16_t){ 1 }, 2);
	memcpy(fatbin + 6, &(uint16_t){ 16 }, 2);
	memcpy(fatbin + 8, &total, 8);
	memcpy(fatbin + 16, &(uint16_t){ (uint16_t)kind }, 2);
	memcpy(fatbin + 18, &(uint16_t){ 0x101 }, 2);
	memcpy(fatbin + 20, &(uint32_t){ 64 }, 4);
	memcpy(fatbin + 24, &(uint64_t){ text }, 8);
	memcpy(fatbin + 42, &(uint16_t){ (uint16_t)major }, 2);
	memcpy(fatbin + 44, &(uint32_t){ arch }, 4);
	memcpy(fatbin + 56, &(uint64_t){ 0x11 }, 8); /* 64-bit Linux */
	strcpy((char *)fatbin + 80, bytes);
	return fatbin;
}

enum { PTX = 1, CUBIN = 2, LTO = 8 };

static void *make_fatbin(void)
{
	return make_container(kernels_ptx, PTX, 7, 70);
}

/* Returns: what loading gives; the reason is in the log, which the guest reads too. */
static void refuses(const void *image, CUresult expected, const char *reason)
{
	char log[512] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	CUmodule module;
	CUlibrary library;

	check_cu(cuModuleLoadData(&module, image), expected);
	check_cu(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0),
		expected);
	check_cu(cuModuleLoadDataEx(&module, image, 2, options, values), expected);
	if (!strstr(log, reason))
		test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", reason, log);
}

/*
 * Code for other devices and later toolkits. The text of a container adds nothing to its
 * header: an entry that cannot be run is not read.
 */
TEST(images_for_others_are_refused_with_a_reason)
{
	static const struct {
		unsigned int kind, major, arch;
		CUresult expected;
		const char *reason;
	} containers[] = {
		{ CUBIN, 1, 90, CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX" },
		{ LTO, 1, 90, CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX" },
		{ PTX, 9, 200, CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX" },
		{ PTX, 10, 70, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "newer" },
		{ 4242, 1, 70, CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX" },
	};
	static const struct {
		const char *text;
		CUresult expected;
		const char *reason;
	} texts[] = {
		{ ".version 9.9\n.target sm_70\n.address_size 64\n",
			CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "9.9" },
		{ ".version 9.0\n.target sm_200\n.address_size 64\n",
			CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_200" },
		{ ".version 9.0\n.target sm_100a\n.address_size 64\n",
			CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_100a" },
		{ ".version 9.0\n.target compute_70\n.address_size 64\n",
			CUDA_ERROR_INVALID_PTX, "sm_" },
		{ ".version 9.0\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, ".target" },
		{ ".version nine\n.target sm_70\n", CUDA_ERROR_INVALID_PTX, ".version" },
	};
	char elf[128] = "\177ELF\2\1\1";
	void *container;

	fixture_new();
	for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++) {
		container = make_container(kernels_ptx, containers[i].kind,
			containers[i].major, containers[i].arch);
		refuses(container, containers[i].expected, containers[i].reason);
		free(container);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuses(texts[i].text, texts[i].expected, texts[i].reason);
	refuses(elf, CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX");
}

TEST(module_is_loaded_from_a_fatbin)
{
	struct fixture fixture = fixture_new();
	void *fatbin = make_fatbin();
	CUmoduleLoadingMode mode = 0;
	CUfunction function;
	CUmodule module;
	CUdeviceptr p;

	(void)fixture;
	check_ok(cuMemAlloc(&p, 4096));
	for (int i = 0; i < 2; i++) {
		check_ok(i ? cuModuleLoadData(&module, fatbin)
			   : cuModuleLoadFatBinary(&module, fatbin));
		check_ok(cuModuleGetFunction(&function, module, "fill"));
		check_ok(launch_fill(function, p, 21 + i, 1024, NULL));
		check_eq(device_word(p + 4092), 21 + i);
		check_ok(cuModuleUnload(module));
	}
	check_ok(cuModuleGetLoadingMode(&mode));
	check(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
	free(fatbin);
}

/* A module with more kernels than one reply has room for. */
static char *many_kernels(int n)
{
	char *text = malloc(128 + 64 * (size_t)n), *end = text;

	check(text);
	end = stpcpy(end, ".version 7.0\n.target sm_70\n.address_size 64\n");
	for (int i = 0; i < n; i++)
		end += sprintf(end, ".visible .entry kernel_%d () { ret; }\n", i);
	return text;
}

TEST(functions_of_a_module_are_enumerated)
{
	static CUfunction functions[500];
	char *text = many_kernels(450);
	bool seen[450] = {};
	unsigned int n = 0;
	CUmodule module;

	fixture_new();
	check_ok(cuModuleLoadData(&module, text));
	check_ok(cuModuleGetFunctionCount(&n, module));
	check_eq(n, 450);
	check_ok(cuModuleEnumerateFunctions(functions, 500, module));
	check(!functions[450]);
	for (unsigned int i = 0; i < n; i++) {
		const char *name = "";
		int number = -1;

		check_ok(cuFuncGetName(&name, functions[i]));
		check_eq(sscanf(name, "kernel_%d", &number), 1);
		check(number >= 0 && number < 450 && !seen[number]);
		seen[number] = true;
	}
	memset(functions, 0, sizeof(functions));
	check_ok(cuModuleEnumerateFunctions(functions, 3, module));
	check(functions[2] && !functions[3]);
	check_ok(cuLaunchKernel(functions[2], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	check_ok(cuCtxSynchronize());
	free(text);
}

TEST(kernels_of_a_library_are_enumerated_and_know_it)
{
	static CUkernel kernels[500];
	CUlibrary library, found = NULL;
	unsigned int n = 0, n_fill = 0;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernelCount(&n, library));
	check_ok(cuLibraryEnumerateKernels(kernels, n, library));
	for (unsigned int i = 0; i < n; i++) {
		const char *name = "";

		check_ok(cuKernelGetName(&name, kernels[i]));
		check_ok(cuKernelGetLibrary(&found, kernels[i]));
		check(found == library);
		if (strcmp(name, "fill"))
			continue;
		n_fill++;
		check_ok(launch_fill((CUfunction)kernels[i], p, 31, 1024, NULL));
	}
	check_eq(n_fill, 1);
	check_eq(device_word(p + 4092), 31);
	check_ok(cuLibraryUnload(library));
	check_cu(cuKernelGetLibrary(&found, kernels[0]), CUDA_ERROR_INVALID_HANDLE);
}
