/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points that need no host
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

#include <cuda.h>

#undef cuGetProcAddress

typedef CUresult old_get_fn(
	const char *symbol, void **pfn, int version, cuuint64_t flags);

/* The symbols that the CUDA runtime 13.0 looks up when it starts: name, version, flags,
 * and the resulting symbol. */
struct request {
	char name[128];
	int version;
	int flags;
	char symbol[128];
};

static bool read_request(FILE *file, struct request *request)
{
	return fscanf(file, "%127s %d %d %127s", request->name, &request->version,
		       &request->flags, request->symbol) == 4;
}

static bool is_graphics(const char *name)
{
	return strstr(name, "GL") || strstr(name, "EGL") || strstr(name, "Egl") ||
	       strstr(name, "VDPAU") || !strncmp(name, "cuGraphics", 10);
}

TEST(every_name_the_runtime_asks_for_leads_to_the_right_symbol)
{
	void *library = dlopen(LIBCUDA, RTLD_NOW);
	FILE *file = fopen(REQUESTS, "re");
	struct request request;
	int n = 0;

	check(library != NULL);
	check(file != NULL);
	while (read_request(file, &request)) {
		CUdriverProcAddressQueryResult status;
		void *function = NULL;
		CUresult result = cuGetProcAddress_v2(request.name, &function,
			request.version, (cuuint64_t)request.flags, &status);

		n++;
		if (is_graphics(request.name) && result == CUDA_SUCCESS && !function)
			continue;
		if (result != CUDA_SUCCESS || !function ||
			function != dlsym(library, request.symbol))
			test_fail(__FILE__, __LINE__, "%s %d flags %d is not %s",
				request.name, request.version, request.flags,
				request.symbol);
	}
	fclose(file);
	dlclose(library);
	check(n > 400);
}

TEST(a_name_is_younger_than_the_version_or_unknown)
{
	CUdriverProcAddressQueryResult status;
	void *function = &function;

	check_eq(cuGetProcAddress_v2("cuLibraryLoadData", &function, 11000, 0, &status),
		CUDA_SUCCESS);
	check_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	check(!function);
	function = &function;
	check_eq(cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &status),
		CUDA_SUCCESS);
	check(!function);
	check_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST(the_probe_with_an_empty_name_is_not_a_stub)
{
	void *function;

	check_eq(cuGetProcAddress_v2("", &function, 0, 0, NULL), CUDA_SUCCESS);
	check(!function);
}

TEST(the_old_lookup_gives_the_version_it_was_asked_for)
{
	void *library = dlopen(LIBCUDA, RTLD_NOW), *function;
	old_get_fn *get = (old_get_fn *)dlsym(library, "cuGetProcAddress");

	check_eq(get("cuMemAlloc", &function, 3020, 0), CUDA_SUCCESS);
	check(function == dlsym(library, "cuMemAlloc_v2"));
	check_eq(get("cuMemAlloc", &function, 2000, 0), CUDA_SUCCESS);
	check(function == dlsym(library, "cuMemAlloc"));
	check_eq(get("cuLaunchKernel", &function, 7000, 2), CUDA_SUCCESS);
	check(function == dlsym(library, "cuLaunchKernel_ptsz"));
	/* This version has no status argument. */
	check_eq(get("cuNoSuchThing", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
	dlclose(library);
}

TEST(before_cuInit_every_call_returns_not_initialized)
{
	CUcontext context;
	CUdeviceptr pointer;
	CUstream stream;
	size_t size;
	int n;

	check_eq(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuMemAlloc(&pointer, 1), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuMemAlloc(NULL, 0), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuMemGetInfo(&size, &size), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuGraphCreate(NULL, 0), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(the_version_is_available_before_cuInit)
{
	int version;

	check_eq(cuDriverGetVersion(&version), CUDA_SUCCESS);
	check_eq(version, 13000);
	check_eq(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
	check_eq(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST(errors_have_names_and_sentences)
{
	const char *text;

	check_eq(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
	check_str(text, "CUDA_ERROR_INVALID_VALUE");
	check_eq(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
	check(strlen(text) > 5);
	check_eq(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	check(!text);
}

TEST(export_tables_are_known_by_their_names_only)
{
	static const CUuuid runtime = {
		"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12"
		"\xfd\x9d\xf9"
	};
	static const CUuuid unknown = { "0123456789abcdef" };
	const void *table;

	check_eq(cuGetExportTable(&table, &runtime), CUDA_SUCCESS);
	check_eq(*(const size_t *)table, 13 * sizeof(void *));
	check_eq(cuGetExportTable(&table, &unknown), CUDA_ERROR_NOT_FOUND);
	check(!table);
}
