/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our libcudart.so.12 and .13, without a compiler of NVIDIA's: the test registers device
 * code as its object files do. Each test runs on the library that RUNTIME names.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "runtime/types.h"

/* What the tests load lasts as long as the process. */
const bool test_keeps_descriptors = true;

/*
 * Functions of the library
 */

static void *library;

static void *find(const char *name)
{
	void *found;

	if (!library) {
		library = dlopen(getenv("RUNTIME"), RTLD_NOW);
		if (!library)
			test_fail(__FILE__, __LINE__, "%s", dlerror());
	}
	found = dlsym(library, name);
	if (!found)
		test_fail(__FILE__, __LINE__, "%s is not exported", name);
	return found;
}

/* CALL(cudaFree, void *)(p) */
#define CALL(_name, ...) ((int (*)(__VA_ARGS__))find(#_name))
#define OK(_result) check_eq(_result, 0)

static int version(void)
{
	int v = 0;

	OK(CALL(cudaRuntimeGetVersion, int *)(&v));
	return v;
}

static bool is_12(void)
{
	return version() < 13000;
}

static int last_error(void)
{
	return CALL(cudaGetLastError, void)();
}

/*
 * Device code: a fat binary of PTX, as compilers make them
 */

static const char ptx[] = ".version 7.0\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 variable[4];\n"
			  ".visible .entry add(.param .u64 p, .param .u32 n)\n"
			  "{\n"
			  ".reg .u32 %r<4>;\n"
			  ".reg .u64 %rd<4>;\n"
			  "ld.param.u64 %rd1, [p];\n"
			  "ld.param.u32 %r1, [n];\n"
			  "ld.global.u32 %r2, [variable];\n"
			  "add.u32 %r1, %r1, %r2;\n"
			  "st.global.u32 [%rd1], %r1;\n"
			  "ret;\n"
			  "}\n";

struct fat_binary {
	struct {
		uint32_t magic;
		uint16_t version, header_size;
		uint64_t size;
	} header;
	struct {
		uint16_t kind, version;
		uint32_t header_size;
		uint64_t stored_size;
		uint32_t compressed_size, options_off;
		uint16_t minor, major;
		uint32_t arch, name_off, name_size;
		uint64_t flags, zero, size;
	} entry;
	char text[(sizeof(ptx) + 7) & ~7];
};

struct wrapper {
	uint32_t magic, version;
	const void *data;
	void *name;
};

static struct fat_binary binary = {
	.header = { 0xba55ed50, 1, 16, sizeof(binary.entry) + sizeof(binary.text) },
	.entry = {
		.kind = 1,
		.version = 0x101,
		.header_size = sizeof(binary.entry),
		.stored_size = sizeof(binary.text),
		.major = 7,
		.arch = 75,
		.flags = 0x11,
	},
};
static struct wrapper wrapper = { 0x466243b1, 1, &binary, NULL };

/* Host symbols of the kernel, of the variable, and of nothing. */
static char add_host, variable_host, nothing_host;

static void **register_code(void)
{
	void **handle;

	memcpy(binary.text, ptx, sizeof(ptx));
	handle = ((void **(*)(void *))find("__cudaRegisterFatBinary"))(&wrapper);
	check(handle);
	((void (*)(void **, const void *, char *, const char *, int, void *, void *,
		void *, void *, int *))find("__cudaRegisterFunction"))(
		handle, &add_host, "add", "add", -1, NULL, NULL, NULL, NULL, NULL);
	((void (*)(void **, char *, char *, const char *, int, size_t, int, int))find(
		"__cudaRegisterVar"))(
		handle, &variable_host, "variable", "variable", 0, 16, 0, 0);
	((void (*)(void **))find("__cudaRegisterFatBinaryEnd"))(handle);
	return handle;
}

static void unregister_code(void **handle)
{
	((void (*)(void **))find("__cudaUnregisterFatBinary"))(handle);
}

static int launch(const void *function, void *p, unsigned int n)
{
	void *params[] = { &p, &n };
	const dim3 one = { 1, 1, 1 };

	return CALL(cudaLaunchKernel, const void *, dim3, dim3, void **, size_t,
		cudaStream_t)(function, one, one, params, 0, NULL);
}

static void *allocate(size_t size)
{
	void *p = NULL;

	OK(CALL(cudaMalloc, void **, size_t)(&p, size));
	check(p);
	return p;
}

static int copy(void *dst, const void *src, size_t size, int kind)
{
	return CALL(cudaMemcpy, void *, const void *, size_t, int)(dst, src, size, kind);
}

static unsigned int read_word(const void *p)
{
	unsigned int word = 0xdeadbeef;

	OK(copy(&word, p, sizeof(word), cudaMemcpyDeviceToHost));
	return word;
}

/*
 * Tests
 */

TEST(the_version_is_that_of_the_name)
{
	int driver = 0;

	check_eq(version(), strstr(getenv("RUNTIME"), ".so.12") ? 12090 : 13000);
	OK(CALL(cudaDriverGetVersion, int *)(&driver));
	check(driver >= version());
}

TEST(registered_code_is_loaded_and_launched)
{
	void **handle = register_code(), *p = allocate(4), *address = NULL;
	unsigned int value = 40;
	size_t size = 0;

	OK(CALL(cudaMemcpyToSymbol, const void *, const void *, size_t, size_t, int)(
		&variable_host, &value, 4, 0, cudaMemcpyHostToDevice));
	OK(launch(&add_host, p, 2));
	check_eq(read_word(p), 42);
	OK(CALL(cudaGetSymbolAddress, void **, const void *)(&address, &variable_host));
	check_eq(read_word(address), 40);
	OK(CALL(cudaGetSymbolSize, size_t *, const void *)(&size, &variable_host));
	check_eq(size, 16);
	check_eq(launch(&nothing_host, p, 2), cudaErrorInvalidDeviceFunction);
	check_eq(last_error(), cudaErrorInvalidDeviceFunction);
	unregister_code(handle);
	check_eq(launch(&add_host, p, 2), cudaErrorInvalidDeviceFunction);
	check_eq(CALL(cudaGetSymbolSize, size_t *, const void *)(&size, &variable_host),
		cudaErrorInvalidSymbol);
}

TEST(code_registered_after_the_first_call_is_loaded)
{
	void *p = allocate(4);
	void **first = register_code(), **second = register_code();

	OK(launch(&add_host, p, 1));
	check_eq(read_word(p), 1);
	unregister_code(second);
	OK(launch(&add_host, p, 2));
	check_eq(read_word(p), 2);
	unregister_code(first);
}

TEST(generated_launches_use_handles_and_configurations)
{
	void **image = register_code(), *p = allocate(4);
	unsigned int n = 5;
	void *params[] = { &p, &n };
	const dim3 one = { 1, 1, 1 }, two = { 2, 2, 2 };
	dim3 grid, block;
	size_t shared_size = 7;
	cudaStream_t stream = NULL;
	CUkernel kernel = NULL;

	OK(CALL(__cudaPushCallConfiguration, dim3, dim3, size_t, cudaStream_t)(
		one, two, 16, CU_STREAM_PER_THREAD));
	OK(CALL(__cudaPushCallConfiguration, dim3, dim3, size_t, cudaStream_t)(
		two, one, 0, NULL));
	OK(CALL(__cudaPopCallConfiguration, dim3 *, dim3 *, size_t *, void *)(
		&grid, &block, &shared_size, &stream));
	check_eq(grid.y, 2);
	check_eq(block.z, 1);
	check(!stream && !shared_size);
	OK(CALL(__cudaPopCallConfiguration, dim3 *, dim3 *, size_t *, void *)(
		&grid, &block, &shared_size, &stream));
	check_eq(block.x, 2);
	check_eq(shared_size, 16);
	check(stream == CU_STREAM_PER_THREAD);
	check_eq(CALL(__cudaPopCallConfiguration, dim3 *, dim3 *, size_t *, void *)(
			 &grid, &block, &shared_size, &stream),
		cudaErrorMissingConfiguration);
	OK(CALL(__cudaGetKernel, CUkernel *, const void *)(&kernel, &add_host));
	OK(CALL(__cudaLaunchKernel, CUkernel, dim3, dim3, void **, size_t, cudaStream_t)(
		kernel, one, one, params, 0, NULL));
	check_eq(read_word(p), 5);
	n = 6;
	OK(CALL(__cudaLaunchKernel_ptsz, CUkernel, dim3, dim3, void **, size_t,
		cudaStream_t)(kernel, one, one, params, 0, NULL));
	OK(CALL(cudaStreamSynchronize_ptsz, cudaStream_t)(NULL));
	check_eq(read_word(p), 6);
	unregister_code(image);
}

TEST(configurations_are_not_without_end)
{
	const dim3 one = { 1, 1, 1 };
	int result = 0, n = 0;

	while (!result && n++ < 1000)
		result = CALL(__cudaPushCallConfiguration, dim3, dim3, size_t,
			cudaStream_t)(one, one, 0, NULL);
	check(result != 0);
}

TEST(libraries_have_kernels_until_they_are_unloaded)
{
	void *p = allocate(4);
	CUlibrary loaded = NULL;
	CUkernel kernel = NULL, all[4] = { NULL };
	unsigned int n = 0;

	OK(CALL(cudaLibraryLoadData, CUlibrary *, const void *, void *, void **,
		unsigned int, void *, void **,
		unsigned int)(&loaded, ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(CALL(cudaLibraryGetKernel, CUkernel *, CUlibrary, const char *)(
		&kernel, loaded, "add"));
	OK(CALL(cudaLibraryGetKernelCount, unsigned int *, CUlibrary)(&n, loaded));
	check_eq(n, 1);
	OK(CALL(cudaLibraryEnumerateKernels, CUkernel *, unsigned int, CUlibrary)(
		all, 4, loaded));
	check(all[0] && !all[1]);
	OK(launch(kernel, p, 3));
	check_eq(read_word(p), 3);
	OK(CALL(cudaLibraryUnload, CUlibrary)(loaded));
	check_eq(launch(kernel, p, 4), cudaErrorInvalidDeviceFunction);
}

TEST(structures_have_the_size_of_their_version)
{
	unsigned char buffer[2048];
	const size_t old_size = offsetof(rt_device_prop_12, hostRegisterSupported);
	cudaPointerAttributes attributes;
	int major = 0;

	memset(buffer, 0xa5, sizeof(buffer));
	OK(CALL(cudaGetDeviceProperties, void *, int)(buffer, 0));
	OK(CALL(cudaDeviceGetAttribute, int *, int, int)(
		&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	if (is_12()) {
		const rt_device_prop_12 *prop = (const void *)buffer;

		check_eq(prop->major, major);
		check_eq(buffer[old_size], 0xa5);
		OK(CALL(cudaGetDeviceProperties_v2, void *, int)(buffer, 0));
		check_eq(prop->memoryPoolsSupported, 1);
		check_eq(prop->warpSize, 32);
		check_eq(buffer[sizeof(*prop)], 0xa5);
	} else {
		const cudaDeviceProp *prop = (const void *)buffer;

		check_eq(prop->major, major);
		check_eq(prop->warpSize, 32);
		check_eq(buffer[sizeof(*prop)], 0xa5);
		check(buffer[sizeof(*prop) - 1] != 0xa5);
	}
	memset(&attributes, 0xa5, sizeof(attributes));
	OK(CALL(cudaPointerGetAttributes, void *, const void *)(
		&attributes, allocate(4)));
	check_eq(attributes.type, cudaMemoryTypeDevice);
	check_eq(attributes.reserved[0] == 0, !is_12());
}

TEST(textures_describe_themselves)
{
	const cudaTextureDesc desc = { .readMode = cudaReadModeElementType };
	cudaResourceDesc resource = { .resType = CU_RESOURCE_TYPE_LINEAR }, found;
	CUtexObject texture = 0;

	/* Neither read nor written by programs of 12. */
	resource.flags = is_12() ? 0xa5a5a5a5 : 0;
	resource.res.linear.devPtr = allocate(4096);
	resource.res.linear.desc =
		(cudaChannelFormatDesc){ 32, 32, 0, 0, cudaChannelFormatKindFloat };
	resource.res.linear.sizeInBytes = 4096;
	OK(CALL(cudaCreateTextureObject, CUtexObject *, const void *, const void *,
		const void *)(&texture, &resource, &desc, NULL));
	memset(&found, 0xa5, sizeof(found));
	OK(CALL(cudaGetTextureObjectResourceDesc, void *, CUtexObject)(&found, texture));
	check_eq(found.res.linear.desc.y, 32);
	check_eq(found.res.linear.desc.z, 0);
	check(found.res.linear.devPtr == resource.res.linear.devPtr);
	check_eq(found.flags, resource.flags);
	OK(CALL(cudaDestroyTextureObject, CUtexObject)(texture));
}

TEST(twins_work_in_the_stream_of_the_thread)
{
	unsigned int value = 7;
	void *p = allocate(4);

	OK(CALL(cudaMemcpy_ptds, void *, const void *, size_t, int)(
		p, &value, 4, cudaMemcpyHostToDevice));
	check_eq(read_word(p), 7);
	OK(CALL(cudaMemset_ptds, void *, int, size_t)(p, 1, 4));
	check_eq(read_word(p), 0x1010101);
	OK(CALL(cudaMemsetAsync_ptsz, void *, int, size_t, cudaStream_t)(p, 2, 4, NULL));
	OK(CALL(cudaStreamSynchronize_ptsz, cudaStream_t)(NULL));
	check_eq(read_word(p), 0x2020202);
	OK(CALL(cudaStreamQuery_ptsz, cudaStream_t)(NULL));
	/* A capture is possible in the stream of the thread, and not in that of all. */
	check_eq(CALL(cudaStreamBeginCapture, cudaStream_t, int)(NULL, 0),
		cudaErrorStreamCaptureUnsupported);
	OK(CALL(cudaStreamBeginCapture_ptsz, cudaStream_t, int)(NULL, 0));
	OK(CALL(cudaStreamEndCapture_ptsz, cudaStream_t, CUgraph *)(
		NULL, &(CUgraph){ 0 }));
}

/* Two empty nodes, one after the other. */
static CUgraph make_graph(CUgraphNode nodes[2])
{
	CUgraph graph = NULL;

	OK(CALL(cudaGraphCreate, CUgraph *, unsigned int)(&graph, 0));
	for (int i = 0; i < 2; i++)
		OK(CALL(cudaGraphAddEmptyNode, CUgraphNode *, CUgraph, CUgraphNode *,
			size_t)(&nodes[i], graph, NULL, 0));
	return graph;
}

TEST(edges_have_data_in_the_newer_calls)
{
	CUgraphNode nodes[2], from = NULL, to = NULL;
	CUgraphEdgeData edge = { .from_port = 7 };
	CUgraph graph = make_graph(nodes);
	size_t n = 1;

	if (is_12()) {
		OK(CALL(cudaGraphAddDependencies, CUgraph, void *, void *, size_t)(
			graph, &nodes[0], &nodes[1], 1));
		OK(CALL(cudaGraphGetEdges, CUgraph, void *, void *, size_t *)(
			graph, &from, &to, &n));
		check(n == 1 && from == nodes[0] && to == nodes[1]);
		from = NULL;
		OK(CALL(cudaGraphGetEdges_v2, CUgraph, void *, void *, void *, size_t *)(
			graph, &from, &to, &edge, &n));
	} else {
		OK(CALL(cudaGraphAddDependencies, CUgraph, void *, void *, void *,
			size_t)(graph, &nodes[0], &nodes[1], NULL, 1));
		OK(CALL(cudaGraphGetEdges, CUgraph, void *, void *, void *, size_t *)(
			graph, &from, &to, &edge, &n));
	}
	check(n == 1 && from == nodes[0] && to == nodes[1]);
	check_eq(edge.from_port, 0);
	OK(CALL(cudaGraphDestroy, CUgraph)(graph));
}

TEST(captures_describe_themselves_in_each_version)
{
	CUstreamCaptureStatus status = 0;
	const CUgraphNode *nodes = NULL;
	const CUgraphEdgeData *edges = NULL;
	unsigned long long id = 0, again = 0;
	cudaStream_t stream = NULL;
	void *p = allocate(4);
	CUgraph graph = NULL;
	size_t n = 77;

	OK(CALL(cudaStreamCreate, cudaStream_t *)(&stream));
	OK(CALL(cudaStreamBeginCapture, cudaStream_t, int)(stream, 0));
	OK(CALL(cudaMemsetAsync, void *, int, size_t, cudaStream_t)(p, 0, 4, stream));
	if (is_12()) {
		OK(CALL(cudaStreamGetCaptureInfo, cudaStream_t, void *, void *)(
			stream, &status, &id));
		check_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
		OK(CALL(cudaStreamGetCaptureInfo_v2, cudaStream_t, void *, void *, void *,
			void *, size_t *)(stream, &status, &again, &graph, &nodes, &n));
		check(n == 1 && graph && nodes && again == id);
		n = 77;
		OK(CALL(cudaStreamGetCaptureInfo_v3, cudaStream_t, void *, void *, void *,
			void *, void *,
			size_t *)(stream, &status, &again, &graph, &nodes, &edges, &n));
	} else {
		OK(CALL(cudaStreamGetCaptureInfo, cudaStream_t, void *, void *, void *,
			void *, void *,
			size_t *)(stream, &status, &id, &graph, &nodes, &edges, &n));
		again = id;
	}
	check(n == 1 && graph && nodes && id && again == id);
	OK(CALL(cudaStreamEndCapture, cudaStream_t, CUgraph *)(stream, &graph));
}

TEST(advice_takes_a_number_or_a_location)
{
	const CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	void *p = NULL;

	OK(CALL(cudaMallocManaged, void **, size_t, unsigned int)(&p, 4096, 1));
	if (is_12()) {
		OK(CALL(cudaMemAdvise, void *, size_t, int, int)(
			p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
		OK(CALL(cudaMemAdvise_v2, void *, size_t, int, CUmemLocation)(
			p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
		OK(CALL(cudaMemPrefetchAsync, void *, size_t, int, cudaStream_t)(
			p, 4096, CU_DEVICE_CPU, NULL));
	} else {
		OK(CALL(cudaMemAdvise, void *, size_t, int, CUmemLocation)(
			p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
		OK(CALL(cudaMemPrefetchAsync, void *, size_t, CUmemLocation, unsigned int,
			cudaStream_t)(p, 4096, host, 0, NULL));
	}
	OK(CALL(cudaDeviceSynchronize, void)());
	OK(CALL(cudaFree, void *)(p));
}

static void *fail(void *unused)
{
	check_eq(last_error(), 0);
	check_eq(CALL(cudaSetDevice, int)(99), cudaErrorInvalidDevice);
	check_eq(CALL(cudaPeekAtLastError, void)(), cudaErrorInvalidDevice);
	return NULL;
}

TEST(each_thread_has_its_last_error_and_the_context_of_all)
{
	pthread_t thread;
	void *p = allocate(4);

	check_eq(CALL(cudaSetDevice, int)(-1), cudaErrorInvalidDevice);
	check_eq(pthread_create(&thread, NULL, fail, NULL), 0);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(last_error(), cudaErrorInvalidDevice);
	check_eq(last_error(), 0);
	OK(CALL(cudaFree, void *)(p));
}

static void *write_word(void *p)
{
	unsigned int word = 3;

	OK(copy(p, &word, 4, cudaMemcpyHostToDevice));
	return NULL;
}

static void *allocate_in_thread(void *unused)
{
	return allocate(4);
}

TEST(a_reset_is_seen_by_all_threads)
{
	void **handle = register_code(), *p = allocate(4);
	pthread_t thread;

	OK(launch(&add_host, p, 1));
	OK(CALL(cudaDeviceReset, void)());
	check(CALL(cudaFree, void *)(p) != 0);
	last_error();
	check_eq(pthread_create(&thread, NULL, allocate_in_thread, NULL), 0);
	check_eq(pthread_join(thread, &p), 0);
	/* Kernels that were looked up before are usable again. */
	OK(launch(&add_host, p, 9));
	check_eq(read_word(p), 9);
	check_eq(pthread_create(&thread, NULL, write_word, p), 0);
	check_eq(pthread_join(thread, NULL), 0);
	check_eq(read_word(p), 3);
	unregister_code(handle);
}

TEST(a_reset_by_another_runtime_is_noticed)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*reset)(CUdevice) = dlsym(driver, "cuDevicePrimaryCtxReset_v2");
	void *p = allocate(4);

	check(reset);
	check_eq(reset(0), CUDA_SUCCESS);
	OK(CALL(cudaMalloc, void **, size_t)(&p, 4));
	write_word(p);
	check_eq(read_word(p), 3);
}

TEST(a_context_of_the_driver_api_is_used)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *p;
	CUresult (*create)(CUcontext *, unsigned int, CUdevice) =
		dlsym(driver, "cuCtxCreate_v2");
	CUresult (*attribute)(void *, CUpointer_attribute, CUdeviceptr) =
		dlsym(driver, "cuPointerGetAttribute");
	CUcontext context = NULL, found = NULL;

	check(create && attribute);
	OK(CALL(cudaGetLastError, void)());
	check_eq(create(&context, 0, 0), CUDA_SUCCESS);
	p = allocate(4);
	check_eq(attribute(&found, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)p),
		CUDA_SUCCESS);
	check(found == context);
	/* The runtime's own from now on. */
	OK(CALL(cudaSetDevice, int)(0));
	p = allocate(4);
	check_eq(attribute(&found, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)p),
		CUDA_SUCCESS);
	check(found && found != context);
}

static void never_called(void *info, void *data, void *handle)
{
	abort();
}

TEST(notifications_are_the_drivers)
{
	void *handle = NULL;

	OK(CALL(cudaDeviceRegisterAsyncNotification, int,
		void (*)(void *, void *, void *), void *,
		void **)(0, never_called, NULL, &handle));
	check(handle);
	OK(CALL(cudaDeviceUnregisterAsyncNotification, int, void *)(0, handle));
	check_eq(CALL(cudaDeviceUnregisterAsyncNotification, int, void *)(0, handle),
		cudaErrorInvalidValue);
	check_eq(last_error(), cudaErrorInvalidValue);
}

TEST(refused_calls_say_so)
{
	static const char *const names[] = {
		"cudaImportExternalMemory",
		"cudaSignalExternalSemaphoresAsync_ptsz",
		"cudaGraphicsMapResources",
		"cudaGLGetDevices",
		"cudaGetExportTable",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*call)(void) = find(names[i]);

		check_eq(call(), cudaErrorNotSupported);
		check_eq(last_error(), cudaErrorNotSupported);
	}
}
