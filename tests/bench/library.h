/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The CUDA library that is measured, whichever it is
 *
 * It is opened by path, so the same code measures the guest library, a driver in this
 * process, and NVIDIA's own.
 */

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

/* Nine parameters of eight bytes, as the published figures of others have. */
#define N_PARAMETERS 9
/* Fewer than any driver's launch queue holds: a burst never waits for room. */
#define BURST 256u
#define SMALL_COPY (4 * BENCH_KIB)

#define CALLS(_)                                                                         \
	_(cuInit)                                                                        \
	_(cuDeviceGet)                                                                   \
	_(cuDevicePrimaryCtxRetain)                                                      \
	_(cuCtxSetCurrent)                                                               \
	_(cuCtxGetDevice)                                                                \
	_(cuCtxSynchronize)                                                              \
	_(cuModuleLoadData)                                                              \
	_(cuModuleGetFunction)                                                           \
	_(cuLibraryLoadData)                                                             \
	_(cuLibraryGetKernel)                                                            \
	_(cuLaunchKernel)                                                                \
	_(cuStreamCreate)                                                                \
	_(cuStreamQuery)                                                                 \
	_(cuStreamSynchronize)                                                           \
	_(cuEventCreate)                                                                 \
	_(cuEventRecord)                                                                 \
	_(cuEventQuery)                                                                  \
	_(cuEventSynchronize)                                                            \
	_(cuMemGetInfo)                                                                  \
	_(cuMemAlloc)                                                                    \
	_(cuMemFree)                                                                     \
	_(cuMemcpyHtoDAsync)

/* Not for a driver that moves no data. */
#define COPIES(_)                                                                        \
	_(cuMemHostAlloc)                                                                \
	_(cuMemFreeHost)                                                                 \
	_(cuMemHostGetDevicePointer)                                                     \
	_(cuMemcpyHtoD)                                                                  \
	_(cuMemcpyDtoH)

/* Pools of the guest library; softgpu and the null driver have none of their own. */
#define POOLS(_)                                                                         \
	_(cuMemAllocAsync)                                                               \
	_(cuMemFreeAsync)

#define GRAPHS(_)                                                                        \
	_(cuStreamBeginCapture)                                                          \
	_(cuStreamEndCapture)                                                            \
	_(cuGraphInstantiate)                                                            \
	_(cuGraphLaunch)

/* Of softgpu alone; the null driver has none. */
#define TEXTURES(_)                                                                      \
	_(cuTexObjectCreate)                                                             \
	_(cuTexObjectDestroy)

/* cuda.h makes macros of names that have versions: the table has the symbols'. */
#define MEMBER(_name) __typeof__(&_name) _name;

struct library {
	CALLS(MEMBER)
	COPIES(MEMBER)
	GRAPHS(MEMBER)
	POOLS(MEMBER)
	TEXTURES(MEMBER)
	bool has_copies;
	bool has_pools;
	bool has_graphs;
	bool has_textures;
};

extern struct library cuda;

/* Ends the process: a measurement with a failed call in it is none. */
#define must(_call)                                                                      \
	do {                                                                             \
		CUresult result_ = cuda._call;                                           \
		if (result_) {                                                           \
			fprintf(stderr, "vgpu-bench: %s returns %d\n", #_call, result_); \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

/* Kernels as text: "nothing" with nine parameters, and "wait_for", which ends when the
 * word to which its parameter points is not 0. */
extern const char kernels_ptx[];

struct bench {
	const struct bench_sink *sink;
	const struct bench_host *host; /* NULL if no host is involved */
	CUcontext context;
	CUmodule module;
	CUfunction nothing;
	CUstream stream;
	CUevent event;	   /* without timing */
	CUdeviceptr small; /* SMALL_COPY bytes */
	uint8_t pageable[SMALL_COPY];
	uint64_t values[N_PARAMETERS];
	void *parameters[N_PARAMETERS];
};

/* Opens the library at @path into `cuda`. Returns: 0, or -1 after a line on stderr. */
int library_open(const char *path);

/* Starts the device and makes what all measurements use. */
void library_prepare(struct bench *bench);

static inline void launch_on(struct bench *bench, CUstream stream, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		must(cuLaunchKernel(bench->nothing, 1, 1, 1, 32, 1, 1, 0, stream,
			bench->parameters, NULL));
}

static inline void launch(struct bench *bench, unsigned int n)
{
	launch_on(bench, bench->stream, n);
}

/*
 * Samples of n calls each; after each sample the stream is waited for, untimed. Inlined,
 * so that @call is not called through a pointer.
 */
static inline __attribute__((__always_inline__)) void measure_each(struct bench *bench,
	const char *name, unsigned int n_samples, unsigned int n,
	void (*call)(struct bench *bench))
{
	struct bench_samples samples = {};
	double start;

	while (bench_more(&samples, n_samples)) {
		start = bench_now();
		for (unsigned int k = 0; k < n; k++)
			call(bench);
		bench_sample(&samples, (bench_now() - start) / n);
		must(cuStreamSynchronize(bench->stream));
	}
	bench_report(bench->sink, name, "ns", &samples);
}

/* One figure, measured by a function that reports it under this name. */
struct measurement {
	const char *name;
	void (*measure)(struct bench *bench, const char *name);
};

/* Measures the selected rows of a table. */
void measure_table(struct bench *bench, const struct measurement *table, size_t n);

void measure_calls(struct bench *bench);      /* calls.c */
void measure_same_core(struct bench *bench);  /* calls.c */
void measure_threads(struct bench *bench);    /* threads.c */
void measure_iterations(struct bench *bench); /* iterations.c */
void measure_copies(struct bench *bench);     /* copies.c */
void measure_pin(struct bench *bench);	      /* copies.c */
void measure_nvml(struct bench *bench);	      /* nvml.c */
void measure_pin_cold(struct bench *bench);   /* copies.c */
void measure_processor(struct bench *bench);  /* processor.c */
void measure_soft(struct bench *bench);	      /* kernels.c */
