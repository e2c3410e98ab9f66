/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA library that is measured
 */

#include <dlfcn.h>

#include "library.h"

#define SYMBOL(_name) #_name

struct library cuda;

const char kernels_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c,\n"
	"  .param .u64 d, .param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h,\n"
	"  .param .u64 i)\n{\n  ret;\n}\n"
	".visible .entry wait_for(.param .u64 word)\n{\n"
	"  .reg .u64 %address;\n  .reg .u32 %value;\n  .reg .pred %zero;\n"
	"  ld.param.u64 %address, [word];\n"
	"again:\n"
	"  ld.volatile.global.u32 %value, [%address];\n"
	"  setp.eq.u32 %zero, %value, 0;\n"
	"  @%zero bra again;\n"
	"  ret;\n}\n";

#define LOAD(_name)                                                                      \
	cuda._name = dlsym(library, SYMBOL(_name));                                      \
	if (!cuda._name)                                                                 \
		missing = SYMBOL(_name);

int library_open(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;

	if (!library) {
		fprintf(stderr, "vgpu-bench: %s\n", dlerror());
		return -1;
	}
	CALLS(LOAD)
	if (missing) {
		fprintf(stderr, "vgpu-bench: %s has no %s\n", path, missing);
		return -1;
	}
	COPIES(LOAD)
	cuda.has_copies = !missing;
	missing = NULL;
	GRAPHS(LOAD)
	cuda.has_graphs = !missing;
	missing = NULL;
	POOLS(LOAD)
	cuda.has_pools = !missing;
	missing = NULL;
	TEXTURES(LOAD)
	cuda.has_textures = !missing;
	return 0;
}

void library_prepare(struct bench *bench)
{
	CUdevice device;

	must(cuInit(0));
	must(cuDeviceGet(&device, 0));
	must(cuDevicePrimaryCtxRetain(&bench->context, device));
	must(cuCtxSetCurrent(bench->context));
	must(cuModuleLoadData(&bench->module, kernels_ptx));
	must(cuModuleGetFunction(&bench->nothing, bench->module, "nothing"));
	must(cuStreamCreate(&bench->stream, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&bench->event, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&bench->small, SMALL_COPY));
	for (int i = 0; i < N_PARAMETERS; i++)
		bench->parameters[i] = &bench->values[i];
	/* The first launch of a kernel has a reply; those after it have none. */
	launch(bench, 1);
	must(cuStreamSynchronize(bench->stream));
}

void measure_table(struct bench *bench, const struct measurement *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bench_wanted(bench->sink->options, table[i].name))
			table[i].measure(bench, table[i].name);
}

int bench_calls(const struct bench_sink *sink, const char *path,
	const struct bench_host *host, enum bench_part part)
{
	static struct bench bench;

	bench.sink = sink;
	bench.host = host;
	if (library_open(path) < 0)
		return -1;
	library_prepare(&bench);
	if (part == BENCH_FIRST_USE) {
		measure_pin_cold(&bench);
	} else if (part == BENCH_SAME_CORE) {
		measure_same_core(&bench);
	} else {
		measure_calls(&bench);
		measure_threads(&bench);
		measure_iterations(&bench);
		measure_nvml(&bench);
		measure_processor(&bench);
		measure_soft(&bench);
		if (cuda.has_copies) {
			measure_pin(&bench);
			measure_copies(&bench);
		}
	}
	return 0;
}
