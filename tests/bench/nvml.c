/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of NVML, which are answered from what the host publishes
 *
 * The library has a connection of its own to the same host.
 */

#include <dlfcn.h>

#include "library.h"
#include "vgpu/nvml.h"

static struct {
	__typeof__(&nvmlInit_v2) init;
	__typeof__(&nvmlShutdown) shutdown;
	__typeof__(&nvmlDeviceGetHandleByIndex_v2) get_device;
	__typeof__(&nvmlDeviceGetMemoryInfo) get_memory;
	__typeof__(&nvmlDeviceGetCount_v2) get_count;
	nvmlDevice_t device;
} nvml;

static void must_nvml(nvmlReturn_t result)
{
	if (!result)
		return;
	fprintf(stderr, "vgpu-bench: a call of NVML returns %d\n", (int)result);
	exit(1);
}

static void *look_up(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : NULL;

	if (!function) {
		fprintf(stderr, "vgpu-bench: %s: %s\n", name, dlerror());
		exit(1);
	}
	return function;
}

static void open_library(void)
{
	void *library = dlopen(BENCH_LIBNVML, RTLD_NOW | RTLD_LOCAL);

	nvml.init = (__typeof__(nvml.init))look_up(library, "nvmlInit_v2");
	nvml.shutdown = (__typeof__(nvml.shutdown))look_up(library, "nvmlShutdown");
	nvml.get_device = (__typeof__(nvml.get_device))look_up(
		library, "nvmlDeviceGetHandleByIndex_v2");
	nvml.get_memory =
		(__typeof__(nvml.get_memory))look_up(library, "nvmlDeviceGetMemoryInfo");
	nvml.get_count =
		(__typeof__(nvml.get_count))look_up(library, "nvmlDeviceGetCount_v2");
	must_nvml(nvml.init());
	must_nvml(nvml.get_device(0, &nvml.device));
}

static void get_memory(struct bench *bench)
{
	nvmlMemory_t memory;

	must_nvml(nvml.get_memory(nvml.device, &memory));
}

static void get_count(struct bench *bench)
{
	unsigned int n;

	must_nvml(nvml.get_count(&n));
}

static void measure_memory(struct bench *bench, const char *name)
{
	measure_each(bench, name, bench_count(bench->sink, 101, 5),
		bench_count(bench->sink, 1000, 100), get_memory);
}

static void measure_count(struct bench *bench, const char *name)
{
	measure_each(bench, name, bench_count(bench->sink, 101, 5),
		bench_count(bench->sink, 1000, 100), get_count);
}

void measure_nvml(struct bench *bench)
{
	static const struct measurement table[] = {
		{ "nvml_memory_info", measure_memory },
		{ "nvml_device_count", measure_count },
	};

	if (!bench->host)
		return;
	open_library();
	measure_table(bench, table, BENCH_N(table));
	must_nvml(nvml.shutdown());
}
