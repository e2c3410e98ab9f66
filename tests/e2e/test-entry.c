/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: entry points that a program asks for by name
 */

#include "e2e.h"

typedef CUresult (*alloc_function)(CUdeviceptr *p, size_t size);
typedef CUresult (*copy_function)(void *host, CUdeviceptr p, size_t size);

TEST(entry_points_are_found_by_name_and_version)
{
	CUdriverProcAddressQueryResult status =
		CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	void *alloc = NULL, *copy = NULL, *none = &none;
	unsigned int word = 0;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuGetProcAddress("cuMemAlloc", &alloc, 12000, 0, &status));
	check_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
	check_ok(cuGetProcAddress("cuMemcpyDtoH", &copy, 12000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	check_ok(((alloc_function)alloc)(&p, 16));
	check_ok(cuMemsetD32(p, 0xabcd, 1));
	check_ok(((copy_function)copy)(&word, p, 4));
	check_eq(word, 0xabcd);
	check_ok(cuGetProcAddress("cuNoSuchThing", &none, 12000, 0, &status));
	check(!none);
	check_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	check_ok(cuGetProcAddress("cuLibraryLoadData", &none, 11000, 0, &status));
	check(!none);
	check_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	/* The meaning of a later version or another flag is unknown. */
	check_cu(cuGetProcAddress("cuMemAlloc", &none, 99000, 0, &status),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGetProcAddress("cuMemAlloc", &none, 12000, 3, &status),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGetProcAddress("cuMemAlloc", &none, 12000, 0x100, &status),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(older_versions_of_a_name_are_other_functions)
{
	void *v2 = NULL, *v4 = NULL;

	check_ok(cuInit(0));
	check_ok(cuGetProcAddress("cuCtxCreate", &v2, 3020, 0, NULL));
	check_ok(cuGetProcAddress("cuCtxCreate", &v4, 13000, 0, NULL));
	check(v2 && v4 && v2 != v4);
}

TEST(export_table_of_the_runtime_has_its_size)
{
	CUuuid id = { "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd"
		      "\x9d\xf9" };
	const void *table = NULL;

	check_ok(cuInit(0));
	check_ok(cuGetExportTable(&table, &id));
	check(*(const size_t *)table > 6 * sizeof(void *));
}

/* Tables that NVIDIA does not document, as other projects published them. */
TEST(export_tables_tell_contexts_and_streams_apart)
{
	const CUuuid of_thread = { "\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7"
				   "\x8a\x3a\xec\xdc" };
	const CUuuid of_context = { "\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff"
				    "\x73\x24\xc8\xf2" };
	CUresult (*get_current)(CUcontext *);
	CUresult (*get_number)(CUcontext, unsigned long long *);
	CUresult (*get_inner)(CUcontext, CUstream, CUstream *);
	CUresult (*get_id)(CUcontext, CUstream, unsigned long long *);
	const void *table = NULL;
	void *const *slots;
	unsigned long long id = 0, same = 1, ids[3];
	CUstream streams[3] = {}, inner;
	CUcontext current = NULL;
	struct fixture fixture = fixture_new();

	check_ok(cuGetExportTable(&table, &of_thread));
	slots = table;
	get_current = slots[2];
	check_ok(get_current(&current));
	check(current == fixture.context);

	check_ok(cuGetExportTable(&table, &of_context));
	slots = table;
	get_number = slots[4];
	get_inner = slots[51];
	get_id = slots[39];
	check_ok(get_number(fixture.context, &id));
	check_ok(cuCtxGetId(fixture.context, &same));
	check_eq(id, same);
	check_ok(cuStreamCreate(&streams[1], 0));
	check_ok(cuStreamCreate(&streams[2], CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++) {
		inner = NULL;
		check_ok(get_inner(fixture.context, streams[i], &inner));
		check(inner);
		check_ok(get_id(fixture.context, inner, &ids[i]));
	}
	check(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
	check_ok(cuStreamDestroy(streams[1]));
	check(get_inner(fixture.context, streams[1], &inner) != CUDA_SUCCESS);
}

static void check_module(CUmodule module)
{
	CUfunction function;
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuModuleGetFunction(&function, module, "fill"));
	check_ok(launch_fill(function, p, 6, 1, NULL));
	check_eq(device_word(p), 6);
	check_ok(cuModuleUnload(module));
	check_ok(cuMemFree(p));
}

/* As runtimes 11 do, each in its own way; those from 13.1 on call the last slot. */
TEST(export_table_of_the_runtime_loads_code)
{
	CUuuid id = { "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd"
		      "\x9d\xf9" };
	CUresult (*load)(CUmodule *, const void *);
	CUresult (*load_by)(
		CUmodule *, const void *, const void *, const void *, unsigned);
	CUresult (*load_from)(
		const void *, CUmodule *, const void *, const void *, unsigned);
	CUresult (*prepare)(void);
	const void *table = NULL;
	void *const *slots;
	CUmodule module;

	fixture_new();
	check_ok(cuGetExportTable(&table, &id));
	slots = table;
	load = slots[1];
	load_by = slots[6];
	load_from = slots[8];
	prepare = slots[12];
	check_ok(load(&module, kernels_ptx));
	check_module(module);
	check_ok(load_by(&module, kernels_ptx, NULL, NULL, 0));
	check_module(module);
	check_ok(load_from(kernels_ptx, &module, NULL, NULL, 0));
	check_module(module);
	check_cu(load(&module, "no image"), CUDA_ERROR_INVALID_IMAGE);
	check_cu(load(NULL, kernels_ptx), CUDA_ERROR_INVALID_VALUE);
	check_cu(load_by(&module, kernels_ptx, NULL, NULL, 1), CUDA_ERROR_NOT_SUPPORTED);
	check_ok(prepare());
}

TEST(unknown_export_table_is_not_found)
{
	const void *table = NULL;
	CUuuid id = { "0123456789abcde" };

	check_ok(cuInit(0));
	check(cuGetExportTable(&table, &id) != CUDA_SUCCESS);
}

TEST(functions_not_remoted_say_so)
{
	CUexternalSemaphore semaphore;

	fixture_new();
	check_cu(cuImportExternalSemaphore(&semaphore, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

/* The forms that a runtime asks for by version and no header declares. */
typedef CUresult (*create_v3)(
	CUcontext *context, void *affinity, int n, unsigned int flags, CUdevice device);
typedef CUresult (*synchronize_v2)(CUcontext context);
typedef CUresult (*get_device_v2)(CUdevice *device, CUcontext context);

TEST(newer_forms_take_the_context_as_an_argument)
{
	void *cuCtxSynchronize_v2, *cuCtxGetDevice_v2;
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdevice device = -1;
	unsigned int *word;

	check_ok(cuGetProcAddress(
		"cuCtxSynchronize", &cuCtxSynchronize_v2, 13000, 0, NULL));
	check_ok(cuGetProcAddress("cuCtxGetDevice", &cuCtxGetDevice_v2, 13000, 0, NULL));
	check_ok(cuMemHostAlloc((void **)&word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	*word = 1;
	check_ok(launch_step(step, (CUdeviceptr)(uintptr_t)word, 5000, NULL));
	check_ok(cuCtxSetCurrent(NULL));
	check_ok(((synchronize_v2)cuCtxSynchronize_v2)(fixture.context));
	check_eq(*word, stepped(1, 5000));
	check_ok(((get_device_v2)cuCtxGetDevice_v2)(&device, fixture.context));
	check_eq(device, 0);
}

TEST(context_is_created_by_its_older_form)
{
	CUcontext context, current = NULL;
	void *cuCtxCreate_v3;
	CUdeviceptr p;

	check_ok(cuInit(0));
	check_ok(cuGetProcAddress("cuCtxCreate", &cuCtxCreate_v3, 11040, 0, NULL));
	check_ok(((create_v3)cuCtxCreate_v3)(&context, NULL, 0, 0, 0));
	check_ok(cuCtxGetCurrent(&current));
	check(current == context);
	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuMemsetD32(p, 0x77, 1));
	check_eq(device_word(p), 0x77);
	check_ok(cuCtxDestroy(context));
}

TEST(variable_that_is_not_managed_is_not_found_as_one)
{
	CUlibrary library;
	CUdeviceptr p;
	size_t size;

	fixture_new();
	check_ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check(cuLibraryGetManaged(&p, &size, library, "answer") != CUDA_SUCCESS);
}

TEST(attached_context_lives_until_it_is_detached_as_often)
{
	CUcontext context, same = NULL;
	CUdeviceptr pointer;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuCtxAttach(&same, 0));
	check(same == context);
	check_cu(cuCtxAttach(&same, 1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxDetach(context));
	check_ok(cuMemAlloc(&pointer, 4096));
	check_ok(cuCtxDetach(context));
	check_cu(cuMemAlloc(&pointer, 4096), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(nobody_makes_the_host_dump_core)
{
	CUcontext context;

	check_ok(cuInit(0));
	check_cu(cuCtxCreate(&context, NULL, CU_CTX_COREDUMP_ENABLE, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuDevicePrimaryCtxSetFlags(0, CU_CTX_USER_COREDUMP_ENABLE),
		CUDA_ERROR_NOT_SUPPORTED);
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_cu(cuCtxSetFlags(CU_CTX_COREDUMP_ENABLE), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(calls_that_stay_refused_return_not_supported)
{
	char luid[8] = "1234567";
	unsigned int mask = 1;

	fixture_new();
	check_cu(cuDeviceGetLuid(luid, &mask, 0), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuFlushGPUDirectRDMAWrites(
			 CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
			 CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuCheckpointProcessLock(1, NULL), CUDA_ERROR_NOT_SUPPORTED);
}
