/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that causes one kind of error, and prints its code
 *
 *	program init			cuInit
 *	program again			cuInit, twice
 *	program fork			cuInit in a child of a process that uses CUDA
 *	program load FILE [LOG]		cuModuleLoad, or with a log of the compiler
 *	program library FILE		cuLibraryLoadFromFile
 *	program function FILE NAME...	cuModuleGetFunction for each; runs the last
 *	program launch FILE NAME	cuLaunchKernel of a kernel of a library
 *	program clusters FILE NAME	cuLaunchKernelEx of clusters of nine blocks
 *	program updatable FILE NAME	of a node that the device may update
 *	program graph			cuGraphInstantiate of one for kernels to launch
 *	program modules FILE		the same module until one is refused
 *	program link FILE...		cuLinkAddFile, cuLinkComplete
 *	program table UUID...		cuGetExportTable for each (32 hex digits)
 *	program alloc BYTES		cuMemAlloc until one is refused
 *	program streams			cuStreamCreate until one is refused
 *	program thread			cuMemAlloc in a second thread
 *	program pinned BYTES		cuMemAllocHost until one is refused
 *	program create-host BYTES	cuMemCreate on the host until one is refused
 *	program option FILE		cuModuleLoadDataEx with an option that points
 *	program crowded FILE		cuModuleLoad when pinned memory has taken all
 *	program refused			a call that is not remoted
 *	program wait			says "ready", then calls until the session is over
 *	program eat			the same, with more and more host memory in use
 *	program hoard			the same, but nothing of it is mapped
 *	program reserve BYTES		cuMemAddressReserve until one is refused
 *	program share BYTES		cuMemCreate for export until one is refused
 *	program map BYTES		cuMemMap of one piece until one is refused
 *
 * "code N" is the last line of standard output; the exit status is 0 if the program got
 * there.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#define LOG_SIZE 1024

static char **words;

static CUresult start(void)
{
	CUcontext context;
	CUdevice device;
	CUresult result = cuInit(0);

	if (result == CUDA_SUCCESS)
		result = cuDeviceGet(&device, 0);
	if (result == CUDA_SUCCESS)
		result = cuDevicePrimaryCtxRetain(&context, device);
	return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *bytes = calloc(1, 1 << 20);

	if (!file || !bytes || !fread(bytes, 1, (1 << 20) - 1, file))
		exit(2);
	fclose(file);
	return bytes;
}

static CUresult init(void)
{
	return cuInit(0);
}

static CUresult again(void)
{
	cuInit(0);
	return cuInit(0);
}

static CUresult in_child(void)
{
	CUresult result = start();
	int status;
	pid_t pid;

	if (result != CUDA_SUCCESS)
		return result;
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(cuInit(0));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		exit(2);
	return WEXITSTATUS(status);
}

static CUresult load(void)
{
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	char log[LOG_SIZE] = "";
	void *values[] = { log, (void *)sizeof(log) };
	CUresult result;
	CUmodule module;

	if (!words[1])
		return cuModuleLoad(&module, words[0]);
	result = cuModuleLoadDataEx(&module, read_file(words[0]), 2, options, values);
	printf("log %s\n", log);
	return result;
}

static CUresult load_library(void)
{
	CUlibrary library;

	return cuLibraryLoadFromFile(&library, words[0], NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult find_functions(void)
{
	CUmodule module;
	CUfunction function;
	CUresult result = cuModuleLoad(&module, words[0]);

	for (int i = 1; words[i]; i++)
		result = cuModuleGetFunction(&function, module, words[i]);
	return result == CUDA_SUCCESS
		       ? cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)
		       : result;
}

static CUresult launch(void)
{
	CUlibrary library;
	CUkernel kernel;
	CUresult result;

	result = cuLibraryLoadFromFile(&library, words[0], NULL, NULL, 0, NULL, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = cuLibraryGetKernel(&kernel, library, words[1]);
	if (result == CUDA_SUCCESS)
		result = cuLaunchKernel(
			(CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return result;
}

static CUresult launch_with(CUlaunchAttributeID id, unsigned int value)
{
	CUlaunchAttribute attribute = { .id = id };
	CUlaunchConfig config = { value, 1, 1, 1, 1, 1, 0, NULL, &attribute, 1 };
	CUfunction function;
	CUmodule module;
	CUresult result;

	attribute.value.clusterDim.x = value;
	attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
	result = cuModuleLoad(&module, words[0]);
	if (result == CUDA_SUCCESS)
		result = cuModuleGetFunction(&function, module, words[1]);
	return result == CUDA_SUCCESS ? cuLaunchKernelEx(&config, function, NULL, NULL)
				      : result;
}

static CUresult launch_clusters(void)
{
	return launch_with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 9);
}

static CUresult launch_updatable(void)
{
	return launch_with(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 2);
}

static CUresult instantiate_for_kernels(void)
{
	CUgraphExec exec;
	CUgraph graph;
	CUresult result = cuGraphCreate(&graph, 0);

	return result == CUDA_SUCCESS ? cuGraphInstantiateWithFlags(&exec, graph,
						CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
				      : result;
}

static CUresult load_many(void)
{
	CUresult result = CUDA_SUCCESS;
	CUmodule module;

	while (result == CUDA_SUCCESS)
		result = cuModuleLoad(&module, words[0]);
	return result;
}

static CUresult link_files(void)
{
	CUlinkState link;
	CUresult result;
	size_t size;
	void *image;

	result = cuLinkCreate(0, NULL, NULL, &link);
	for (int i = 0; words[i] && result == CUDA_SUCCESS; i++)
		result = cuLinkAddFile(link, CU_JIT_INPUT_PTX, words[i], 0, NULL, NULL);
	return result == CUDA_SUCCESS ? cuLinkComplete(link, &image, &size) : result;
}

static CUresult get_tables(void)
{
	CUresult result = CUDA_SUCCESS;
	const void *table;

	for (int i = 0; words[i]; i++) {
		CUuuid id;

		for (int j = 0; j < 16; j++) {
			unsigned int byte;

			if (sscanf(words[i] + 2 * j, "%2x", &byte) != 1)
				exit(2);
			id.bytes[j] = (char)byte;
		}
		result = cuGetExportTable(&table, &id);
	}
	return result;
}

static CUresult allocate(void)
{
	CUresult result = CUDA_SUCCESS;
	CUdeviceptr memory;

	while (result == CUDA_SUCCESS)
		result = cuMemAlloc(&memory, strtoull(words[0], NULL, 0));
	return result;
}

static CUresult make_streams(void)
{
	CUresult result = CUDA_SUCCESS;
	CUstream stream;

	while (result == CUDA_SUCCESS)
		result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	return result;
}

struct second {
	CUcontext context;
	CUresult result;
};

static void *allocate_second(void *data)
{
	struct second *second = data;
	CUdeviceptr memory;

	second->result = cuCtxSetCurrent(second->context);
	if (second->result == CUDA_SUCCESS)
		second->result = cuMemAlloc(&memory, 4096);
	return NULL;
}

static CUresult call_in_thread(void)
{
	struct second second = {};
	CUresult result = cuCtxGetCurrent(&second.context);
	pthread_t thread;

	if (result != CUDA_SUCCESS)
		return result;
	if (pthread_create(&thread, NULL, allocate_second, &second))
		return CUDA_ERROR_UNKNOWN;
	pthread_join(thread, NULL);
	return second.result;
}

static CUresult allocate_pinned(void)
{
	CUresult result = CUDA_SUCCESS;
	void *memory;

	while (result == CUDA_SUCCESS)
		result = cuMemAllocHost(&memory, strtoull(words[0], NULL, 0));
	return result;
}

static CUresult create_on_host(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST },
	};
	CUmemGenericAllocationHandle handle;
	CUresult result = CUDA_SUCCESS;

	while (result == CUDA_SUCCESS)
		result = cuMemCreate(&handle, strtoull(words[0], NULL, 0), &prop, 0);
	return result;
}

/* Memory that other processes may have. */
static CUresult register_shared(void)
{
	void *memory = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return cuMemHostRegister(memory, 4096, 0);
}

/* Two halves of a page. */
static CUresult register_halves(void)
{
	char *memory = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int has = 0;
	CUresult result = cuDeviceGetAttribute(
		&has, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0);

	if (result == CUDA_SUCCESS && !has)
		puts("unsupported");
	if (result == CUDA_SUCCESS)
		result = cuMemHostRegister(memory, 2048, 0);
	return result == CUDA_SUCCESS ? cuMemHostRegister(memory + 2048, 2048, 0)
				      : result;
}

static CUresult load_with_option(void)
{
	CUjit_option options[] = { CU_JIT_REFERENCED_KERNEL_COUNT };
	void *values[] = { (void *)1 };
	CUmodule module;

	return cuModuleLoadDataEx(&module, read_file(words[0]), 1, options, values);
}

/* A load where pinned memory has left no room. */
static CUresult load_crowded(void)
{
	void *memory;

	for (size_t size = 64 << 20; size >= 4096; size /= 2)
		while (cuMemAllocHost(&memory, size) == CUDA_SUCCESS)
			;
	return load();
}

static CUresult call_refused(void)
{
	return cuDestroyExternalMemory(NULL);
}

static CUresult wait_for_end(void)
{
	CUresult result = CUDA_SUCCESS;

	puts("ready");
	fflush(stdout);
	while (result == CUDA_SUCCESS) {
		usleep(1000);
		result = cuCtxSynchronize();
	}
	return result;
}

/* On softgpu device memory is the host's. */
static CUresult eat(void)
{
	CUresult result = CUDA_SUCCESS;
	CUdeviceptr memory;

	while (result == CUDA_SUCCESS) {
		result = cuMemAlloc(&memory, 16 << 20);
		if (result == CUDA_SUCCESS)
			result = cuMemsetD8(memory, 1, 16 << 20);
		if (result == CUDA_ERROR_OUT_OF_MEMORY)
			result = wait_for_end();
	}
	return result;
}

/* Memory that was written stays in use when it is mapped nowhere. */
static CUresult hoard(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	const CUmemAccessDesc access = { prop.location,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const size_t size = 16 << 20;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	CUresult result;

	result = cuMemAddressReserve(&address, size, 0, 0, 0);
	while (result == CUDA_SUCCESS) {
		result = cuMemCreate(&handle, size, &prop, 0);
		if (result == CUDA_SUCCESS)
			result = cuMemMap(address, size, 0, handle, 0);
		if (result == CUDA_SUCCESS)
			result = cuMemSetAccess(address, size, &access, 1);
		if (result == CUDA_SUCCESS)
			result = cuMemsetD8(address, 1, size);
		if (result == CUDA_SUCCESS)
			result = cuCtxSynchronize();
		if (result == CUDA_SUCCESS)
			result = cuMemUnmap(address, size);
		if (result == CUDA_ERROR_OUT_OF_MEMORY)
			result = wait_for_end();
	}
	return result;
}

static CUresult reserve_addresses(void)
{
	CUresult result = CUDA_SUCCESS;
	CUdeviceptr address;

	while (result == CUDA_SUCCESS)
		result = cuMemAddressReserve(
			&address, strtoull(words[0], NULL, 0), 0, 0, 0);
	return result;
}

/* One piece of memory at one address after another. */
static CUresult share_memory(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	CUmemGenericAllocationHandle handle;
	CUresult result;

	do
		result = cuMemCreate(&handle, strtoull(words[0], NULL, 0), &prop, 0);
	while (!result);
	return result;
}

static CUresult map_addresses(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	const size_t size = strtoull(words[0], NULL, 0), n = 1 << 15;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	CUresult result;

	result = cuMemAddressReserve(&address, n * size, 0, 0, 0);
	if (result == CUDA_SUCCESS)
		result = cuMemCreate(&handle, size, &prop, 0);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = cuMemMap(address + i * size, size, 0, handle, 0);
	return result;
}

static const struct mode {
	const char *name;
	CUresult (*run)(void);
	int needs_start;
} modes[] = {
	{ "init", init, 0 },
	{ "again", again, 0 },
	{ "fork", in_child, 0 },
	{ "load", load, 1 },
	{ "library", load_library, 1 },
	{ "function", find_functions, 1 },
	{ "launch", launch, 1 },
	{ "clusters", launch_clusters, 1 },
	{ "updatable", launch_updatable, 1 },
	{ "graph", instantiate_for_kernels, 1 },
	{ "modules", load_many, 1 },
	{ "link", link_files, 1 },
	{ "table", get_tables, 1 },
	{ "alloc", allocate, 1 },
	{ "streams", make_streams, 1 },
	{ "thread", call_in_thread, 1 },
	{ "pinned", allocate_pinned, 1 },
	{ "create-host", create_on_host, 1 },
	{ "register", register_shared, 1 },
	{ "register-page", register_halves, 1 },
	{ "option", load_with_option, 1 },
	{ "crowded", load_crowded, 1 },
	{ "refused", call_refused, 1 },
	{ "wait", wait_for_end, 1 },
	{ "eat", eat, 1 },
	{ "hoard", hoard, 1 },
	{ "reserve", reserve_addresses, 1 },
	{ "map", map_addresses, 1 },
	{ "share", share_memory, 1 },
};

int main(int argc, char **argv)
{
	CUresult result = CUDA_SUCCESS;

	if (argc < 2)
		return 2;
	words = argv + 2;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		if (modes[i].needs_start)
			result = start();
		if (result == CUDA_SUCCESS)
			result = modes[i].run();
		printf("code %d\n", result);
		return 0;
	}
	return 2;
}
