/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: the linker, and what compilers of the driver report
 */

#include <stdio.h>

#include "e2e.h"

#define HEAD ".version 6.0\n.target sm_30\n.address_size 64\n"

/* *out = twice(n) + offset */
static const char user[] =
	HEAD ".extern .func (.param .b32 r) twice (.param .b32 x);\n"
	     ".extern .global .u32 offset;\n"
	     ".visible .entry compute (.param .u64 out, .param .u32 n) {\n"
	     ".reg .u64 %rd; .reg .u32 %r<4>; .param .b32 x; .param .b32 r;\n"
	     "ld.param.u64 %rd, [out]; ld.param.u32 %r1, [n];\n"
	     "st.param.b32 [x], %r1; call (r), twice, (x); ld.param.b32 %r2, [r];\n"
	     "ld.global.u32 %r3, [offset]; add.u32 %r2, %r2, %r3;\n"
	     "st.global.u32 [%rd], %r2; ret; }\n";

static const char provider[] =
	HEAD ".visible .global .u32 offset = 5;\n"
	     ".visible .func (.param .b32 r) twice (.param .b32 x) {\n"
	     ".reg .u32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, %r;\n"
	     "st.param.b32 [r], %r; ret; }\n";

static CUresult add(CUlinkState link, const char *text, const char *name)
{
	return cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)text, strlen(text) + 1, name,
		0, NULL, NULL);
}

static void check_computes(CUmodule module)
{
	unsigned int n = 21;
	CUfunction compute;
	CUdeviceptr out;
	void *parameters[] = { &out, &n };

	check_ok(cuMemAlloc(&out, 4));
	check_ok(cuModuleGetFunction(&compute, module, "compute"));
	check_ok(cuLaunchKernel(compute, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	check_eq(device_word(out), 47);
	check_ok(cuMemFree(out));
}

TEST(two_modules_are_linked_and_run)
{
	CUdeviceptr offset;
	CUlinkState link;
	CUmodule module;
	size_t size = 0;
	void *image;

	fixture_new();
	check_ok(cuLinkCreate(0, NULL, NULL, &link));
	check_ok(add(link, user, "user"));
	check_ok(add(link, provider, "provider"));
	check_ok(cuLinkComplete(link, &image, &size));
	check(image && size > 64);
	check_ok(cuModuleLoadData(&module, image));
	check_ok(cuLinkDestroy(link));
	check_computes(module);
	check_ok(cuModuleGetGlobal(&offset, &size, module, "offset"));
	check_eq(device_word(offset), 5);
	check_cu(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
	check_cu(add(link, user, "user"), CUDA_ERROR_INVALID_HANDLE);
}

static void write_file(char *path, size_t size, const char *name, const char *text)
{
	FILE *file;

	snprintf(path, size, "%s/%s", test_tmpdir(), name);
	file = fopen(path, "w");
	check(file && fputs(text, file) >= 0 && !fclose(file));
}

TEST(files_are_linked_as_data_is)
{
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	void *value = (void *)32;
	CUlinkState link;
	char path[256];
	CUmodule module;
	void *image;

	fixture_new();
	check_ok(cuLinkCreate(1, &option, &value, &link));
	check_cu(cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL),
		CUDA_ERROR_FILE_NOT_FOUND);
	write_file(path, sizeof(path), "user.ptx", user);
	check_ok(cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 1, &option, &value));
	write_file(path, sizeof(path), "provider.ptx", provider);
	check_ok(cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	check_ok(cuLinkComplete(link, &image, NULL));
	check_ok(cuModuleLoadData(&module, image));
	check_computes(module);
	check_ok(cuLinkDestroy(link));
}

TEST(linking_works_by_the_first_names_too)
{
	CUlinkState link;
	CUmodule module;
	char path[256];
	void *image;

	fixture_new();
	check_ok(CALL("cuLinkCreate", 5050,
		(unsigned int, CUjit_option *, void **, CUlinkState *), 0, NULL, NULL,
		&link));
	check_ok(CALL("cuLinkAddData", 5050,
		(CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned int,
			CUjit_option *, void **),
		link, CU_JIT_INPUT_PTX, (void *)user, sizeof(user), "user", 0, NULL,
		NULL));
	write_file(path, sizeof(path), "provider.ptx", provider);
	check_ok(CALL("cuLinkAddFile", 5050,
		(CUlinkState, CUjitInputType, const char *, unsigned int, CUjit_option *,
			void **),
		link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	check_ok(cuLinkComplete(link, &image, NULL));
	check_ok(cuModuleLoadData(&module, image));
	check_computes(module);
}

TEST(inputs_that_cannot_be_linked_are_named_in_the_error_log)
{
	char info[256] = "", error[1024] = "";
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { info, (void *)sizeof(info), error, (void *)sizeof(error) };
	CUlinkState link;
	size_t size;
	void *image;

	fixture_new();
	check_ok(cuLinkCreate(4, options, values, &link));
	check_ok(add(link, user, "user"));
	check(cuLinkComplete(link, &image, &size) != CUDA_SUCCESS);
	check(strstr(error, "twice") || strstr(error, "offset"));
	check((uintptr_t)values[3] > 0 && (uintptr_t)values[3] <= sizeof(error));
	check_ok(cuLinkDestroy(link));

	values[1] = (void *)sizeof(info);
	values[3] = (void *)sizeof(error);
	check_ok(cuLinkCreate(4, options, values, &link));
	check_ok(add(link, provider, "one"));
	check_ok(add(link, provider, "two"));
	check(cuLinkComplete(link, &image, &size) != CUDA_SUCCESS);
	check(strstr(error, "twice") || strstr(error, "offset"));
	check_ok(cuLinkDestroy(link));
}

TEST(bad_input_is_refused_when_it_is_added)
{
	static const char bad[] = HEAD ".visible .entry f() { add.s32 %r1, %r2, ; }\n";
	char error[1024] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER };
	void *values[] = { (void *)sizeof(error), error };
	CUlinkState link;

	fixture_new();
	check_ok(cuLinkCreate(2, options, values, &link));
	check_cu(add(link, bad, "bad.ptx"), CUDA_ERROR_INVALID_PTX);
	check(strlen(error) > 0);
	check_cu(cuLinkAddData(link, CU_JIT_INPUT_PTX, NULL, 8, "none", 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLinkAddData(
			 link, CU_JIT_INPUT_PTX, (void *)user, 0, "none", 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLinkCreate(1, NULL, NULL, &link), CUDA_ERROR_INVALID_VALUE);
}

/* A container of one image: header, entry header of 64 bytes, contents. */
static void *container(uint16_t kind, const char *text)
{
	size_t size = (strlen(text) + 8) & ~7ul;
	uint8_t *bytes = calloc(1, 16 + 64 + size);
	uint64_t total = 64 + size;

	check(bytes);
	memcpy(bytes, &(uint32_t){ 0xba55ed50 }, 4);
	memcpy(bytes + 4, &(uint16_t){ 1 }, 2);
	memcpy(bytes + 6, &(uint16_t){ 16 }, 2);
	memcpy(bytes + 8, &total, 8);
	memcpy(bytes + 16, &kind, 2);
	memcpy(bytes + 18, &(uint16_t){ 0x101 }, 2);
	memcpy(bytes + 20, &(uint32_t){ 64 }, 4);
	memcpy(bytes + 24, &(uint64_t){ size }, 8);
	memcpy(bytes + 42, &(uint16_t){ 6 }, 2);    /* ISA 6.0 */
	memcpy(bytes + 44, &(uint32_t){ 30 }, 4);   /* sm_30 */
	memcpy(bytes + 56, &(uint64_t){ 0x11 }, 8); /* 64-bit Linux */
	strcpy((char *)bytes + 80, text);
	return bytes;
}

/* The output of a compiler that linked for other devices: machine code, and the inputs of
 * the link. */
TEST(program_linked_on_the_device_is_linked_from_its_parts)
{
	const void *inputs[] = { container(1, user), container(1, provider), NULL };
	struct {
		uint32_t magic;
		uint32_t version;
		const void *data;
		const void *const *inputs;
	} wrapper = { 0x466243b1, 2, container(2, "machine code"), inputs };
	CUlibrary library;
	CUkernel kernel;
	CUmodule module;

	fixture_new();
	check_ok(cuModuleLoadData(&module, &wrapper));
	check_computes(module);
	check_ok(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetKernel(&kernel, library, "compute"));
	check_ok(cuLibraryGetModule(&module, library));
	check_computes(module);
	/* Without the part that defines what the other needs. */
	inputs[1] = NULL;
	check(cuModuleLoadData(&module, &wrapper) != CUDA_SUCCESS);
}

/* Longer than one reply. */
TEST(large_image_comes_whole)
{
	const size_t padding = 9 << 20;
	char *text = malloc(sizeof(user) + padding), *end;
	CUlinkState link;
	CUmodule module;
	size_t size = 0;
	void *image;

	fixture_new();
	check(text);
	end = stpcpy(text, user);
	for (size_t i = 0; i < padding - 64; i += 64)
		end = stpcpy(end, "// nothing but a comment, which is as long as a line "
				  "of code.\n");
	check_ok(cuLinkCreate(0, NULL, NULL, &link));
	check_ok(add(link, text, "padded"));
	check_ok(add(link, provider, "provider"));
	check_ok(cuLinkComplete(link, &image, &size));
	check_ok(cuModuleLoadData(&module, image));
	check_computes(module);
	check_ok(cuLinkDestroy(link));
	free(text);
}

TEST(compilers_report_in_place_of_the_values)
{
	char info[512] = "";
	CUjit_option options[] = { CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE,
		CU_JIT_THREADS_PER_BLOCK, CU_JIT_TARGET_FROM_CUCONTEXT,
		CU_JIT_FALLBACK_STRATEGY };
	void *values[] = { (void *)0x7f7f7f7f, info, (void *)sizeof(info), (void *)1,
		(void *)64, NULL, (void *)CU_PREFER_PTX };
	CUlibrary library;
	CUmodule module;
	float time;

	fixture_new();
	check_ok(cuModuleLoadDataEx(&module, provider, 7, options, values));
	memcpy(&time, &values[0], sizeof(time));
	check(time >= 0 && time < 60000);
	check(strlen(info) > 0);
	check_eq((uintptr_t)values[2], strlen(info));
	check((uintptr_t)values[4] >= 1 && (uintptr_t)values[4] <= 1024);

	*info = '\0';
	values[0] = (void *)0x7f7f7f7f;
	values[2] = (void *)sizeof(info);
	check_ok(
		cuLibraryLoadData(&library, provider, options, values, 7, NULL, NULL, 0));
	memcpy(&time, &values[0], sizeof(time));
	check(time >= 0 && time < 60000);
	check(strlen(info) > 0);
}
