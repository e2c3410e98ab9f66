/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: main program and output
 */

#include <dlfcn.h>
#include <stdarg.h>

#include "probe.h"

#define EXIT_SKIP 77

void *probe_symbol(struct probe *probe, const char *name)
{
	return dlsym(probe->library, name);
}

static void member(struct probe *probe, const char *name)
{
	printf("%s\n  \"%s\": ", probe->first ? "" : ",", name);
	probe->first = false;
}

void probe_number(struct probe *probe, const char *name, double value, const char *unit)
{
	member(probe, name);
	printf("{\"value\": %.9g, \"unit\": \"%s\"}", value, unit);
	fflush(stdout);
}

void probe_text(struct probe *probe, const char *name, const char *format, ...)
{
	va_list ap;

	member(probe, name);
	putchar('"');
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('"');
	fflush(stdout);
}

bool probe_ok(struct probe *probe, const char *name, CUresult r)
{
	if (r == CUDA_SUCCESS)
		return true;
	member(probe, name);
	printf("{\"error\": %d}", r);
	fflush(stdout);
	return false;
}

/* A device that shows no 64-bit stream memory operations cannot carry the design. */
static void describe(struct probe *probe)
{
	int value = 0, version = 0;
	char name[256] = "";

	cuDeviceGetName(name, sizeof(name), probe->device);
	probe_text(probe, "device", "%s", name);
	cuDriverGetVersion(&version);
	probe_number(probe, "driver_version", version, "");
	cuDeviceGetAttribute(
		&value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, probe->device);
	probe_number(probe, "can_use_64_bit_stream_mem_ops", value, "");
	cuDeviceGetAttribute(
		&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, probe->device);
	probe_number(probe, "pageable_memory_access", value, "");
}

static bool start(struct probe *probe)
{
	void *flag;

	return probe_ok(probe, "context",
		       cuCtxCreate(&probe->context, NULL, 0, probe->device)) &&
	       probe_ok(probe, "module", cuModuleLoadData(&probe->module, probe_ptx)) &&
	       probe_ok(probe, "empty",
		       cuModuleGetFunction(&probe->empty, probe->module, "empty")) &&
	       probe_ok(probe, "wait_for",
		       cuModuleGetFunction(
			       &probe->wait_for, probe->module, "wait_for")) &&
	       probe_ok(probe, "flag",
		       cuMemHostAlloc(&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP)) &&
	       (probe->flag = flag) &&
	       probe_ok(probe, "flag",
		       cuMemHostGetDevicePointer(&probe->device_flag, flag, 0));
}

int main(int argc, char **argv)
{
	struct probe probe = { .first = true };
	int n = 0;

	if (argc > 1 && !strcmp(argv[1], "--checkpoint-subject"))
		return probe_checkpoint_subject();

	probe.library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!probe.library || cuInit(0) || cuDeviceGetCount(&n) || !n) {
		fprintf(stderr, "skipped: no CUDA device answers through libcuda.so.1\n");
		return EXIT_SKIP;
	}
	cuDeviceGet(&probe.device, 0);
	printf("{");
	describe(&probe);
	if (start(&probe)) {
		probe_queue(&probe);
		probe_words(&probe);
		probe_window(&probe);
		probe_alloc_cost(&probe);
		probe_registration(&probe);
		probe_checkpoint(&probe);
	}
	printf("\n}\n");
	return EXIT_SUCCESS;
}
