/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls measured through a CUDA library, whichever it is
 *
 * The library is opened by path, so the same code measures the guest library, the
 * null driver in this process, and NVIDIA's own. All calls are made by one thread; what
 * must be over before a clock starts or stops is waited for with the library's own
 * synchronising calls.
 */

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Fewer than any driver's launch queue holds: a burst never waits for room. */
#define BURST 256u
#define MIXED_LAUNCHES 600u
#define MIXED_DEVICES 40u
#define MIXED_SMALL 10u
#define MIXED_COPY (4 * BENCH_KIB)
/* Nine parameters of eight bytes, as the published figures of others have. */
#define N_PARAMETERS 9

#define CALLS(_)                                                                         \
	_(cuInit)                                                                        \
	_(cuDeviceGet)                                                                   \
	_(cuDevicePrimaryCtxRetain)                                                      \
	_(cuCtxSetCurrent)                                                               \
	_(cuCtxGetDevice)                                                                \
	_(cuCtxSynchronize)                                                              \
	_(cuModuleLoadData)                                                              \
	_(cuModuleGetFunction)                                                           \
	_(cuLaunchKernel)                                                                \
	_(cuStreamCreate)                                                                \
	_(cuStreamSynchronize)                                                           \
	_(cuEventCreate)                                                                 \
	_(cuEventRecord)                                                                 \
	_(cuEventQuery)                                                                  \
	_(cuEventSynchronize)                                                            \
	_(cuMemGetInfo)                                                                  \
	_(cuMemAlloc)                                                                    \
	_(cuMemcpyHtoDAsync)

/* A driver that moves nothing need not have these. */
#define COPIES(_)                                                                        \
	_(cuMemFree)                                                                     \
	_(cuMemHostAlloc)                                                                \
	_(cuMemFreeHost)                                                                 \
	_(cuMemcpyHtoD)                                                                  \
	_(cuMemcpyDtoH)

/* vgpu/cuda.h makes macros of names that have versions: the table has the symbols'. */
#define MEMBER(_name) __typeof__(&_name) _name;
#define SYMBOL(_name) #_name
#define LOAD(_name)                                                                      \
	if (!(cuda._name = dlsym(library, SYMBOL(_name)))) {                             \
		fprintf(stderr, "vgpu-bench: %s has no %s\n", path, SYMBOL(_name));      \
		return -1;                                                               \
	}

static struct {
	CALLS(MEMBER)
	COPIES(MEMBER)
} cuda;

/* Ends the process: a measurement with a failed call in it is none. */
#define must(_call)                                                                      \
	do {                                                                             \
		CUresult result_ = cuda._call;                                           \
		if (result_) {                                                           \
			fprintf(stderr, "vgpu-bench: %s returns %d\n", #_call, result_); \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

/* A kernel that does nothing, in words of its own. */
static const char kernel_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c,\n"
	"  .param .u64 d, .param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h,\n"
	"  .param .u64 i)\n{\n  ret;\n}\n";

struct bench {
	const struct bench_sink *sink;
	bool quick;
	CUfunction nothing;
	CUstream stream;
	CUevent event;
	CUdeviceptr small;	  /* MIXED_COPY bytes */
	uint8_t host[MIXED_COPY]; /* pageable */
	uint64_t values[N_PARAMETERS];
	void *parameters[N_PARAMETERS];
};

static int load(const char *path, enum bench_part part)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "vgpu-bench: %s\n", dlerror());
		return -1;
	}
	CALLS(LOAD)
	if (part != BENCH_CALLS) {
		COPIES(LOAD)
	}
	return 0;
}

static void prepare(struct bench *bench)
{
	CUcontext context;
	CUmodule module;
	CUdevice device;

	must(cuInit(0));
	must(cuDeviceGet(&device, 0));
	must(cuDevicePrimaryCtxRetain(&context, device));
	must(cuCtxSetCurrent(context));
	must(cuModuleLoadData(&module, kernel_ptx));
	must(cuModuleGetFunction(&bench->nothing, module, "nothing"));
	must(cuStreamCreate(&bench->stream, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&bench->event, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&bench->small, MIXED_COPY));
	for (int i = 0; i < N_PARAMETERS; i++)
		bench->parameters[i] = &bench->values[i];
}

static inline void launch(struct bench *bench, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		must(cuLaunchKernel(bench->nothing, 1, 1, 1, 32, 1, 1, 0, bench->stream,
			bench->parameters, NULL));
}

/*
 * Calls
 */

static void measure_sync_null_call(struct bench *bench, const char *name)
{
	unsigned int n = bench->quick ? 200 : 2000;
	struct bench_samples samples = {};
	size_t free, total;
	double start;

	for (unsigned int i = 0; i < (bench->quick ? 5 : 101); i++) {
		start = bench_now();
		for (unsigned int k = 0; k < n; k++)
			must(cuMemGetInfo(&free, &total));
		bench_sample(&samples, (bench_now() - start) / n);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void measure_async_launch(struct bench *bench, const char *name)
{
	struct bench_samples samples = {};
	double start;

	for (unsigned int i = 0; i < (bench->quick ? 5 : 101); i++) {
		start = bench_now();
		launch(bench, BURST);
		bench_sample(&samples, (bench_now() - start) / BURST);
		must(cuStreamSynchronize(bench->stream));
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void measure_launch_rate(struct bench *bench, const char *name)
{
	unsigned int n = bench->quick ? 5000 : 200000;
	struct bench_samples samples = {};
	double start;

	for (unsigned int i = 0; i < (bench->quick ? 3 : 11); i++) {
		start = bench_now();
		launch(bench, n);
		must(cuStreamSynchronize(bench->stream));
		bench_sample(&samples, n / ((bench_now() - start) / 1e9));
	}
	bench_report(bench->sink, name, "1/s", &samples);
}

static void measure_event_query_done(struct bench *bench, const char *name)
{
	unsigned int n = bench->quick ? 200 : 2000;
	struct bench_samples samples = {};
	double start;

	must(cuEventRecord(bench->event, bench->stream));
	must(cuEventSynchronize(bench->event));
	for (unsigned int i = 0; i < (bench->quick ? 5 : 101); i++) {
		start = bench_now();
		for (unsigned int k = 0; k < n; k++)
			must(cuEventQuery(bench->event));
		bench_sample(&samples, (bench_now() - start) / n);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void mix(struct bench *bench)
{
	unsigned int per_small = MIXED_LAUNCHES / MIXED_SMALL;
	CUdevice device;
	CUresult result;

	for (unsigned int i = 0; i < MIXED_SMALL; i++) {
		launch(bench, per_small);
		for (unsigned int k = 0; k < MIXED_DEVICES / MIXED_SMALL; k++)
			must(cuCtxGetDevice(&device));
		must(cuEventRecord(bench->event, bench->stream));
		result = cuda.cuEventQuery(bench->event);
		if (result && result != CUDA_ERROR_NOT_READY)
			must(cuEventQuery(bench->event));
		must(cuMemcpyHtoDAsync(
			bench->small, bench->host, MIXED_COPY, bench->stream));
	}
	must(cuStreamSynchronize(bench->stream));
}

static void measure_mixed_iteration(struct bench *bench, const char *name)
{
	unsigned int n = bench->quick ? 2 : 20;
	struct bench_samples samples = {};
	double start;

	for (unsigned int i = 0; i < (bench->quick ? 3 : 41); i++) {
		start = bench_now();
		for (unsigned int k = 0; k < n; k++)
			mix(bench);
		bench_sample(&samples, (bench_now() - start) / n);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

/*
 * Memory
 */

/* Copies both ways between device memory and that host memory, one size. */
static void measure_copies(
	struct bench *bench, void *host, const char *kind, const struct bench_size *size)
{
	unsigned int n_samples = size->bytes > 64 * BENCH_MIB ? 5 : 15;
	size_t n = size->bytes < 16 * BENCH_MIB ? 16 * BENCH_MIB / size->bytes : 1;
	struct bench_samples up = {}, down = {};
	char name[BENCH_NAME_MAX];
	CUdeviceptr device;
	double start;

	if (bench->quick) {
		n_samples = 3;
		n = n > 16 ? 16 : n;
	}
	must(cuMemAlloc(&device, size->bytes));
	must(cuMemcpyHtoD(device, host, size->bytes)); /* makes whatever is made once */
	must(cuMemcpyDtoH(host, device, size->bytes));
	for (unsigned int i = 0; i < n_samples; i++) {
		start = bench_now();
		for (size_t k = 0; k < n; k++)
			must(cuMemcpyHtoD(device, host, size->bytes));
		must(cuCtxSynchronize());
		bench_sample(&up, size->bytes * n / ((bench_now() - start) / 1e9));
		start = bench_now();
		for (size_t k = 0; k < n; k++)
			must(cuMemcpyDtoH(host, device, size->bytes));
		bench_sample(&down, size->bytes * n / ((bench_now() - start) / 1e9));
	}
	must(cuMemFree(device));
	snprintf(name, sizeof(name), "copy_h2d_%s_%s", kind, size->name);
	bench_report(bench->sink, name, "B/s", &up);
	snprintf(name, sizeof(name), "copy_d2h_%s_%s", kind, size->name);
	bench_report(bench->sink, name, "B/s", &down);
}

static bool copies_wanted(
	const struct bench *bench, const char *kind, const struct bench_size *size)
{
	char name[BENCH_NAME_MAX];

	snprintf(name, sizeof(name), "copy_h2d_%s_%s", kind, size->name);
	if (bench_wanted(bench->sink->options, name))
		return true;
	snprintf(name, sizeof(name), "copy_d2h_%s_%s", kind, size->name);
	return bench_wanted(bench->sink->options, name);
}

static void measure_pageable(struct bench *bench, const struct bench_size *size)
{
	void *host;

	if (!copies_wanted(bench, "pageable", size))
		return;
	host = malloc(size->bytes);
	if (!host)
		return;
	memset(host, 1, size->bytes);
	measure_copies(bench, host, "pageable", size);
	free(host);
}

static void measure_pinned(struct bench *bench, const struct bench_size *size)
{
	void *host;

	if (!copies_wanted(bench, "pinned", size))
		return;
	must(cuMemHostAlloc(&host, size->bytes, 0));
	memset(host, 1, size->bytes);
	measure_copies(bench, host, "pinned", size);
	must(cuMemFreeHost(host));
}

/* Allocations of pinned memory, whose pages the host has had before or has not. */
static void measure_pin(struct bench *bench, const char *name, unsigned int n_samples)
{
	struct bench_samples samples = {};
	double start;
	void *host;

	for (unsigned int i = 0; i < n_samples; i++) {
		start = bench_now();
		must(cuMemHostAlloc(&host, BENCH_GIB, 0));
		bench_sample(&samples, bench_now() - start);
		must(cuMemFreeHost(host));
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void measure_pin_warm(struct bench *bench, const char *name)
{
	void *host;

	must(cuMemHostAlloc(&host, BENCH_GIB, 0));
	must(cuMemFreeHost(host));
	measure_pin(bench, name, bench->quick ? 3 : 21);
}

static const struct {
	const char *name;
	void (*measure)(struct bench *bench, const char *name);
} measurements[] = {
	{ "sync_null_call", measure_sync_null_call },
	{ "async_launch", measure_async_launch },
	{ "launch_rate", measure_launch_rate },
	{ "event_query_done", measure_event_query_done },
	{ "mixed_iteration", measure_mixed_iteration },
};

int bench_calls(const struct bench_sink *sink, const char *path, enum bench_part part)
{
	static struct bench bench;

	bench.sink = sink;
	bench.quick = sink->options->quick;
	if (load(path, part) < 0)
		return -1;
	prepare(&bench);
	if (part == BENCH_FIRST_USE) {
		measure_pin(&bench, "pin_1gib_cold", 1);
		return 0;
	}
	for (size_t i = 0; i < sizeof(measurements) / sizeof(measurements[0]); i++)
		if (bench_wanted(sink->options, measurements[i].name))
			measurements[i].measure(&bench, measurements[i].name);
	if (part == BENCH_CALLS)
		return 0;
	if (bench_wanted(sink->options, "pin_1gib"))
		measure_pin_warm(&bench, "pin_1gib");
	for (const struct bench_size *size = bench_sizes; size->name; size++) {
		measure_pageable(&bench, size);
		measure_pinned(&bench, size);
	}
	return 0;
}
