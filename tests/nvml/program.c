/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that finds its device by NVML and computes there by CUDA
 *
 *	program compute ORDER [stay]	loads n (NVML) and c (CUDA) in that order,
 *computes on NVML's first device, and looks for itself in NVML's list; stay: until the
 *input ends program watch			says 'there', 'lost' and 'back', and ends
 *then program cycle N			initialises and shuts down so many times, and
 *					counts what is left
 *
 * Both libraries are those that the loader finds. Exit status: 0, or 1 after a line that
 * says what went wrong.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/cuda.h"
#include "vgpu/nvml.h"

#define N 1024u
#define MEMORY (8u << 20)
#define LOOKS 2400
#define LOOK_NS 50000000

static void *nvml, *cuda;

#define NVML(_name) ((__typeof__(&_name))look_up(nvml, #_name))
#define CUDA(_name) ((__typeof__(&_name))look_up(cuda, #_name))

static const char image[] = ".version 7.0\n"
			    ".target sm_50\n"
			    ".address_size 64\n"
			    ".visible .entry triple(.param .u64 to)\n"
			    "{\n"
			    "	.reg .u32 %r<5>;\n"
			    "	.reg .u64 %rd<3>;\n"
			    "	ld.param.u64 %rd1, [to];\n"
			    "	mov.u32 %r1, %ctaid.x;\n"
			    "	mov.u32 %r2, %ntid.x;\n"
			    "	mov.u32 %r3, %tid.x;\n"
			    "	mad.lo.u32 %r1, %r1, %r2, %r3;\n"
			    "	mad.wide.u32 %rd2, %r1, 4, %rd1;\n"
			    "	mul.lo.u32 %r4, %r1, 3;\n"
			    "	st.global.u32 [%rd2], %r4;\n"
			    "	ret;\n"
			    "}\n";

__attribute__((__noreturn__, __format__(__printf__, 1, 2))) static void fail(
	const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	exit(1);
}

static void *look_up(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		fail("%s: %s", name, dlerror());
	return function;
}

static void must(const char *what, int result)
{
	if (result)
		fail("%s: %d", what, result);
}

static void load(char which)
{
	const char *name = which == 'n' ? "libnvidia-ml.so.1" : "libcuda.so.1";
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fail("%s", dlerror());
	*(which == 'n' ? &nvml : &cuda) = library;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

/*
 * Computing
 */

static nvmlDevice_t first_device(void)
{
	nvmlDevice_t device;

	must("nvmlInit_v2", NVML(nvmlInit_v2)());
	must("nvmlDeviceGetHandleByIndex_v2",
		NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device));
	return device;
}

/* CUDA's number of NVML's device. */
static CUdevice find_device(const char *uuid)
{
	int n = 0;

	must("cuInit", CUDA(cuInit)(0));
	must("cuDeviceGetCount", CUDA(cuDeviceGetCount)(&n));
	for (CUdevice i = 0; i < n; i++) {
		char text[80], *out = text + sprintf(text, "GPU");
		CUuuid own;

		must("cuDeviceGetUuid_v2", CUDA(cuDeviceGetUuid_v2)(&own, i));
		for (int k = 0; k < 16; k++)
			out += sprintf(out, "%s%02x",
				!k || (k >= 4 && k <= 10 && k % 2 == 0) ? "-" : "",
				(unsigned char)own.bytes[k]);
		if (!strcmp(text, uuid))
			return i;
	}
	fail("CUDA has no device %s", uuid);
}

static void compute(CUdevice device)
{
	static unsigned int values[N];
	CUcontext context;
	CUfunction function;
	CUmodule module;
	CUdeviceptr to;
	void *params[] = { &to };

	must("cuDevicePrimaryCtxRetain",
		CUDA(cuDevicePrimaryCtxRetain)(&context, device));
	must("cuCtxSetCurrent", CUDA(cuCtxSetCurrent)(context));
	must("cuMemAlloc_v2", CUDA(cuMemAlloc_v2)(&to, MEMORY));
	must("cuModuleLoadData", CUDA(cuModuleLoadData)(&module, image));
	must("cuModuleGetFunction",
		CUDA(cuModuleGetFunction)(&function, module, "triple"));
	must("cuLaunchKernel", CUDA(cuLaunchKernel)(function, N / 64, 1, 1, 64, 1, 1, 0,
				       NULL, params, NULL));
	must("cuMemcpyDtoH_v2", CUDA(cuMemcpyDtoH_v2)(values, to, sizeof(values)));
	for (unsigned int i = 0; i < N; i++)
		if (values[i] != 3 * i)
			fail("value %u is %u", i, values[i]);
}

/* Returns: this process's memory on a device, in bytes; 0: it is not listed. */
static unsigned long long own_memory(nvmlDevice_t device)
{
	nvmlProcessInfo_t infos[128];
	unsigned int n = 128;

	must("nvmlDeviceGetComputeRunningProcesses_v3",
		NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &n, infos));
	for (unsigned int i = 0; i < n; i++)
		if (infos[i].pid == (unsigned int)getpid())
			return infos[i].usedGpuMemory;
	return 0;
}

static void run_compute(const char *order, bool stays)
{
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	unsigned long long memory = 0;
	nvmlDevice_t device;

	for (const char *which = order; *which; which++)
		load(*which);
	device = first_device();
	must("nvmlDeviceGetUUID", NVML(nvmlDeviceGetUUID)(device, uuid, sizeof(uuid)));
	compute(find_device(uuid));
	printf("computed on %s\n", uuid);
	for (int i = 0; i < LOOKS && memory < MEMORY; i++) {
		memory = own_memory(device);
		if (memory < MEMORY)
			nap();
	}
	if (memory < MEMORY)
		fail("this process is not listed: %llu bytes", memory);
	printf("listed with %llu MiB\n", memory >> 20);
	fflush(stdout);
	while (stays && getchar() != EOF) {
	}
	must("nvmlShutdown", NVML(nvmlShutdown)());
	/* Loaded once more or unloaded, CUDA goes on without NVML. */
	if (dlclose(nvml))
		fail("%s", dlerror());
	must("cuCtxSynchronize", CUDA(cuCtxSynchronize)());
	puts("done");
}

/*
 * Watching
 */

static void await_result(nvmlDevice_t device, nvmlReturn_t wanted, const char *name)
{
	nvmlMemory_t memory;
	nvmlReturn_t result = NVML_ERROR_UNKNOWN;

	for (int i = 0; i < LOOKS; i++) {
		result = NVML(nvmlDeviceGetMemoryInfo)(device, &memory);
		if (result == wanted) {
			puts(name);
			fflush(stdout);
			return;
		}
		if (result != NVML_SUCCESS && result != NVML_ERROR_GPU_IS_LOST)
			break;
		nap();
	}
	fail("never %s: %d", name, result);
}

static void run_watch(void)
{
	nvmlDevice_t device;

	load('n');
	device = first_device();
	await_result(device, NVML_SUCCESS, "there");
	await_result(device, NVML_ERROR_GPU_IS_LOST, "lost");
	await_result(device, NVML_SUCCESS, "back");
}

/*
 * Cycles
 */

static unsigned int count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int n = 0;
	int c;

	while (file && (c = getc(file)) != EOF)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

static unsigned int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	return n;
}

static void run_cycle(unsigned int n)
{
	unsigned int n_descriptors = 0, n_mappings = 0;
	size_t allocated = 0;

	load('n');
	for (unsigned int i = 0; i < n; i++) {
		nvmlEventSet_t set;

		own_memory(first_device());
		must("nvmlEventSetCreate", NVML(nvmlEventSetCreate)(&set));
		must("nvmlShutdown", NVML(nvmlShutdown)());
		/* What is done once is done by now. */
		if (i != 9)
			continue;
		n_descriptors = count_descriptors();
		n_mappings = count_lines("/proc/self/maps");
		allocated = mallinfo2().uordblks;
	}
	if (count_descriptors() != n_descriptors)
		fail("%u descriptors, not %u", count_descriptors(), n_descriptors);
	if (count_lines("/proc/self/maps") != n_mappings)
		fail("%u mappings, not %u", count_lines("/proc/self/maps"), n_mappings);
	if (mallinfo2().uordblks != allocated)
		fail("%zu bytes, not %zu", mallinfo2().uordblks, allocated);
	printf("%u cycles leave nothing\n", n);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "compute"))
		run_compute(argv[2], argc > 3);
	else if (argc == 2 && !strcmp(argv[1], "watch"))
		run_watch();
	else if (argc == 3 && !strcmp(argv[1], "cycle") && atoi(argv[2]) > 10)
		run_cycle((unsigned int)atoi(argv[2]));
	else
		fail("usage: program compute ORDER [stay] | watch | cycle N");
	return 0;
}
