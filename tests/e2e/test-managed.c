/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: managed memory and managed variables
 *
 * The host reads and writes both through the pointer that kernels use.
 */

#include <pthread.h>
#include <sched.h>

#include "e2e.h"

/* `count` is managed, `plain` is not; add() adds to both and returns the address of
 * `count`. */
static const char variables_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	".global .attribute(.managed) .align 8 .b32 count = 41;\n"
	".global .attribute(.managed) .align 8 .b8 text[12] = {104, 105};\n"
	".global .align 4 .b32 plain = 7;\n"
	".visible .entry add(.param .u64 where, .param .u32 n)\n"
	"{\n"
	"	.reg .b32 %r<5>;\n"
	"	.reg .b64 %rd<5>;\n"
	"	ld.param.u64 %rd1, [where];\n"
	"	ld.param.u32 %r1, [n];\n"
	"	ld.global.u32 %r2, [count];\n"
	"	add.u32 %r2, %r2, %r1;\n"
	"	st.global.u32 [count], %r2;\n"
	"	ld.global.u32 %r3, [plain];\n"
	"	add.u32 %r3, %r3, %r1;\n"
	"	st.global.u32 [plain], %r3;\n"
	"	mov.u64 %rd2, count;\n"
	"	cvta.to.global.u64 %rd3, %rd1;\n"
	"	st.global.u64 [%rd3], %rd2;\n"
	"	ret;\n"
	"}\n";

static CUresult launch_add(CUfunction add, CUdeviceptr where, unsigned int n)
{
	void *parameters[] = { &where, &n };

	return cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

static void *host_of(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

TEST(host_and_kernels_share_managed_memory)
{
	struct fixture fixture = fixture_new();
	unsigned int *words;
	CUdeviceptr p;
	int has = 0, is_concurrent = 1;

	check_ok(cuDeviceGetAttribute(
		&has, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, fixture.device));
	check_eq(has, 1);
	check_ok(cuDeviceGetAttribute(&is_concurrent,
		CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, fixture.device));
	check_eq(is_concurrent, 0);
	check_ok(cuMemAllocManaged(&p, 3 << 20, CU_MEM_ATTACH_GLOBAL));
	words = host_of(p);
	words[0] = 5;
	check_ok(launch_step(fixture_function(&fixture, "step"), p, 4, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(words[0], stepped(5, 4));
	check_ok(launch_fill(
		fixture_function(&fixture, "fill"), p, 99, (3 << 20) / 4, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(words[0], 99);
	check_eq(words[(3 << 20) / 4 - 1], 99);
	check_ok(cuMemFree(p));
	check_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

TEST(managed_memory_is_copied_and_filled_like_any_other)
{
	uint8_t host[5000], back[5000] = {};
	CUdeviceptr managed, device;
	uint8_t *bytes;

	fixture_new();
	for (int i = 0; i < 5000; i++)
		host[i] = (uint8_t)(i * 13 + i / 256);
	check_ok(cuMemAllocManaged(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuMemAlloc(&device, 5000));
	bytes = host_of(managed);
	check_ok(cuMemcpyHtoD(managed, host, 5000));
	check(!memcmp(bytes, host, 5000));
	check_ok(cuMemcpyDtoD(device, managed, 5000));
	check_ok(cuMemsetD8(managed, 0x3c, 5000));
	check_eq(bytes[0], 0x3c);
	check_eq(bytes[4999], 0x3c);
	check_ok(cuMemcpyDtoH(back, device, 5000));
	check(!memcmp(back, host, 5000));
	check_ok(cuMemcpy(managed, device, 5000));
	check(!memcmp(bytes, host, 5000));
	check_ok(cuMemcpyDtoH(back, managed, 5000));
	check_cu(cuMemcpyHtoD(managed + 1, host, 5000), CUDA_ERROR_INVALID_VALUE);
}

TEST(freed_managed_memory_is_given_out_again)
{
	CUdeviceptr p;

	fixture_new();
	/* Far more in all than the arena holds. */
	for (int i = 0; i < 100; i++) {
		check_ok(cuMemAllocManaged(&p, 16 << 20, CU_MEM_ATTACH_HOST));
		*(volatile int *)host_of(p) = i;
		check_ok(cuMemFree(p));
	}
	check_cu(cuMemAllocManaged(&p, 1ull << 40, CU_MEM_ATTACH_GLOBAL),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_cu(
		cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAllocManaged(&p, 64, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_SINGLE),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAllocManaged(NULL, 64, CU_MEM_ATTACH_GLOBAL),
		CUDA_ERROR_INVALID_VALUE);
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/* Programs count on it, as the system's memory is empty where a driver pins that. */
TEST(memory_that_is_given_out_again_is_empty)
{
	const size_t size = 1 << 20;
	CUdeviceptr p;
	void *pinned;

	fixture_new();
	for (int i = 0; i < 3; i++) {
		check_ok(cuMemAllocManaged(&p, size, CU_MEM_ATTACH_GLOBAL));
		check(is_zero(host_of(p), size));
		memset(host_of(p), 0x5a, size);
		check_ok(cuMemFree(p));
		check_ok(cuMemHostAlloc(&pinned, size - 4096, 0));
		check(is_zero(pinned, size - 4096));
		memset(pinned, 0x5a, size - 4096);
		check_ok(cuMemFreeHost(pinned));
	}
}

TEST(pointer_attributes_tell_of_managed_memory)
{
	struct fixture fixture = fixture_new();
	CUpointer_attribute ids[] = { CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	unsigned int type = 0, is_managed = 0;
	CUdeviceptr p, device = 0, base = 0;
	CUcontext context = NULL;
	void *host = NULL;
	int ordinal = -1;
	size_t size = 0;
	void *values[] = { &context, &type, &device, &host, &is_managed, &ordinal };

	check_ok(cuMemAllocManaged(&p, 1000, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuPointerGetAttributes(6, ids, values, p + 8));
	check(context == fixture.context);
	check_eq(type, CU_MEMORYTYPE_DEVICE);
	check(device == p + 8 && host == host_of(p + 8));
	check_eq(is_managed, 1);
	check_eq(ordinal, 0);
	check_ok(cuMemGetAddressRange(&base, &size, p + 999));
	check(base == p && size == 1000);
	check_cu(cuMemHostGetDevicePointer(&device, host_of(p), 0),
		CUDA_ERROR_INVALID_VALUE);
}

static int range_value(CUmem_range_attribute attribute, CUdeviceptr p, size_t size)
{
	int value = -77;

	check_ok(cuMemRangeGetAttribute(&value, sizeof(value), attribute, p, size));
	return value;
}

#define READ_MOSTLY CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY
#define PREFERRED CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION
#define PREFETCHED CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION

TEST(advice_holds_for_the_pages_it_was_given_for)
{
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };
	size_t page = 4096;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAllocManaged(&p, 8 * page, CU_MEM_ATTACH_GLOBAL));
	check_eq(range_value(READ_MOSTLY, p, 8 * page), 0);
	check_eq(range_value(PREFERRED, p, 8 * page), CU_DEVICE_INVALID);
	check_ok(cuMemAdvise_v2(
		p + 2 * page, 4 * page, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
	check_eq(range_value(READ_MOSTLY, p, 8 * page), 0);
	check_eq(range_value(READ_MOSTLY, p + 2 * page, 4 * page), 1);
	check_eq(range_value(READ_MOSTLY, p + 6 * page - 1, 2), 0);
	check_ok(cuMemAdvise_v2(
		p + 3 * page, page, CU_MEM_ADVISE_UNSET_READ_MOSTLY, host));
	check_eq(range_value(READ_MOSTLY, p + 2 * page, page), 1);
	check_eq(range_value(READ_MOSTLY, p + 3 * page, page), 0);
	check_eq(range_value(READ_MOSTLY, p + 4 * page, 2 * page), 1);
	check_ok(cuMemAdvise_v2(p, 8 * page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
	check_eq(range_value(PREFERRED, p, 8 * page), CU_DEVICE_CPU);
	check_eq(range_value(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, p, page),
		CU_MEM_LOCATION_TYPE_HOST);
	check_ok(cuMemAdvise_v2(p, page, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host));
	check_eq(range_value(PREFERRED, p, 8 * page), CU_DEVICE_INVALID);
	check_eq(range_value(PREFERRED, p + page, 7 * page), CU_DEVICE_CPU);
	/* Advice about memory ends with it. */
	check_ok(cuMemFree(p));
	check_ok(cuMemAllocManaged(&p, 8 * page, CU_MEM_ATTACH_GLOBAL));
	check_eq(range_value(READ_MOSTLY, p + 4 * page, page), 0);
}

TEST(several_attributes_of_a_range_are_returned_at_once)
{
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };
	CUmem_range_attribute ids[] = { CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, READ_MOSTLY,
		PREFETCHED };
	int devices[3] = { 9, 9, 9 }, read_mostly = 9, prefetched = 9;
	void *values[] = { devices, &read_mostly, &prefetched };
	size_t sizes[] = { sizeof(devices), 4, 4 };
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAllocManaged(&p, 10000, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuMemAdvise_v2(p, 10000, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
	check_ok(cuMemAdvise_v2(p, 10000, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
	check_ok(cuMemPrefetchAsync_v2(p, 10000, host, 0, NULL));
	check_ok(cuMemRangeGetAttributes(values, sizes, ids, 3, p, 10000));
	check(devices[0] == CU_DEVICE_CPU && devices[1] == CU_DEVICE_INVALID &&
		devices[2] == CU_DEVICE_INVALID);
	check(read_mostly == 1 && prefetched == CU_DEVICE_CPU);
	check_ok(cuMemAdvise_v2(p, 10000, CU_MEM_ADVISE_UNSET_ACCESSED_BY, host));
	check_ok(cuMemRangeGetAttributes(values, sizes, ids, 1, p, 10000));
	check(devices[0] == CU_DEVICE_INVALID);
	sizes[1] = 8;
	check_cu(cuMemRangeGetAttributes(values, sizes, ids, 3, p, 10000),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_device_without_concurrent_access_is_no_place_to_prefer)
{
	struct fixture fixture = fixture_new();
	CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
	CUdeviceptr p, other;
	CUstream stream;
	int local;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuMemAlloc(&other, 4096));
	check_cu(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, device),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuMemPrefetchAsync_v2(p, 4096, device, 0, stream),
		CUDA_ERROR_INVALID_DEVICE);
	check_eq(range_value(PREFERRED, p, 4096), CU_DEVICE_INVALID);
	check_eq(range_value(PREFETCHED, p, 4096), CU_DEVICE_INVALID);
	check_cu(cuMemAdvise_v2(other, 16, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAdvise_v2((CUdeviceptr)(uintptr_t)&local, 4,
			 CU_MEM_ADVISE_SET_READ_MOSTLY, device),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAdvise_v2(p, 4097, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAdvise_v2(p, 4096, (CUmem_advise)9, device),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemPrefetchAsync_v2(other, 16,
			 (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST }, 0, stream),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamDestroy(stream));
	check_cu(cuMemPrefetchAsync_v2(p, 4096,
			 (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST }, 0, stream),
		CUDA_ERROR_INVALID_HANDLE);
	check(fixture.context);
}

static void *first_form(const char *name, int version)
{
	void *function = NULL;

	check_ok(cuGetProcAddress(name, &function, version, 0, NULL));
	check(function);
	return function;
}

TEST(first_forms_name_the_host_by_a_number)
{
	CUresult (*advise)(CUdeviceptr, size_t, CUmem_advise, CUdevice);
	CUresult (*prefetch)(CUdeviceptr, size_t, CUdevice, CUstream);
	CUdeviceptr p;

	fixture_new();
	advise = first_form("cuMemAdvise", 8000);
	prefetch = first_form("cuMemPrefetchAsync", 8000);
	check_ok(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
	check_ok(advise(p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
	check_eq(range_value(PREFERRED, p, 4096), CU_DEVICE_CPU);
	check_ok(prefetch(p, 4096, CU_DEVICE_CPU, NULL));
	check_eq(range_value(PREFETCHED, p, 4096), CU_DEVICE_CPU);
	check_cu(prefetch(p, 4096, 0, NULL), CUDA_ERROR_INVALID_DEVICE);
	check_cu(advise(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 77),
		CUDA_ERROR_INVALID_DEVICE);
}

TEST(managed_memory_is_attached_to_a_stream)
{
	CUdeviceptr p, other;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_HOST));
	check_ok(cuMemAlloc(&other, 4096));
	check_ok(cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_SINGLE));
	check_ok(cuStreamAttachMemAsync(stream, p, 4096, CU_MEM_ATTACH_GLOBAL));
	check_cu(cuStreamAttachMemAsync(stream, p, 100, CU_MEM_ATTACH_HOST),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAttachMemAsync(stream, other, 0, CU_MEM_ATTACH_GLOBAL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAttachMemAsync(stream, p, 0, 3), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAttachMemAsync(
			 (CUstream)(uintptr_t)0x123456, p, 0, CU_MEM_ATTACH_GLOBAL),
		CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_managed_variable_is_there_before_any_context)
{
	CUdeviceptr address = 0, where;
	unsigned int type = 0, is_managed = 0;
	volatile unsigned int *count;
	CUfunction add;
	CUcontext context;
	CUlibrary library;
	CUmodule module;
	size_t size = 0;
	char *text;

	check_ok(cuInit(0));
	check_ok(
		cuLibraryLoadData(&library, variables_ptx, NULL, NULL, 0, NULL, NULL, 0));
	check_ok(cuLibraryGetManaged(&address, &size, library, "count"));
	check_eq(size, 4);
	count = host_of(address);
	check_eq(*count, 41);
	*count = 100;
	check_ok(cuLibraryGetManaged(&address, &size, library, "text"));
	check_eq(size, 12);
	text = host_of(address);
	check(!strcmp(text, "hi"));
	check_cu(cuLibraryGetManaged(&address, &size, library, "plain"),
		CUDA_ERROR_NOT_FOUND);
	check_cu(cuLibraryGetManaged(&address, &size, library, "nothing"),
		CUDA_ERROR_NOT_FOUND);
	check_ok(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		(CUdeviceptr)(uintptr_t)count));
	check_eq(is_managed, 1);
	/* Kernels read data written before there was a context, and write there. */
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuMemAllocManaged(&where, 8, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuLibraryGetModule(&module, library));
	check_ok(cuModuleGetFunction(&add, module, "add"));
	check_ok(launch_add(add, where, 5));
	check_ok(cuCtxSynchronize());
	check_eq(*count, 105);
	check(*(CUdeviceptr *)host_of(where) == (CUdeviceptr)(uintptr_t)count);
	check_ok(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)count));
	check_eq(type, CU_MEMORYTYPE_DEVICE);
	check_ok(cuLibraryGetGlobal(&address, &size, library, "plain"));
	check_eq(device_word(address), 12);
	check_ok(cuLibraryGetGlobal(&address, &size, library, "count"));
	check(address == (CUdeviceptr)(uintptr_t)count);
	/* The variable is the library's and is the same in another context. */
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuLibraryGetModule(&module, library));
	check_ok(cuModuleGetFunction(&add, module, "add"));
	check_ok(launch_add(add, where, 1));
	check_ok(cuCtxSynchronize());
	check_eq(*count, 106);
	check_ok(cuLibraryGetGlobal(&address, &size, library, "plain"));
	check_eq(device_word(address), 8);
	check_ok(cuLibraryUnload(library));
}

TEST(a_managed_variable_of_a_module_is_shared_too)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr address = 0, again = 0, where;
	CUmodule module, second;
	unsigned int *count;
	CUfunction add;
	size_t size = 0;

	check_ok(cuMemAllocManaged(&where, 8, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuModuleLoadData(&module, variables_ptx));
	check_ok(cuModuleGetGlobal(&address, &size, module, "count"));
	count = host_of(address);
	check_eq(*count, 41);
	*count = 1;
	check_ok(cuModuleGetFunction(&add, module, "add"));
	check_ok(launch_add(add, where, 2));
	check_ok(cuCtxSynchronize());
	check_eq(*count, 3);
	/* Each module has its own, and what one had is given to the next. */
	check_ok(cuModuleLoadData(&second, variables_ptx));
	check_ok(cuModuleGetGlobal(&again, &size, second, "count"));
	check(again != address);
	check_eq(*(unsigned int *)host_of(again), 41);
	check_eq(*count, 3);
	check_ok(cuModuleUnload(module));
	check_ok(cuModuleLoadData(&module, variables_ptx));
	check_ok(cuModuleGetGlobal(&again, &size, module, "count"));
	check(again == address);
	check_eq(*(unsigned int *)host_of(again), 41);
	check(fixture.context);
}

/*
 * Threads that look up a variable while another ends what it is part of
 */

#define N_ROUNDS 200
#define N_LOOKERS 3

static const char large_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	".global .attribute(.managed) .align 8 .b8 large[3000000];\n"
	".visible .entry nothing() { ret; }\n";

static struct {
	CUcontext context;
	/* What the threads use, and how often they have; atomic. */
	CUmodule module;
	CUlibrary library;
	unsigned int n_looks, n_found;
	bool is_over;
} race;

static bool is_race_result(CUresult result)
{
	return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_HANDLE ||
	       result == CUDA_ERROR_NOT_FOUND ||
	       result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
	       result == CUDA_ERROR_INVALID_CONTEXT;
}

static void *look_up(void *unused)
{
	CUdeviceptr address;
	CUmodule module;
	CUlibrary library;
	CUresult result;
	size_t size;

	check_ok(cuCtxSetCurrent(race.context));
	while (!__atomic_load_n(&race.is_over, __ATOMIC_ACQUIRE)) {
		module = __atomic_load_n(&race.module, __ATOMIC_ACQUIRE);
		library = __atomic_load_n(&race.library, __ATOMIC_ACQUIRE);
		result = CUDA_ERROR_NOT_FOUND;
		if (module)
			result = cuModuleGetGlobal(&address, &size, module, "large");
		else if (library)
			result = cuLibraryGetManaged(&address, &size, library, "large");
		check(is_race_result(result));
		check(result != CUDA_SUCCESS || (address && size == 3000000));
		__atomic_add_fetch(&race.n_found, !result, __ATOMIC_RELAXED);
		__atomic_add_fetch(&race.n_looks, 1, __ATOMIC_RELEASE);
		sched_yield();
	}
	return NULL;
}

static void start_lookers(pthread_t *threads)
{
	for (int i = 0; i < N_LOOKERS; i++)
		check_eq(pthread_create(&threads[i], NULL, look_up, NULL), 0);
}

static void end_lookers(const pthread_t *threads)
{
	__atomic_store_n(&race.is_over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < N_LOOKERS; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	check(race.n_found);
}

/* Lets the threads get to some place in a look-up, another one each time. */
static void wait_for_looks(int round)
{
	const unsigned int n = __atomic_load_n(&race.n_looks, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&race.n_looks, __ATOMIC_ACQUIRE) - n <
		(unsigned int)round % 4)
		sched_yield();
}

TEST(a_managed_variable_is_looked_up_while_its_module_is_unloaded)
{
	pthread_t threads[N_LOOKERS];
	CUmodule module;

	race.context = fixture_new().context;
	start_lookers(threads);
	for (int i = 0; i < N_ROUNDS; i++) {
		check_ok(cuModuleLoadData(&module, large_ptx));
		__atomic_store_n(&race.module, module, __ATOMIC_RELEASE);
		wait_for_looks(i);
		check_ok(cuModuleUnload(module));
	}
	end_lookers(threads);
}

TEST(a_managed_variable_is_looked_up_while_its_library_is_unloaded)
{
	pthread_t threads[N_LOOKERS];
	CUlibrary library;

	race.context = fixture_new().context;
	start_lookers(threads);
	for (int i = 0; i < N_ROUNDS; i++) {
		check_ok(cuLibraryLoadData(
			&library, large_ptx, NULL, NULL, 0, NULL, NULL, 0));
		__atomic_store_n(&race.library, library, __ATOMIC_RELEASE);
		wait_for_looks(i);
		check_ok(cuLibraryUnload(library));
	}
	end_lookers(threads);
}

/* A reset takes the modules along. The threads stay in the context. */
TEST(a_managed_variable_is_looked_up_while_its_context_is_reset)
{
	struct fixture fixture = fixture_new();
	pthread_t threads[N_LOOKERS];
	CUmodule module;

	race.context = fixture.context;
	start_lookers(threads);
	for (int i = 0; i < N_ROUNDS / 4; i++) {
		check_ok(cuDevicePrimaryCtxRetain(&fixture.context, fixture.device));
		check_ok(cuModuleLoadData(&module, large_ptx));
		__atomic_store_n(&race.module, module, __ATOMIC_RELEASE);
		wait_for_looks(i);
		check_ok(cuDevicePrimaryCtxReset(fixture.device));
	}
	end_lookers(threads);
}
